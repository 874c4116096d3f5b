//! The trait of nonlinearities that act within a vector register: on single lanes, or on pairs of adjacent lanes.

use crate::simd::Simd;

/// h = phi(z) and its gradient, written once for all instruction sets. `b` is the activation's own bias, `slope` that of
/// leaky_relu; ignored by the other kinds. Vectors start at even lanes of a row, so pairs are not split.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods: the instruction set of S exists")]
pub trait Elementwise {
    /// h = phi(z)
    unsafe fn value<S: Simd>(z: S::V, b: S::V, slope: S::V) -> S::V;

    /// z_bar = phi'(z)^H g, with the derivative computed from h.
    unsafe fn pull<S: Simd>(h: S::V, b: S::V, slope: S::V, g: S::V) -> S::V;

    /// The same with the derivative computed from z.
    #[inline(always)]
    unsafe fn pull_at<S: Simd>(z: S::V, b: S::V, slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { Self::pull::<S>(Self::value::<S>(z, b, slope), b, slope, g) }
    }

    /// The factor e in b_bar = Re(conj(e) f_bar), where f_bar is the cotangent of phi(z); 0 where the value is 0. y is
    /// h, or z if `argument`. Only called for kinds with a bias.
    #[inline(always)]
    unsafe fn direction<S: Simd>(_y: S::V, _b: S::V, _argument: bool) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { S::zero() }
    }
}

/// The larger of both; NaN if either is NaN.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn larger<S: Simd>(a: S::V, b: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { keep_nan::<S>(a, S::select_gt(a, b, a, b)) }
}

/// The smaller of both; NaN if either is NaN.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn smaller<S: Simd>(a: S::V, b: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { keep_nan::<S>(a, S::select_gt(a, b, b, keep_nan::<S>(b, a))) }
}

/// v; y in lanes where y is NaN.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn keep_nan<S: Simd>(y: S::V, v: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { S::select_eq(y, y, v, y) }
}
