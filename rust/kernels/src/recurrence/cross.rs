//! Column sums of products of two arrays of rows, for the gradient of a diagonal last factor.

use crate::dispatch::kernel;
use std::ops::Range;

/// Adds, per real column, the sums over some rows of z_bar h, and of z_bar with the parts of h swapped.
///
/// # Safety
/// All rows and each of the sums have `width` numbers; columns start at a multiple of a vector.
pub struct Cross<R> {
    /// z_bar
    pub bar: *const R,
    /// h
    pub h: *const R,
    /// Number of rows.
    pub rows: usize,
    /// Numbers in each.
    pub width: usize,
    /// The sums.
    pub sums: [*mut R; 2],
    /// The columns.
    pub columns: Range<usize>,
}

kernel!(Cross::<R>, |own| {
    // SAFETY: the rows and the sums have these columns (contract of `Cross`).
    unsafe {
        for col in own.columns.clone().step_by(S::LANES) {
            let live = own.columns.end - col;
            let mut acc = [S::zero(); 2];
            for row in 0..own.rows {
                let at = row * own.width + col;
                let z = S::load_n(own.bar.add(at), live);
                let h = S::load_n(own.h.add(at), live);
                acc[0] = S::mul_add(z, h, acc[0]);
                acc[1] = S::mul_add(z, S::swap_pairs(h), acc[1]);
            }
            for i in 0..2 {
                let sum = own.sums[i].add(col);
                S::store_n(sum, S::add(acc[i], S::load_n(sum, live)), live);
            }
        }
    }
});
