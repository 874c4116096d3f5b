//! The decays of a chunk as products of the gates a_i = e^{g_i} of its rows: only differences of the sums of g are formed, so
//! that nothing overflows, and a decay that underflows is 0.

use super::{Matrix, total};
use crate::activation::exponential::exponential;
use crate::dispatch::kernel;

/// out = e^g; 0 below e^-87 (single precision) and e^-708 (double).
///
/// # Safety
/// Both arrays have `n` numbers.
pub struct Exps<R> {
    /// The logarithms.
    pub g: *const R,
    /// The result.
    pub out: *mut R,
    /// Numbers.
    pub n: usize,
}

kernel!(Exps::<R>, |own| {
    let limit = if size_of::<R>() == 8 { 708.0 } else { 87.0 };
    // SAFETY: the arrays have these numbers.
    unsafe {
        let (low, high) = (S::splat(R::of(-limit)), S::splat(R::of(limit)));
        let (two, e_squared) = (S::splat(R::of(2.0)), S::splat(R::of(2f64.exp())));
        for col in (0..own.n).step_by(S::LANES) {
            let g = S::load_n(own.g.add(col), own.n - col);
            // above the limit e^g = e^2 e^(g - 2), where g - 2 is exact
            let near = S::select_gt(g, high, S::sub(g, two), g);
            let within = S::min(S::select_gt(near, low, near, low), high);
            let (power, rest) = exponential::<S>(within);
            let e = S::mul_add(power, rest, power);
            let e = S::select_gt(g, high, S::mul(e, e_squared), S::select_gt(low, g, S::zero(), e));
            // NaN stays
            let e = S::select_eq(g, g, e, g);
            S::store_n(own.out.add(col), e, own.n - col);
        }
    }
});

/// Products of the gates a_0, a_1, ... of `rows` rows of width `n`, for each column: `before` row i = a_0 ... a_i, the decay
/// of the state before the chunk, and `after` row i = a_{i+1} a_{i+2} ..., that of row i until the end of the chunk.
///
/// # Safety
/// The arrays have `rows` rows of n numbers, at least one.
pub struct Decays<R> {
    /// The gates.
    pub a: Matrix<R>,
    /// The first result.
    pub before: Matrix<R>,
    /// The second result.
    pub after: Matrix<R>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Decays::<R>, |&Decays { a, before, after, rows, n }| {
    // SAFETY: the arrays have these rows.
    unsafe {
        for col in (0..n).step_by(S::LANES) {
            let live = n - col;
            let mut product = S::splat(R::one());
            for i in 0..rows {
                product = S::mul(product, S::load_n(a.row(i).add(col), live));
                S::store_n(before.row(i).add(col), product, live);
            }
            product = S::splat(R::one());
            for i in (0..rows).rev() {
                S::store_n(after.row(i).add(col), product, live);
                product = S::mul(product, S::load_n(a.row(i).add(col), live));
            }
        }
    }
});

/// The decays from row j to row i of a chunk, out_ji = a_{j+1} ... a_i for j <= i, 0 for j > i. Without gates (null), ones.
///
/// # Safety
/// `a` has `rows` numbers, `out` as many rows and columns.
pub struct Within<R> {
    /// The gates, or null.
    pub a: *const R,
    /// The result.
    pub out: Matrix<R>,
    /// Rows.
    pub rows: usize,
}

kernel!(Within::<R>, |&Within { a, out, rows }| {
    for j in (0..rows).rev() {
        // SAFETY: the arrays have these rows.
        unsafe {
            for col in (0..rows).step_by(S::LANES) {
                let live = rows - col;
                let mut decay = S::zero();
                if j + 1 < rows {
                    decay = S::load_n(out.row(j + 1).add(col), live);
                    if !a.is_null() {
                        decay = S::mul(decay, S::splat(*a.add(j + 1)));
                    }
                }
                S::store_n(out.row(j).add(col), decay, live);
            }
            *out.row(j).add(j) = R::one();
        }
    }
});

/// Back through [`Within`]: out_t += the sum of x_ji y_ji over the pairs of a row j < t and a column that stands at a row
/// r(i) = first + i every >= t, whose decays contain the gate of row t. No differences are taken, which would lose digits.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, x or y zeros where r(i) <= j; `sums` has n numbers, `out` one for each row.
pub struct Crossing<R> {
    /// The decays.
    pub y: Matrix<R>,
    /// Their gradients.
    pub x: Matrix<R>,
    /// The row of the first column.
    pub first: usize,
    /// Rows from one column to the next.
    pub every: usize,
    /// Room for a row.
    pub sums: *mut R,
    /// The result.
    pub out: *mut R,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Crossing::<R>, |&Crossing { y, x, first, every, sums, out, rows, n }| {
    // SAFETY: the arrays have these rows.
    unsafe {
        (0..n).for_each(|i| *sums.add(i) = R::zero());
        let mut start = 0;
        for j in 0..rows.saturating_sub(1) {
            while start < n && first + start * every <= j {
                *sums.add(start) = R::zero();
                start += 1;
            }
            let mut sum = S::zero();
            for col in (start / S::LANES * S::LANES..n).step_by(S::LANES) {
                let (live, to) = (n - col, sums.add(col));
                let (a, b) = (S::load_n(x.row(j).add(col), live), S::load_n(y.row(j).add(col), live));
                let v = S::mul_add(a, b, S::load_n(to, live));
                S::store_n(to, v, live);
                sum = S::add(sum, v);
            }
            *out.add(j + 1) += total::<S>(sum);
        }
    }
});
