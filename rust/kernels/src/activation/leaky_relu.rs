//! h = max(slope z, z), z_bar = h_bar where z > 0, else slope h_bar; 0 <= slope < 1.

use super::Elementwise;
use super::elementwise::keep_nan;
use crate::simd::Simd;

/// max(slope z, z)
pub struct LeakyRelu;

impl Elementwise for LeakyRelu {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, slope: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { S::select_gt(z, S::zero(), z, S::mul(slope, z)) }
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(h: S::V, _b: S::V, slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S. z and h have the same sign.
        unsafe { keep_nan::<S>(h, S::select_gt(h, S::zero(), g, S::mul(slope, g))) }
    }
}
