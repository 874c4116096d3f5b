//! The delta rule, S <- (I - beta k k^T) diag(a) S + beta k v^T: what its chunks need beside products.
//!
//! A chunk has rows (keys) and, for some of them, a query. The factors of rows are numbers, or vectors of the width of a
//! row ("wide": a gate for each row of S).

mod gate;
mod rows;
mod spread;
mod token;
mod unit;
mod wide;

pub use gate::{Crossing, Decays, Exps, Within};
pub use rows::{Dots, Masked, Residual, Scaled, Sums, Through, Values};
pub use spread::Spread;
pub use token::Token;
pub use unit::Unit;
pub use wide::{WideGram, WidePull};

use crate::dispatch::compiled;
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::Zero;

compiled! {
    /// The delta rule, compiled for each real type.
    DeltaKernels: Real for f32, f64; {
        /// [`Exps`]
        fn delta_exps(Exps);
        /// [`Crossing`]
        fn delta_crossing(Crossing);
        /// [`Decays`]
        fn delta_decays(Decays);
        /// [`Within`]
        fn delta_within(Within);
        /// [`Dots`]
        fn delta_dots(Dots);
        /// [`Masked`]
        fn delta_masked(Masked);
        /// [`Residual`]
        fn delta_residual(Residual);
        /// [`Scaled`]
        fn delta_scaled(Scaled);
        /// [`Spread`]
        fn delta_spread(Spread);
        /// [`Sums`]
        fn delta_sums(Sums);
        /// [`Through`]
        fn delta_through(Through);
        /// [`Unit`]
        fn delta_unit(Unit);
        /// [`Values`]
        fn delta_values(Values);
        /// [`Token`]
        fn delta_token(Token);
        /// [`WideGram`]
        fn delta_wide_gram(WideGram);
        /// [`WidePull`]
        fn delta_wide_pull(WidePull);
    }
}

/// The sum of the lanes, from the first to the last.
///
/// # Safety
/// The processor has the instruction set of S.
#[inline(always)]
unsafe fn total<S: Simd>(v: S::V) -> S::R {
    let mut lanes = [S::R::zero(); 16];
    // SAFETY: a vector has at most 16 lanes.
    unsafe { S::store(lanes.as_mut_ptr(), v) };
    lanes[..S::LANES].iter().fold(S::R::zero(), |sum, &x| sum + x)
}

/// Factors of rows: null for ones, else a number per row, or as many as a row has if `wide`.
///
/// # Safety
/// The processor has the instruction set of S; the factors exist.
#[inline(always)]
unsafe fn factor<S: Simd>(by: *const S::R, wide: bool, col: usize, live: usize) -> S::V {
    // SAFETY: the factors exist.
    unsafe { if wide { S::load_n(by.add(col), live) } else { S::splat(*by) } }
}

/// A matrix in memory: its first number and its row stride.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<R> {
    /// The first number.
    pub at: *mut R,
    /// The row stride.
    pub pitch: usize,
}

impl<R: Real> Matrix<R> {
    /// A matrix that is only read.
    pub fn of(at: *const R, pitch: usize) -> Self {
        Matrix { at: at.cast_mut(), pitch }
    }

    /// No matrix.
    pub fn none() -> Self {
        Matrix { at: std::ptr::null_mut(), pitch: 0 }
    }

    /// Its row i.
    #[inline(always)]
    pub fn row(self, i: usize) -> *mut R {
        self.at.wrapping_add(i * self.pitch)
    }

    /// Its rows from i on.
    #[inline(always)]
    pub fn from(self, i: usize) -> Self {
        Matrix { at: self.row(i), ..self }
    }

    /// Its columns from j on.
    #[inline(always)]
    pub fn right(self, j: usize) -> Self {
        Matrix { at: self.at.wrapping_add(j), ..self }
    }
}
