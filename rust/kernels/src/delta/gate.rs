//! The decays of a chunk as products of the gates a_i = e^{g_i} of its rows: only differences of the sums of g are formed, so
//! that nothing overflows, and a decay that underflows is 0.

use super::Matrix;
use crate::activation::exponential::exponential;
use crate::dispatch::Kernel;
use crate::scalar::Real;
use crate::simd::Simd;

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

impl<R: Real> Kernel<R> for Exps<R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        let limit = if size_of::<R>() == 8 { 708.0 } else { 87.0 };
        // SAFETY: the arrays have these numbers.
        unsafe {
            let (low, high) = (S::splat(R::of(-limit)), S::splat(R::of(limit)));
            for col in (0..self.n).step_by(S::LANES) {
                let g = S::load_n(self.g.add(col), self.n - col);
                let within = S::min(S::select_gt(g, low, g, low), high);
                let (power, rest) = exponential::<S>(within);
                let e = S::mul_add(power, rest, power);
                let e = S::select_gt(g, high, S::splat(R::infinity()), S::select_gt(low, g, S::zero(), e));
                // NaN stays
                let e = S::select_eq(g, g, e, g);
                S::store_n(self.out.add(col), e, self.n - col);
            }
        }
    }
}

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

impl<R: Real> Kernel<R> for Decays<R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        let Decays { a, before, after, rows, n } = *self;
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
    }
}

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

impl<R: Real> Kernel<R> for Within<R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        let Within { a, out, rows } = *self;
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
    }
}
