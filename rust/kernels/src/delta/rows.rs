//! Passes over the rows of a chunk.

use super::{Matrix, factor, total};
use crate::dispatch::kernel;
use crate::simd::Simd;

/// out_i = by_i x_i, or out_i += by_i x_i.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, `by` (null: ones) a number for each row, at its pitch, or n if `wide`.
pub struct Scaled<R> {
    /// The rows.
    pub x: Matrix<R>,
    /// The factors.
    pub by: Matrix<R>,
    /// Whether they are as wide as a row.
    pub wide: bool,
    /// The result, which may be x.
    pub out: Matrix<R>,
    /// Whether it is added to.
    pub add: bool,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Scaled::<R>, |&Scaled { x, by, wide, out, add, rows, n }| {
    for i in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            for col in (0..n).step_by(S::LANES) {
                let (live, to) = (n - col, out.row(i).add(col));
                let mut v = S::load_n(x.row(i).add(col), live);
                if !by.at.is_null() {
                    v = S::mul(v, factor::<S>(by.row(i), wide, col, live));
                }
                if add {
                    v = S::add(v, S::load_n(to, live));
                }
                S::store_n(to, v, live);
            }
        }
    }
});

/// out_i = x_i . y_i
///
/// # Safety
/// The matrices have `rows` rows of n numbers, `out` a number for each.
pub struct Dots<R> {
    /// The rows.
    pub x: Matrix<R>,
    /// Their partners.
    pub y: Matrix<R>,
    /// The result.
    pub out: *mut R,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Dots::<R>, |&Dots { x, y, out, rows, n }| {
    for i in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe { *out.add(i) = dot::<S>(x.row(i), y.row(i), n) };
    }
});

/// x . y of n numbers
///
/// # Safety
/// Both exist; the processor has the instruction set of S.
#[inline(always)]
pub(super) unsafe fn dot<S: Simd>(x: *const S::R, y: *const S::R, n: usize) -> S::R {
    // SAFETY: both have n numbers.
    unsafe {
        let mut sums = [S::zero(); 2];
        for (at, col) in (0..n).step_by(S::LANES).enumerate() {
            let (a, b) = (S::load_n(x.add(col), n - col), S::load_n(y.add(col), n - col));
            sums[at % 2] = S::mul_add(a, b, sums[at % 2]);
        }
        total::<S>(S::add(sums[0], sums[1]))
    }
}

/// out_ij = x_ij y_ij (or x_ij, where y is null) where i <= j (or everywhere, unless `upper`), else 0.
///
/// # Safety
/// The matrices have `rows` rows of n numbers; a pitch of 0 repeats a row of y.
pub struct Masked<R> {
    /// The first factor; not read where the result is 0.
    pub x: Matrix<R>,
    /// The second factor.
    pub y: Matrix<R>,
    /// The result, which may be x.
    pub out: Matrix<R>,
    /// Whether only the upper triangle remains.
    pub upper: bool,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Masked::<R>, |&Masked { x, y, out, upper, rows, n }| {
    for i in 0..rows {
        let from = if upper { i.min(n) } else { 0 };
        // SAFETY: the matrices have these rows; the vectors that hold the diagonal are cut there.
        unsafe {
            for col in (from / S::LANES * S::LANES..n).step_by(S::LANES) {
                let live = n - col;
                let mut v = S::load_n(x.row(i).add(col), live);
                if !y.at.is_null() {
                    v = S::mul(v, S::load_n(y.row(i).add(col), live));
                }
                S::store_n(out.row(i).add(col), v, live);
            }
            for col in 0..from {
                *out.row(i).add(col) = R::zero();
            }
        }
    }
});

/// z = v - w, r_i = beta_i z_i.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, beta a number for each; z may be w, and null: not written.
pub struct Residual<R> {
    /// v
    pub v: Matrix<R>,
    /// w
    pub w: Matrix<R>,
    /// beta
    pub beta: *const R,
    /// z
    pub z: Matrix<R>,
    /// r, which may be w without z.
    pub r: Matrix<R>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Residual::<R>, |&Residual { v, w, beta, z, r, rows, n }| {
    for i in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            let beta = S::splat(*beta.add(i));
            for col in (0..n).step_by(S::LANES) {
                let live = n - col;
                let own = S::sub(S::load_n(v.row(i).add(col), live), S::load_n(w.row(i).add(col), live));
                if !z.at.is_null() {
                    S::store_n(z.row(i).add(col), own, live);
                }
                S::store_n(r.row(i).add(col), S::mul(beta, own), live);
            }
        }
    }
});

