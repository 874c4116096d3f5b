//! The operator trait: a batch of matrices, applied to rows.
//!
//! A row x is a vector in the last axis; `apply` gives c = W x for every row, that is C = X W^T for the array. An
//! operator of `batch()` matrices takes `batch()` groups of `rows` rows each.

use crate::error::Result;
use crate::scalar::Scalar;
use crate::sizes::check_len;

/// Whether W or W^H is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// c = W x
    Forward,
    /// c = W^H x
    Adjoint,
}

/// A batch of linear operators: a borrowed view created per call, validated on creation.
pub trait Operator<T: Scalar>: Sync {
    /// Number of matrices.
    fn batch(&self) -> usize;
    /// (n_out, n_in)
    fn shape(&self) -> (usize, usize);
    /// Writes the matrices, (batch, n_out, n_in) row-major, by the cheapest route.
    fn matrix(&self, out: &mut [T], threads: usize) -> Result<()>;
    /// Applies W or W^H to `rows` rows per matrix: x (batch, rows, n_in) -> out (batch, rows, n_out), or back.
    fn apply(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) -> Result<()>;

    /// Checks the sizes of the arrays of [`Operator::apply`].
    fn check_rows(&self, x: &[T], rows: usize, side: Side, out: &[T]) -> Result<()> {
        let (p, q) = self.shape();
        let (into, from) = if side == Side::Forward { (p, q) } else { (q, p) };
        check_len("x", x.len(), &[self.batch(), rows, from])?;
        check_len("out", out.len(), &[self.batch(), rows, into])
    }

    /// Checks the size of the array of [`Operator::matrix`].
    fn check_matrix(&self, argument: &'static str, matrix: &[T]) -> Result<()> {
        let (p, q) = self.shape();
        check_len(argument, matrix.len(), &[self.batch(), p, q])
    }
}
