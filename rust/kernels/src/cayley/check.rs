//! Checks whether a computed W is orthogonal to working precision. Elimination without pivoting can lose all accuracy to
//! growth if ||A|| is large, and no cheap bound predicts this, so each result is measured:
//!
//! ```text
//! max_i | ||w_i||^2 - 1 |   and   | ||W z||^2 / ||z||^2 - 1 |   for one fixed z without structure,
//! ```
//!
//! 2 n^2 multiply-adds against 2 n^3. The first measures the diagonal of W W^H - I, the second all of it. Over 10^5
//! matrices (n = 2..64, ||A|| = 3..1000; dense, one dominant row, few planes, entries over many magnitudes) no W that
//! passed at about 2 n eps had e(W) above 8; the bound is 20. The verdict on a matrix does not depend on others in its
//! batch.
//!
//! Beyond a Frobenius norm of 10^6 (10^12 in double precision) products of pivots may overflow into a wrong but
//! orthogonal W: those matrices are always recomputed.

use crate::scalar::{Real, Scalar};

/// Bounds that a W must satisfy.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest deviation from 1 of a row's squared norm, and of the probe's.
    pub deviation: f64,
    /// Largest squared Frobenius norm of the upper triangle of A.
    pub size: f64,
}

impl Limits {
    /// For a result computed in its own precision.
    pub fn own<T: Scalar>(n: usize) -> Self {
        let eps = T::Real::EPS.f64();
        Limits { deviation: 2.0 * (n + 1) as f64 * eps, size: if eps > 1e-10 { 1e12 } else { 1e24 } }
    }

    /// For a result in double precision that will be rounded to T.
    pub fn rounded<T: Scalar>(n: usize) -> Self {
        Limits { deviation: 0.25 * (n + 1) as f64 * T::Real::EPS.f64(), size: 1e24 }
    }

    /// Whether to accept a W with these measures. If A contains NaN, `size` is NaN and W is accepted:
    /// recomputing would not help.
    #[inline(always)]
    pub fn pass(&self, deviation: f64, probe: f64, size: f64) -> bool {
        size.is_nan() || (deviation <= self.deviation && probe <= self.deviation && size <= self.size)
    }
}

/// z_j of the probe: signs and magnitudes without a pattern that a matrix is likely to share.
#[inline(always)]
pub fn probe<R: Real>(j: usize) -> R {
    const SIZES: [f64; 16] = [
        1.0, -1.25, 1.5, 1.125, -1.0, -1.375, 1.25, -1.5, 1.0, 1.375, -1.125, 1.25, 1.5, -1.0, -1.25, -1.375,
    ];
    R::of(SIZES[(j + j / 16) % 16])
}

/// ||z||^2
#[inline(always)]
pub fn probe_norm2(n: usize) -> f64 {
    (0..n).map(|j| probe::<f64>(j).powi(2)).sum()
}
