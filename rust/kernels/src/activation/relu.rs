//! h = max(z, 0), z_bar = h_bar where z > 0, else 0.

use super::Elementwise;
use crate::simd::Simd;

/// max(z, 0)
pub struct Relu;

impl Elementwise for Relu {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, _slope: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S. A NaN is not below zero and stays.
        unsafe { S::select_gt(S::zero(), z, S::zero(), z) }
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(h: S::V, _b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the processor supports S. Unless h > 0, h is NaN or 0, which is the derivative.
        unsafe { S::select_gt(h, S::zero(), g, h) }
    }
}