/// Back through the residual: v_bar_i = beta_i r_bar_i (also negated, in `negative`), beta_bar_i = r_bar_i . z_i.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, beta and its gradient a number for each; v_bar may be null.
pub struct Values<R> {
    /// The gradient of r.
    pub r_bar: Matrix<R>,
    /// z
    pub z: Matrix<R>,
    /// beta
    pub beta: *const R,
    /// The gradient of v.
    pub v_bar: Matrix<R>,
    /// That of w.
    pub negative: Matrix<R>,
    /// The gradient of beta.
    pub beta_bar: *mut R,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Values::<R>, |&Values { r_bar, z, beta, v_bar, negative, beta_bar, rows, n }| {
    for i in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            *beta_bar.add(i) = dot::<S>(r_bar.row(i), z.row(i), n);
            let beta = S::splat(*beta.add(i));
            for col in (0..n).step_by(S::LANES) {
                let live = n - col;
                let own = S::mul(beta, S::load_n(r_bar.row(i).add(col), live));
                if !v_bar.at.is_null() {
                    S::store_n(v_bar.row(i).add(col), own, live);
                }
                S::store_n(negative.row(i).add(col), S::sub(S::zero(), own), live);
            }
        }
    }
});

/// Back through y = by * k: with t = by_i * y_bar_i, out_i = t or out_i += t, and the gradient of the logarithm of `by`,
/// k_i . t, or k_i * t if `wide`, in `gate`.
///
/// # Safety
/// The matrices have `rows` rows of n numbers; `by` and `gate` are null or a number for each row, at their pitch, or n if
/// `wide`.
pub struct Through<R> {
    /// The gradient of y.
    pub y_bar: Matrix<R>,
    /// The factors.
    pub by: Matrix<R>,
    /// Whether they are as wide as a row.
    pub wide: bool,
    /// k
    pub k: Matrix<R>,
    /// The gradient of k; it may be `y_bar`.
    pub out: Matrix<R>,
    /// Whether it is added to.
    pub add: bool,
    /// The gradient of the logarithm.
    pub gate: Matrix<R>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Through::<R>, |&Through { y_bar, by, wide, k, out, add, gate, rows, n }| {
    for i in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            let mut sum = S::zero();
            for col in (0..n).step_by(S::LANES) {
                let (live, to) = (n - col, out.row(i).add(col));
                let mut t = S::load_n(y_bar.row(i).add(col), live);
                if !by.at.is_null() {
                    t = S::mul(t, factor::<S>(by.row(i), wide, col, live));
                }
                if !gate.at.is_null() {
                    let own = S::load_n(k.row(i).add(col), live);
                    if wide {
                        S::store_n(gate.row(i).add(col), S::mul(own, t), live);
                    } else {
                        sum = S::mul_add(own, t, sum);
                    }
                }
                if add {
                    t = S::add(t, S::load_n(to, live));
                }
                S::store_n(to, t, live);
            }
            if !gate.at.is_null() && !wide {
                *gate.row(i) = total::<S>(sum);
            }
        }
    }
});

/// The sums of the columns: out_j = sum_i x_ij y_ij, or of x_ij, where y is null.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, `out` n.
pub struct Sums<R> {
    /// The first factor.
    pub x: Matrix<R>,
    /// The second factor.
    pub y: Matrix<R>,
    /// The sums.
    pub out: *mut R,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Sums::<R>, |&Sums { x, y, out, rows, n }| {
    // SAFETY: the matrices have these rows.
    unsafe {
        for col in (0..n).step_by(S::LANES) {
            let (live, mut sum) = (n - col, S::zero());
            for i in 0..rows {
                let mut v = S::load_n(x.row(i).add(col), live);
                if !y.at.is_null() {
                    v = S::mul(v, S::load_n(y.row(i).add(col), live));
                }
                sum = S::add(v, sum);
            }
            S::store_n(out.add(col), sum, live);
        }
    }
});
