//! h = z, z_bar = h_bar.

use super::Elementwise;
use crate::simd::Simd;

/// z
pub struct Identity;

impl Elementwise for Identity {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, _slope: S::V) -> S::V {
        z
    }
    #[inline(always)]
    unsafe fn pull<S: Simd>(_h: S::V, _b: S::V, _slope: S::V, g: S::V) -> S::V {
        g
    }
}
