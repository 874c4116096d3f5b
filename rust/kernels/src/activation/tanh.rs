//! h = tanh z = sign(z) e / (e + 2) with e = expm1(2 |z|), z_bar = (1 - h^2) h_bar.
//!
//! expm1(y) = 2^k p + (2^k - 1) with e^y = 2^k (1 + p): near 0 k is 0 and e is p itself, so the relative error stays a few eps
//! everywhere.

use super::Elementwise;
use super::exponential::exponential;
use crate::scalar::Real;
use crate::simd::Simd;

/// tanh z
pub struct Tanh;

impl Elementwise for Tanh {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, _slope: S::V) -> S::V {
        // From these arguments on tanh rounds to 1.
        let limit = if size_of::<S::R>() == 8 { 20.0 } else { 10.0 };
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let c = |x: f64| S::splat(S::R::of(x));
            // `min` returns its second argument if one is NaN
            let size = S::min(c(limit), S::abs(z));
            let (scale, p) = exponential::<S>(S::add(size, size));
            let e = S::mul_add(scale, p, S::sub(scale, c(1.0)));
            S::copysign(S::div(e, S::add(e, c(2.0))), z)
        }
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(h: S::V, _b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { S::mul(S::neg_mul_add(h, h, S::splat(S::R::of(1.0))), g) }
    }
}
