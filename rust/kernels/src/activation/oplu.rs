//! For each pair (2i, 2i + 1): (max, min). The gradient is the same permutation, the identity at a tie. NaN spreads to
//! the pair.

use super::Elementwise;
use super::elementwise::{keep_nan, larger, smaller};
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::{One, Zero};

/// OPLU of real numbers: a pair is two adjacent lanes.
pub struct Oplu;

impl Elementwise for Oplu {
    #[inline(always)]
    unsafe fn value<S: Simd>(z: S::V, _b: S::V, _slope: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let w = S::swap_pairs(z);
            let first = S::alternate(S::R::one(), S::R::zero());
            S::select_gt(first, S::zero(), larger::<S>(z, w), smaller::<S>(z, w))
        }
    }
    /// h does not determine the order, so [`Elementwise::pull_at`] is used.
    #[inline(always)]
    unsafe fn pull<S: Simd>(z: S::V, b: S::V, slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { Self::pull_at::<S>(z, b, slope, g) }
    }
    #[inline(always)]
    unsafe fn pull_at<S: Simd>(z: S::V, _b: S::V, _slope: S::V, g: S::V) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let (w, swapped) = (S::swap_pairs(z), S::swap_pairs(g));
            // Exchanged if the second is larger: in an even lane w > z, in an odd lane z > w.
            let sign = S::alternate(S::R::one(), -S::R::one());
            let v = S::select_gt(S::mul(w, sign), S::mul(z, sign), swapped, g);
            keep_nan::<S>(z, keep_nan::<S>(w, v))
        }
    }
}

/// OPLU of one complex row given as real numbers, or its gradient if g is given: real and imaginary parts of adjacent
/// elements are ordered separately. `out` may be `z` or `g`.
///
/// # Safety
/// The rows have `width` numbers, a multiple of 4.
#[inline(always)]
pub(super) unsafe fn complex<R: Real>(z: *const R, g: *const R, out: *mut R, width: usize) {
    for i in (0..width).step_by(4) {
        for (first, second) in [(i, i + 2), (i + 1, i + 3)] {
            // SAFETY: the rows have `width` numbers, a multiple of 4; both numbers are read before either is written.
            unsafe {
                let (a, b) = (*z.add(first), *z.add(second));
                let (p, q) = if g.is_null() { (a, b) } else { (*g.add(first), *g.add(second)) };
                let (p, q) = if a.is_nan() || b.is_nan() {
                    (R::nan(), R::nan())
                } else if b > a {
                    (q, p)
                } else {
                    (p, q)
                };
                (*out.add(first), *out.add(second)) = (p, q);
            }
        }
    }
}
