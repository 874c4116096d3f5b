//! Rotations on a block of rows, one lane per real row.

use super::Givens;
use crate::scalar::{Real, Scalar};
use crate::side::Side;
use num_traits::Zero;
use std::array::from_fn;

/// Real rows of a block.
pub const LANES: usize = 8;

/// A coordinate of all rows of a block.
pub type Across<R> = [R; LANES];

impl<T: Scalar> Givens<'_, T> {
    /// i, j, cosine and sine of rotation k of matrix b.
    pub(super) fn plane(&self, b: usize, k: usize) -> (usize, usize, T::Real, T::Real) {
        let at = b * self.m + k;
        (self.places[2 * at], self.places[2 * at + 1], self.table[self.angles.len() + at], self.table[at])
    }

    /// Rows into a block; lanes without a row are zero.
    ///
    /// # Safety
    /// The rows exist, as many as fit, and the block has n vectors.
    pub(super) unsafe fn take(&self, x: *const T, rows: usize, y: *mut Across<T::Real>) {
        let x = x.cast::<T::Real>();
        for i in 0..self.n {
            let one = |lane: usize| {
                let (row, part) = (lane / T::PARTS, lane % T::PARTS);
                if row >= rows {
                    return Zero::zero();
                }
                // SAFETY: the contract above.
                unsafe { *x.add((row * self.n + i) * T::PARTS + part) }
            };
            // SAFETY: the contract above.
            unsafe { y.add(i).write(from_fn(one)) };
        }
    }

    /// The rows of a block.
    ///
    /// # Safety
    /// As for `take`.
    pub(super) unsafe fn give(&self, y: *const Across<T::Real>, rows: usize, out: *mut T) {
        let out = out.cast::<T::Real>();
        for i in 0..self.n {
            // SAFETY: the contract above.
            let own = unsafe { *y.add(i) };
            for (lane, value) in own.iter().enumerate().take(rows * T::PARTS) {
                let (row, part) = (lane / T::PARTS, lane % T::PARTS);
                // SAFETY: the contract above.
                unsafe { out.add((row * self.n + i) * T::PARTS + part).write(*value) };
            }
        }
    }

    /// W or W^T on a block.
    ///
    /// # Safety
    /// There is matrix b, and the block has n vectors.
    pub(super) unsafe fn through(&self, b: usize, side: Side, y: *mut Across<T::Real>) {
        for k in 0..self.m {
            // SAFETY: the contract above; places were checked.
            unsafe {
                if side == Side::Forward {
                    let (i, j, c, s) = self.plane(b, self.m - 1 - k);
                    turn(y.add(i), y.add(j), c, s);
                } else {
                    let (i, j, c, s) = self.plane(b, k);
                    turn(y.add(i), y.add(j), c, -s);
                }
            }
        }
    }
}

/// One rotation of two coordinates.
///
/// # Safety
/// Both exist and are not the same.
#[inline(always)]
pub unsafe fn turn<R: Real>(i: *mut Across<R>, j: *mut Across<R>, c: R, s: R) {
    // SAFETY: the contract above.
    unsafe {
        let (a, b) = (*i, *j);
        *i = from_fn(|l| c * a[l] - s * b[l]);
        *j = from_fn(|l| s * a[l] + c * b[l]);
    }
}
