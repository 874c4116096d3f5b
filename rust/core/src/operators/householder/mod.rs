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
mod blocks;
mod cpu;
mod matrix;
mod recover;
#[cfg(test)]
mod tests;

pub use blocks::apply_keep_len;
pub use recover::from_matrix;

use crate::error::{Error, Result};
use crate::kernels::{Buffer, all_zero, balance, column_norms2};
use crate::operator::{Operator, Side};
use crate::scalar::Scalar;
use crate::sizes::{check_len, size};
use num_traits::Float;

/// The last factor E.
#[derive(Clone, Copy, Debug)]
pub enum Last<'a, R> {
    /// E = I
    None,
    /// E = diag(1, ..., 1, s), one s per matrix.
    Sign(&'a [R]),
    /// E = diag(e^{i theta}), n angles per matrix; complex types only.
    Phases(&'a [R]),
}

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

/// Outputs of the gradients; `None` for those not requested. Given arrays are overwritten.
#[derive(Debug)]
pub struct Gradients<'a, T: Scalar> {
    /// (batch, n, m)
    pub vectors: Option<&'a mut [T]>,
    /// (batch,)
    pub sign: Option<&'a mut [T::Real]>,
    /// (batch, n)
    pub phases: Option<&'a mut [T::Real]>,
}

impl<T: Scalar> Default for Gradients<'_, T> {
    fn default() -> Self {
        Gradients { vectors: None, sign: None, phases: None }
    }
}

impl<'a, T: Scalar> Householder<'a, T> {
    /// A view of vectors (batch, n, m), row-major: the columns of each matrix U are the reflection vectors.
    pub fn new(vectors: &'a [T], last: Last<'a, T::Real>, batch: usize, n: usize, m: usize) -> Result<Self> {
        check_len("vectors", vectors.len(), &[batch, n, m])?;
        match last {
            Last::None => {}
            Last::Sign(sign) => {
                check_len("sign", sign.len(), &[batch])?;
                if n == 0 && batch > 0 {
                    return Err(Error::shape("vectors", "n >= 1 beside a sign", 0));
                }
            }
            Last::Phases(phases) => {
                check_len("phases", phases.len(), &[batch, n])?;
                if T::PARTS == 1 {
                    return Err(Error::value("phases", "need complex vectors, got real ones"));
                }
            }
        }
        Ok(Householder { vectors, last, batch, n, m, trapezoid: false })
    }

    /// The first (matrix, column) that is not a valid reflection vector: its entries are finite, but its squared norm is
    /// zero, subnormal or infinite in this precision.
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

    /// The VJP of the matrices: from their cotangent (batch, n, n) to the parameters.
    pub fn matrix_vjp(&self, ct: &[T], gradients: Gradients<'_, T>, threads: usize) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_gradients(&gradients)?;
        self.balanced(gradients, |own, gradients| own.matrix_vjp_cpu(None, ct, gradients, threads))
    }

    /// Elements of `keep` in [`Householder::matrix_keeping`]: T^-1 and T^-1 U^H E of every matrix.
    pub fn keep_len(&self) -> Result<usize> {
        let [rows, columns] = self.kept();
        size("keep", &[self.batch, rows, columns])
    }

    /// [`Operator::matrix`] that also saves factors for backward, about a fifth of the gradient's time.
    pub fn matrix_keeping(&self, out: &mut [T], keep: &mut [T], threads: usize) -> Result<()> {
        self.check_matrix("out", out)?;
        check_len("keep", keep.len(), &[self.keep_len()?])?;
        self.balanced(Gradients::default(), |own, _| own.matrix_cpu(out, Some(keep), threads))
    }

    /// [`Householder::matrix_vjp`] from the output of [`Householder::matrix_keeping`], with bitwise equal results.
    pub fn matrix_vjp_kept(
        &self,
        kept: &[T],
        ct: &[T],
        gradients: Gradients<'_, T>,
        threads: usize,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        check_len("kept", kept.len(), &[self.keep_len()?])?;
        self.check_gradients(&gradients)?;
        self.balanced(gradients, |own, gradients| own.matrix_vjp_cpu(Some(kept), ct, gradients, threads))
    }

    /// The forward side of [`Operator::apply`] that also saves its intermediate results for backward: [`apply_keep_len`]
    /// elements of each matrix.
    pub fn apply_keeping(
        &self,
        x: &[T],
        rows: usize,
        out: &mut [T],
        keep: &mut [T],
        threads: usize,
    ) -> Result<()> {
        self.check_rows(x, rows, Side::Forward, out)?;
        self.check_keep(keep, rows)?;
        self.balanced(Gradients::default(), |own, _| own.apply_keeping_cpu(x, rows, out, keep, threads))
    }

