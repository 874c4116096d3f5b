//! s = 1 / (1 + e^-z), the gate of recurrent cells: with a = e^-|z| it is 1 / (1 + a) for z >= 0 and a / (1 + a) for z < 0, so that
//! the relative error stays a few eps also where s is small; s_bar = s (1 - s) g.

use super::Elementwise;
use super::exponential::exponential;
use crate::scalar::Real;
use crate::simd::Simd;

/// 1 / (1 + e^-z)
pub struct Sigmoid;

impl Elementwise for Sigmoid {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, _slope: S::V) -> S::V {
        // Up to here a is a normal number; beyond it is 0, as all smaller numbers are.
        let limit = if size_of::<S::R>() == 8 { 708.3 } else { 87.3 };
        // SAFETY: arithmetic of an instruction set that exists.
        unsafe {
            let c = |x: f64| S::splat(S::R::of(x));
            // `min` returns its second argument where one is NaN, and no comparison with NaN is true
            let size = S::abs(z);
            let (scale, p) = exponential::<S>(S::sub(S::zero(), S::min(c(limit), size)));
            // (scale p alone may be denormal)
            let a = S::select_gt(size, c(limit), S::zero(), S::mul(scale, S::add(c(1.0), p)));
            S::div(S::select_gt(S::zero(), z, a, c(1.0)), S::add(c(1.0), a))
        }
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(s: S::V, _b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic of an instruction set that exists.
        unsafe { S::mul(S::neg_mul_add(s, s, s), g) }
    }
}
