//! h = (|z| + b) e with e = z / |z| where |z| + b > 0 and z != 0, else 0. Where h != 0
//!
//! ```text
//! z_bar = h_bar + (b / |z|) (h_bar - e Re(conj(e) h_bar)),      b_bar = sum Re(conj(e) h_bar),
//! ```
//!
//! for real numbers z_bar = h_bar, b_bar = sum sign(z) h_bar. (In exact arithmetic Re(conj(e) z_bar) is the same, but
//! the terms in b / |z| would have to cancel.)

use super::Elementwise;
use super::elementwise::keep_nan;
use crate::scalar::Real;
use crate::simd::Simd;

/// modReLU of real numbers.
pub struct Modrelu;

impl Elementwise for Modrelu {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, b: S::V, _slope: S::V) -> S::V {
        // SAFETY: arithmetic; the processor supports S. NaN compares neither greater nor equal, and so stays.
        unsafe {
            let t = S::add(S::abs(z), b);
            let h = S::select_gt(S::zero(), t, S::zero(), S::copysign(t, z));
            S::select_eq(z, S::zero(), keep_nan::<S>(b, S::zero()), h)
        }
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(h: S::V, _b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { S::select_eq(h, S::zero(), S::zero(), keep_nan::<S>(h, g)) }
    }
    #[inline(always)]
    unsafe fn direction<S: Simd>(y: S::V, b: S::V, argument: bool) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { live::<S>(S::copysign(S::splat(S::R::of(1.0)), y), S::abs(y), b, argument) }
    }
}

/// modReLU of complex numbers, real and imaginary part in adjacent lanes (the bias in both).
pub struct ModreluPairs;

impl Elementwise for ModreluPairs {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, b: S::V, _slope: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let (e, r) = polar::<S>(z, S::swap_pairs(z));
            grow::<S>(e, r, b)
        }
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(h: S::V, b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let (e, size) = polar::<S>(h, S::swap_pairs(h));
            let p = S::mul(e, g);
            turn::<S>(e, size, S::sub(size, b), b, g, S::add(p, S::swap_pairs(p)))
        }
    }
    #[inline(always)]
    unsafe fn pull_at<S: Simd>(z: S::V, b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let (e, r) = polar::<S>(z, S::swap_pairs(z));
            let p = S::mul(e, g);
            turn::<S>(e, open::<S>(r, b), r, b, g, S::add(p, S::swap_pairs(p)))
        }
    }
    #[inline(always)]
    unsafe fn direction<S: Simd>(y: S::V, b: S::V, argument: bool) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let (e, r) = polar::<S>(y, S::swap_pairs(y));
            live::<S>(e, r, b, argument)
        }
    }
}

/// For the complex number with parts in y and `other`: y / r and r, without overflow; 0 and 0 for the number 0, NaN and NaN where a part is
/// NaN or infinite.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn polar<S: Simd>(y: S::V, other: S::V) -> (S::V, S::V) {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let (a, b) = (S::abs(y), S::abs(other));
        let top = S::select_gt(a, b, a, b);
        let (u, v) = (S::div(y, top), S::div(other, top));
        // The order of the two squares must not depend on the lane, so that both parts get the same radius.
        let (p, q) = (S::mul(u, u), S::mul(v, v));
        let s = S::sqrt(S::add(p, q));
        // not `top`, which is 0 beside a NaN that compares with nothing
        let (both, none) = (S::add(a, b), S::zero());
        (S::select_eq(both, none, none, S::div(u, s)), S::select_eq(both, none, none, S::mul(top, s)))
    }
}

/// The radius r + b of the value, not positive where that is 0; NaN if either is NaN.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn open<S: Simd>(r: S::V, b: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { S::select_eq(r, S::zero(), keep_nan::<S>(b, S::zero()), S::add(r, b)) }
}

/// e where the value is not 0, else 0: r is the radius of the value, or of its argument.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn live<S: Simd>(e: S::V, r: S::V, b: S::V, argument: bool) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let size = if argument { open::<S>(r, b) } else { r };
        S::select_gt(size, S::zero(), e, keep_nan::<S>(size, S::zero()))
    }
}

/// (r + b) e where r + b > 0, else 0.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn grow<S: Simd>(e: S::V, r: S::V, b: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let t = S::add(r, b);
        S::select_gt(S::zero(), t, S::zero(), S::mul(t, e))
    }
}

/// g + (b / r) (g - e along), along = Re(conj(e) g); 0 where `live` is not positive.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn turn<S: Simd>(e: S::V, live: S::V, r: S::V, b: S::V, g: S::V, along: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let z = S::mul_add(S::div(b, r), S::neg_mul_add(e, along, g), g);
        S::select_gt(live, S::zero(), z, keep_nan::<S>(live, S::zero()))
    }
}
