//! Products of Householder reflections for any vectors u_j != 0 (docs/math/householder.md):
//!
//! ```text
//! W = H(u_0) H(u_1) ... H(u_{m-1}) E,      H(u) = I - 2 u u^H / ||u||^2,
//! W = (I - U T^-1 U^H) E,                  T = striu(U^H U) + diag(U^H U) / 2,
//! ```
//!
//! E = I, diag(1, ..., 1, s) or diag(e^{i theta}). W is unitary wherever E is. Gradients are those of every entry of U
//! (Mhammedi et al. 2017, Theorem 2); they consist of products alone and are finite for all vectors.

mod apply;
mod apply_vjp;
mod block;
mod blocks;
mod cpu;
mod few;
mod gradients;
mod hand;
mod last_factor;
mod matrix;
mod plan;
mod recover;
mod rows;
mod step;
#[cfg(test)]
mod tests;
mod trail;
mod transition;

#[doc(hidden)]
pub use blocks::crowd;
pub(crate) use plan::route;
pub use recover::from_matrix;

use super::last::Last;
use crate::argument::{Argument, Array, Given, all, argument};
use crate::error::{Error, Result};
use crate::kernels::{Buffer, column_norms2};
use crate::scalar::Scalar;
use crate::sizes::check_len;
use num_traits::{Float, One};

/// The arguments; E is I, diag(1, ..., 1, sign) or diag(e^{i phases}).
pub const ARGUMENTS: &[Argument] = &[
    argument!("vectors", "n m"),
    argument!("sign", "", real, group "last"),
    argument!("phases", "n", angles, group "last"),
];

/// A batch of products of reflections.
#[derive(Clone, Copy, Debug)]
pub struct Householder<'a, T: Scalar> {
    vectors: &'a [T],
    last: Last<'a, T::Real>,
    batch: usize,
    n: usize,
    m: usize,
    /// Whether all entries above the diagonal are zero, as in the oRNN: that saves half of most products.
    trapezoid: bool,
}

impl<'a, T: Scalar> Householder<'a, T> {
    /// A view of vectors (batch, n, m), row-major: the columns of each matrix U are the reflection vectors.
    ///
    /// ```
    /// use isometry_core::operators::{Last, householder::Householder};
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// // H(u) with u = (1, 1), times diag(1, -1)
    /// let (w, mut y) = (Householder::new(&[1.0, 1.0], Last::Sign(&[-1.0]), 1, 2, 1)?, [0.0f64; 2]);
    /// w.apply(&[3.0, 5.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!(y.iter().zip([5.0, -3.0]).all(|(y, z)| (y - z).abs() < 1e-15));
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arrays of other lengths, or phases of a real type.
    pub fn new(vectors: &'a [T], last: Last<'a, T::Real>, batch: usize, n: usize, m: usize) -> Result<Self> {
        check_len("vectors", vectors.len(), &[batch, n, m])?;
        last.check::<T>(batch, n)?;
        Ok(Householder { vectors, last, batch, n, m, trapezoid: false })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [vectors, sign, phases] = all(given)?;
        let [batch, n, m] = vectors.sizes("vectors")?;
        Self::new(vectors.own("vectors")?, Last::of(Last::Sign, sign, phases)?, batch, n, m)
    }

    /// The first (matrix, column) that is not a reflection vector: its entries are finite, but its squared
    /// norm is zero, subnormal or infinite in this precision.
    ///
    /// ```
    /// use isometry_core::operators::{Last, householder::Householder};
    ///
    /// // two vectors, the columns: the second is zero
    /// let w = Householder::new(&[1.0, 0.0, 1.0, 0.0], Last::None, 1, 2, 2)?;
    /// assert_eq!(w.check()?, Some((0, 1)));
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory ends.
    pub fn check(&self) -> Result<Option<(usize, usize)>> {
        let (n, m) = (self.n, self.m);
        if self.vectors.is_empty() {
            return Ok((self.batch > 0 && m > 0).then_some((0, 0)));
        }
        let mut room = Buffer::zeroed(m)?;
        for (b, u) in self.vectors.chunks_exact(n * m).enumerate() {
            for (j, norm) in column_norms2(u, &mut room).iter().enumerate() {
                if !norm.is_normal() && (0..n).all(|i| u[i * m + j].finite()) {
                    return Ok(Some((b, j)));
                }
            }
        }
        Ok(None)
    }
}

/// Refuses a sign outside [-1, 1] and a vector without a direction. NaN passes.
pub(crate) fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [vectors, sign, _] = all(given)?;
    if sign.real().is_some_and(|sign| sign.iter().any(|s| s.abs() > T::Real::one())) {
        return Err(Error::value("sign", "must lie in [-1, 1]"));
    }
    if matches!(vectors.array, Array::None) {
        return Ok(());
    }
    let [batch, n, m] = vectors.sizes("vectors")?;
    match Householder::new(vectors.own("vectors")?, Last::None, batch, n, m)?.check()? {
        None => Ok(()),
        Some((b, j)) => Err(Error::value(
            "vectors",
            format!(
                "must not contain a zero reflection vector nor one whose squared norm overflows or is denormal (lengths \
                 may lie in 1.1e-19..1.8e19 in float32, in 1.5e-154..1.3e154 in float64): column {j} of matrix {b} does"
            ),
        )),
    }
}

operator! {
    Householder, |own, i| [own.batch, own.n, own.n],
    if i == 0 { Array::Own(own.vectors) } else { own.last.array(i == 2) }
}
