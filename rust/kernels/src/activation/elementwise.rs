//! What a nonlinearity is that acts within a vector register: on single lanes, or on pairs of neighbouring lanes.

use crate::simd::Simd;

/// h = phi(z) and its gradient, written once for all instruction sets. `b` is the activation's own bias, `slope` that of
/// leaky_relu; who has none ignores them. Vectors start at even lanes of a row, so that pairs stay together.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods: the instruction set of S exists")]
pub trait Elementwise {
    /// h = phi(z)
    unsafe fn value<S: Simd>(z: S::V, b: S::V, slope: S::V) -> S::V;

    /// z_bar = phi'(z)^H g, with the derivative read off h.
    unsafe fn pull<S: Simd>(h: S::V, b: S::V, slope: S::V, g: S::V) -> S::V;

    /// The same with the derivative computed from z.
    #[inline(always)]
    unsafe fn pull_at<S: Simd>(z: S::V, b: S::V, slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic of an instruction set that exists.
        unsafe { Self::pull::<S>(Self::value::<S>(z, b, slope), b, slope, g) }
    }

    /// What the gradient of the bias takes of the cotangent f_bar of phi(z): b_bar = Re(conj(e) f_bar) with the e returned, which is 0
    /// where the value is 0; y is h, or z if `argument`. Only for who has a bias.
    #[inline(always)]
    unsafe fn direction<S: Simd>(_y: S::V, _b: S::V, _argument: bool) -> S::V {
        // SAFETY: arithmetic of an instruction set that exists.
        unsafe { S::zero() }
    }
}

/// Larger of both; NaN where either is.
///
/// # Safety
/// The instruction set of S exists.
#[inline(always)]
pub(super) unsafe fn larger<S: Simd>(a: S::V, b: S::V) -> S::V {
    // SAFETY: arithmetic of an instruction set that exists.
    unsafe { keep_nan::<S>(a, S::select_gt(a, b, a, b)) }
}

/// Smaller of both; NaN where either is.
///
/// # Safety
/// The instruction set of S exists.
#[inline(always)]
pub(super) unsafe fn smaller<S: Simd>(a: S::V, b: S::V) -> S::V {
    // SAFETY: arithmetic of an instruction set that exists.
    unsafe { keep_nan::<S>(a, S::select_gt(a, b, b, keep_nan::<S>(b, a))) }
}

/// v, but y where y is NaN.
///
/// # Safety
/// The instruction set of S exists.
#[inline(always)]
pub(super) unsafe fn keep_nan<S: Simd>(y: S::V, v: S::V) -> S::V {
    // SAFETY: arithmetic of an instruction set that exists.
    unsafe { S::select_eq(y, y, v, y) }
}
