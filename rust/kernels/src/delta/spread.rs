//! The keys and queries of a chunk, with the decays of its gates.

use super::{Matrix, factor};
use crate::dispatch::kernel;

/// out_i = by_i x_i, early_i = before_i * out_i and late_i = after_i * out_i.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, `by` a number for each; `early` and `late` may be null. `before` and `after` have
/// a number for each row, at their pitch, or n if `wide`, where `early` and `late` are not null.
pub struct Spread<R> {
    /// The rows.
    pub x: Matrix<R>,
    /// Their factors.
    pub by: *const R,
    /// The first result.
    pub out: Matrix<R>,
    /// The second result.
    pub early: Matrix<R>,
    /// Its factors.
    pub before: Matrix<R>,
    /// The third result.
    pub late: Matrix<R>,
    /// Its factors.
    pub after: Matrix<R>,
    /// Whether these factors are as wide as a row.
    pub wide: bool,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Spread::<R>, |&Spread { x, by, out, early, before, late, after, wide, rows, n }| {
    for i in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            let by = S::splat(*by.add(i));
            for col in (0..n).step_by(S::LANES) {
                let live = n - col;
                let v = S::mul(by, S::load_n(x.row(i).add(col), live));
                S::store_n(out.row(i).add(col), v, live);
                for (to, by) in [(early, before), (late, after)] {
                    if !to.at.is_null() {
                        let by = factor::<S>(by.row(i), wide, col, live);
                        S::store_n(to.row(i).add(col), S::mul(by, v), live);
                    }
                }
            }
        }
    }
});
