//! Rows of unit length.

use super::rows::dot;
use super::{Matrix, total};
use crate::dispatch::kernel;
use crate::simd::Simd;

/// (by x) . (by_y y), where x . y may overflow.
///
/// # Safety
/// As of [`dot`].
#[inline(always)]
unsafe fn dot_by<S: Simd>(by: S::R, x: *const S::R, by_y: S::R, y: *const S::R, n: usize) -> S::R {
    // SAFETY: both have n numbers.
    unsafe {
        let mut sum = S::zero();
        for col in (0..n).step_by(S::LANES) {
            let (a, b) = (S::load_n(x.add(col), n - col), S::load_n(y.add(col), n - col));
            sum = S::mul_add(S::mul(S::splat(by), a), S::mul(S::splat(by_y), b), sum);
        }
        total::<S>(sum)
    }
}

/// Rows divided by r_i = sqrt(|x_i|^2 + epsilon): the factors 1 / r_i (in `by`), or with gradients y_bar of the quotients those of
/// x, in place. A row whose square overflows is multiplied by a power of two, `down`, first.
///
/// # Safety
/// The matrices have `rows` rows of n numbers, y_bar may be null; `by` is null or has a number for each row.
pub struct Unit<R> {
    /// x
    pub x: Matrix<R>,
    /// The gradient.
    pub y_bar: Matrix<R>,
    /// The factors.
    pub by: *mut R,
    /// epsilon
    pub epsilon: R,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub n: usize,
}

kernel!(Unit::<R>, |&Unit { x, y_bar, by, epsilon, rows, n }| {
    let smallest = R::of(if size_of::<R>() == 8 { 2f64.powi(-768) } else { 2f64.powi(-96) });
    for i in 0..rows {
        let own = x.row(i);
        // SAFETY: the matrices have these rows.
        unsafe {
            let (mut square, mut down) = (dot::<S>(own, own, n), R::one());
            let long = square * R::min_positive_value() >= R::one();
            if long {
                down = smallest;
                square = dot_by::<S>(down, own, down, own, n);
            }
            let r = R::one() / num_traits::Float::sqrt(square + epsilon * down * down);
            if !by.is_null() {
                *by.add(i) = r * down;
            }
            if y_bar.at.is_null() {
                continue;
            }
            let bar = y_bar.row(i);
            let across = if long { dot_by::<S>(down, own, R::one(), bar, n) } else { dot::<S>(own, bar, n) };
            let across = S::splat(r * r * across * down);
            for col in (0..n).step_by(S::LANES) {
                let (live, at) = (n - col, bar.add(col));
                let bar = S::neg_mul_add(across, S::load_n(own.add(col), live), S::load_n(at, live));
                S::store_n(at, S::mul(S::splat(r * down), bar), live);
            }
        }
    }
});
