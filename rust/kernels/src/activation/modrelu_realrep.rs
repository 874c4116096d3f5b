//! modReLU of z = a[:n] + i a[n:]: units i and i + n share the radius sqrt(a_i^2 + a_{i+n}^2) and the bias b_i.

use super::modrelu::{grow, live, open, polar, turn};
use crate::simd::Simd;

/// h for the two halves.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn value<S: Simd>(z: [S::V; 2], b: S::V) -> [S::V; 2] {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let ((e, r), (f, _)) = (polar::<S>(z[0], z[1]), polar::<S>(z[1], z[0]));
        [grow::<S>(e, r, b), grow::<S>(f, r, b)]
    }
}

/// z_bar for the two halves at z.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn pull<S: Simd>(z: [S::V; 2], b: S::V, g: [S::V; 2]) -> [S::V; 2] {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let ((e, r), (f, _)) = (polar::<S>(z[0], z[1]), polar::<S>(z[1], z[0]));
        let along = S::add(S::mul(e, g[0]), S::mul(f, g[1]));
        let live = open::<S>(r, b);
        [turn::<S>(e, live, r, b, g[0], along), turn::<S>(f, live, r, b, g[1], along)]
    }
}

/// [`Elementwise::direction`](super::Elementwise::direction) for the two halves.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn direction<S: Simd>(y: [S::V; 2], b: S::V, argument: bool) -> [S::V; 2] {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let ((e, r), (f, _)) = (polar::<S>(y[0], y[1]), polar::<S>(y[1], y[0]));
        [live::<S>(e, r, b, argument), live::<S>(f, r, b, argument)]
    }
}
