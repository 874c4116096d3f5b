//! For each pair (i, i + n/2): max to i, min to i + n/2. The gradient is the same permutation, the identity at a tie.

use super::elementwise::{keep_nan, larger, smaller};
use crate::simd::Simd;

/// (max, min) of the two halves.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn value<S: Simd>(z: [S::V; 2]) -> [S::V; 2] {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { [larger::<S>(z[0], z[1]), smaller::<S>(z[0], z[1])] }
}

/// The gradient of [`value`] at z.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn pull<S: Simd>(z: [S::V; 2], g: [S::V; 2]) -> [S::V; 2] {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let known = |v| keep_nan::<S>(z[0], keep_nan::<S>(z[1], v));
        [known(S::select_gt(z[1], z[0], g[1], g[0])), known(S::select_gt(z[1], z[0], g[0], g[1]))]
    }
}
