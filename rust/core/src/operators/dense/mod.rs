//! A plain matrix without structure: c = W x for W of any shape (p, q).
//!
//! Rows: C = X W^T, and for the adjoint side C = X conj(W). With the cotangent C_bar: X_bar = C_bar conj(W) and
//! W_bar = C_bar^T conj(X); for the adjoint side X_bar = C_bar W^T and W_bar = X^T conj(C_bar).

mod cpu;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::operator::{Operator, Side};
use crate::scalar::Scalar;
use crate::sizes::check_len;

/// A batch of matrices.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a, T: Scalar> {
    weight: &'a [T],
    batch: usize,
    p: usize,
    q: usize,
}

impl<'a, T: Scalar> Dense<'a, T> {
    /// A view of matrices (batch, p, q), row-major.
    pub fn new(weight: &'a [T], batch: usize, p: usize, q: usize) -> Result<Self> {
        check_len("weight", weight.len(), &[batch, p, q])?;
        Ok(Dense { weight, batch, p, q })
    }

    /// (features in, features out) of a side.
    fn sizes(&self, side: Side) -> (usize, usize) {
        if side == Side::Forward { (self.q, self.p) } else { (self.p, self.q) }
    }

    /// The VJP of [`Operator::apply`] with respect to the matrices and x. Given outputs are overwritten.
    #[allow(clippy::too_many_arguments, reason = "the call of the seam, one to one")]
    pub fn apply_vjp(
        &self,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        weight_bar: Option<&mut [T]>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        let (from, into) = self.sizes(side);
        check_len("x", x.len(), &[self.batch, rows, from])?;
        check_len("ct", ct.len(), &[self.batch, rows, into])?;
        if let Some(weight_bar) = &weight_bar {
            check_len("weight_bar", weight_bar.len(), &[self.weight.len()])?;
        }
        if let Some(x_bar) = &x_bar {
            check_len("x_bar", x_bar.len(), &[x.len()])?;
        }
        self.apply_vjp_cpu(x, ct, rows, side, weight_bar, x_bar, threads)
    }
}

impl<T: Scalar> Operator<T> for Dense<'_, T> {
    fn batch(&self) -> usize {
        self.batch
    }

    fn shape(&self) -> (usize, usize) {
        (self.p, self.q)
    }

    fn matrix(&self, out: &mut [T], _threads: usize) -> Result<()> {
        self.check_matrix("out", out)?;
        out.copy_from_slice(self.weight);
        Ok(())
    }

    fn apply(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        self.apply_cpu(x, rows, side, out, threads)
    }
}
