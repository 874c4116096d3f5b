//! Diagonal factors between two matrices: gradient of the factors, and rows multiplied by them, in one pass.

use crate::dispatch::{compiled, kernel};
use crate::scalar::Real;
use std::ops::Range;

compiled! {
    /// Passes over rows, compiled for each real type.
    BoundedSvdKernels: Real for f32, f64; {
        /// [`Between`]
        fn between(Between);
    }
}

/// sums_j = sum_i x_ij y_ij, then y <- y diag(by), z = x diag(by), in some columns; sums run from the first row to the
/// last.
///
/// # Safety
/// The rows, `by` and `sums` have `width` numbers; nothing else accesses these columns of y, z and sums.
pub struct Between<R: Real> {
    /// x
    pub x: *const R,
    /// y
    pub y: *mut R,
    /// z; null if it is not wanted.
    pub z: *mut R,
    /// Factors.
    pub by: *const R,
    /// Sums.
    pub sums: *mut R,
    /// Number of rows.
    pub rows: usize,
    /// Numbers in each.
    pub width: usize,
    /// The columns.
    pub columns: Range<usize>,
}

kernel!(Between::<R>, |&Between { x, y, z, by, sums, rows, width, ref columns }| {
    for col in columns.clone().step_by(2 * S::LANES) {
        // SAFETY: columns of the rows, `by` and `sums` (contract of `Between`).
        unsafe {
            let cols = [col, (col + S::LANES).min(columns.end)];
            let live = cols.map(|col| columns.end - col);
            let mut by_ = [S::zero(); 2];
            for j in 0..2 {
                by_[j] = S::load_n(by.add(cols[j]), live[j]);
            }
            let mut acc = [S::zero(); 2];
            for i in 0..rows {
                for j in 0..2 {
                    let at = i * width + cols[j];
                    let (a, b) = (S::load_n(x.add(at), live[j]), S::load_n(y.add(at), live[j]));
                    acc[j] = S::mul_add(a, b, acc[j]);
                    S::store_n(y.add(at), S::mul(b, by_[j]), live[j]);
                    if !z.is_null() {
                        S::store_n(z.add(at), S::mul(a, by_[j]), live[j]);
                    }
                }
            }
            for j in 0..2 {
                S::store_n(sums.add(cols[j]), acc[j], live[j]);
            }
        }
    }
});
