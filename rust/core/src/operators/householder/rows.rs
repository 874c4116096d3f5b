//! c = W x for rows, and its gradient: few rows by one reflection at a time, others by blocks. W itself too where m > 4 n: one
//! T of that many columns in n dimensions would cost its orthogonality.

use super::Householder;
use super::blocks::few;
use super::gradients::{Gradients, Wants};
use crate::error::Result;
use crate::kernels::{Buffer, identity};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::side::Side;
use num_traits::Zero;

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn apply_rows(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        threads: usize,
    ) -> Result<()> {
        if few(rows) {
            self.apply_few(x, rows, side, out, threads)
        } else {
            self.apply_blocks(x, rows, side, out, threads)
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the call of the seam, one to one")]
    pub(super) fn apply_vjp_rows(
        &self,
        kept: Option<&[T]>,
        [x, ct]: [&[T]; 2],
        rows: usize,
        side: Side,
        gradients: Gradients<'_, T>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        let Gradients { mut vectors, mut last } = gradients;
        // sums over rows start from zero, also over no rows at all
        if let Some(last) = &mut last {
            last.fill(T::Real::zero());
        }
        if rows == 0 {
            if let Some(vectors) = &mut vectors {
                vectors.fill(T::zero());
            }
            return Ok(());
        }
        // the gradient of the adjoint map is that of the forward map with x and ct exchanged
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let wants = Wants {
            side,
            vectors: vectors.map(|x| Shared(x.as_mut_ptr())),
            last: last.map(|x| Shared(x.as_mut_ptr())),
            x_bar: x_bar.map(|x| Shared(x.as_mut_ptr())),
        };
        if few(rows) {
            self.apply_vjp_few(x, ct, rows, &wants, threads)
        } else {
            self.apply_vjp_blocks(kept, x, ct, rows, &wants, threads)
        }
    }

    /// W, as what its blocks make of the identity: the rows of I W^* are the conjugates of those of W.
    pub(super) fn matrix_crowd(&self, out: &mut [T], threads: usize) -> Result<()> {
        self.apply_rows(&identity(self.batch, self.n)?, self.n, Side::Adjoint, out, threads)?;
        out.iter_mut().for_each(|w| *w = w.conj());
        Ok(())
    }

    pub(super) fn matrix_crowd_vjp(&self, ct: &[T], bars: Gradients<'_, T>, threads: usize) -> Result<()> {
        let mut rows = Buffer::zeroed(ct.len())?;
        rows.iter_mut().zip(ct).for_each(|(row, ct)| *row = ct.conj());
        let x = identity(self.batch, self.n)?;
        self.apply_vjp_rows(None, [&x, &rows], self.n, Side::Adjoint, bars, None, threads)
    }
}