    fn check_keep(&self, keep: &[T], rows: usize) -> Result<()> {
        match apply_keep_len(self.n, self.m, rows, self.has_last())? {
            0 => Err(Error::value("kept", "was given for a call that keeps nothing")),
            len => check_len("kept", keep.len(), &[self.batch, len]),
        }
    }

    /// The VJP of [`Operator::apply`]: from the cotangent (batch, rows, n) to the parameters and x. `kept` is the output
    /// of [`Householder::apply_keeping`]; the results are bitwise the same without it.
    #[allow(clippy::too_many_arguments, reason = "the call of the seam, one to one")]
    pub fn apply_vjp(
        &self,
        kept: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        gradients: Gradients<'_, T>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        let sizes = [self.batch, rows, self.n];
        check_len("x", x.len(), &sizes)?;
        check_len("ct", ct.len(), &sizes)?;
        if let Some(x_bar) = &x_bar {
            check_len("x_bar", x_bar.len(), &sizes)?;
        }
        self.check_gradients(&gradients)?;
        if let Some(kept) = kept {
            self.check_keep(kept, rows)?;
            if side == Side::Adjoint {
                return Err(Error::value("kept", "belongs to W x, not to W^H x"));
            }
        }
        self.balanced(gradients, |own, gradients| {
            own.apply_vjp_cpu(kept, x, ct, rows, side, gradients, x_bar, threads)
        })
    }

    /// Runs `f` on the operator with columns scaled to moderate norms and its shape detected, and converts the gradient
    /// that f wrote to the given columns. Matrices without entries are skipped.
    fn balanced(
        &self,
        gradients: Gradients<'_, T>,
        f: impl FnOnce(&Householder<'_, T>, Gradients<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let Householder { vectors, last, batch, n, m, .. } = *self;
        if batch == 0 || n == 0 {
            return Ok(());
        }
        let trapezoid = trapezoidal(vectors, n, m);
        let Some(balanced) = balance(vectors, batch, n, m)? else {
            return f(&Householder { trapezoid, ..*self }, gradients);
        };
        let Gradients { vectors: mut bar, sign, phases } = gradients;
        let own = Householder { vectors: &balanced.vectors, last, batch, n, m, trapezoid };
        f(&own, Gradients { vectors: bar.as_deref_mut(), sign, phases })?;
        if let Some(bar) = bar {
            balanced.pull(bar);
        }
        Ok(())
    }

    fn check_gradients(&self, gradients: &Gradients<'_, T>) -> Result<()> {
        if let Some(vectors) = &gradients.vectors {
            check_len("vectors_bar", vectors.len(), &[self.vectors.len()])?;
        }
        if let Some(sign) = &gradients.sign {
            check_len("sign_bar", sign.len(), &[self.batch])?;
            if !matches!(self.last, Last::Sign(_)) {
                return Err(Error::value("sign_bar", "is wanted, but the product has no sign"));
            }
        }
        if let Some(phases) = &gradients.phases {
            check_len("phases_bar", phases.len(), &[self.batch, self.n])?;
            if !matches!(self.last, Last::Phases(_)) {
                return Err(Error::value("phases_bar", "is wanted, but the product has no phases"));
            }
        }
        Ok(())
    }
}

/// Whether all entries above the diagonals of the (n, m) matrices are zero, and every column has an entry below: if m >
/// n the last ones would be zero, blocks of columns without a row.
fn trapezoidal<T: Scalar>(vectors: &[T], n: usize, m: usize) -> bool {
    let above = |(i, row): (usize, &[T])| all_zero(&row[(i + 1).min(m)..]);
    1 < m && m <= n && vectors.chunks_exact(n * m).all(|u| u.chunks_exact(m).take(m).enumerate().all(above))
}

impl<T: Scalar> Operator<T> for Householder<'_, T> {
    fn batch(&self) -> usize {
        self.batch
    }

    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn matrix(&self, out: &mut [T], threads: usize) -> Result<()> {
        self.check_matrix("out", out)?;
        self.balanced(Gradients::default(), |own, _| own.matrix_cpu(out, None, threads))
    }

    fn apply(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        if out.is_empty() {
            return Ok(());
        }
        self.balanced(Gradients::default(), |own, _| own.apply_cpu(x, rows, side, out, threads))
    }
}
