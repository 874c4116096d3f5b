//! e^y = 2^k (1 + p(r)) with k = round(y / ln 2), r = y - k ln 2, |r| <= 0.35, and p the Taylor polynomial of expm1.

use crate::scalar::Real;
use crate::simd::Simd;

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

/// 2^k and p of e^y = 2^k (1 + p); |y| is at most 87 in single precision and 708 in double.
///
/// # Safety
/// The instruction set of S exists.
#[inline(always)]
pub(crate) unsafe fn exponential<S: Simd>(y: S::V) -> (S::V, S::V) {
    // Terms of the series below eps / 4; ln 2 in two parts, the first short enough that its multiples are exact.
    let double = size_of::<S::R>() == 8;
    let skip = if double { 0 } else { 6 };
    let (high, low) = if double {
        (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10)
    } else {
        (0.693359375, -2.121_944_4e-4)
    };
    // SAFETY: arithmetic of an instruction set that exists.
    unsafe {
        let c = |x: f64| S::splat(S::R::of(x));
        let k = S::round(S::mul(y, c(std::f64::consts::LOG2_E)));
        let r = S::neg_mul_add(k, c(low), S::neg_mul_add(k, c(high), y));
        let mut q = c(TAYLOR[skip]);
        for i in skip + 1..TAYLOR.len() {
            q = S::mul_add(q, r, c(TAYLOR[i]));
        }
        (S::exp2_int(k), S::mul_add(S::mul(r, r), q, r))
    }
}
