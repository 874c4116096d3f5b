//! h = tanh z = sign(z) e / (e + 2) with e = expm1(2 |z|), z_bar = (1 - h^2) h_bar.
//!
//! expm1(y) = 2^k p(r) + (2^k - 1) with k = round(y / ln 2), r = y - k ln 2, |r| <= 0.35, and p the Taylor polynomial of
//! expm1: near 0 k is 0 and e is p itself, so the relative error stays a few eps everywhere.

use super::Elementwise;
use crate::scalar::Real;
use crate::simd::Simd;

/// tanh z
pub struct Tanh;

/// 1/13!, 1/12!, ..., 1/2!
const TAYLOR: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
];

impl Elementwise for Tanh {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, _slope: S::V) -> S::V {
        let double = size_of::<S::R>() == 8;
        // From these arguments on tanh rounds to 1; Taylor terms below eps / 4 are skipped; ln 2 in two parts, the first
        // short enough for exact multiples.
        let (limit, skip) = if double { (20.0, 0) } else { (10.0, 6) };
        let (high, low) = if double {
            (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10)
        } else {
            (0.693359375, -2.121_944_4e-4)
        };
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let c = |x: f64| S::splat(S::R::of(x));
            // `min` returns its second argument if one is NaN
            let size = S::min(c(limit), S::abs(z));
            let y = S::add(size, size);
            let k = S::round(S::mul(y, c(std::f64::consts::LOG2_E)));
            let r = S::neg_mul_add(k, c(low), S::neg_mul_add(k, c(high), y));
            let mut q = c(TAYLOR[skip]);
            for i in skip + 1..TAYLOR.len() {
                q = S::mul_add(q, r, c(TAYLOR[i]));
            }
            let p = S::mul_add(S::mul(r, r), q, r);
            let scale = S::exp2_int(k);
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
