//! W of many more reflections than dimensions, m > 4 n. With one T for all of them W would not be orthogonal,
//! so blocks are applied to the identity. The rows of I W^* are the conjugates of those of W.

use super::Householder;
use super::gradients::Gradients;
use crate::error::Result;
use crate::kernels::{Buffer, identity};
use crate::scalar::Scalar;
use crate::side::Side;

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn matrix_crowd(&self, out: &mut [T], threads: usize) -> Result<()> {
        self.apply_rows(&identity(self.batch, self.n)?, self.n, Side::Adjoint, out, threads)?;
        out.iter_mut().for_each(|w| *w = w.conj());
        Ok(())
    }

    pub(super) fn matrix_crowd_vjp(&self, ct: &[T], gradients: Gradients<'_, T>, threads: usize) -> Result<()> {
        let mut rows = Buffer::zeroed(ct.len())?;
        rows.iter_mut().zip(ct).for_each(|(row, ct)| *row = ct.conj());
        let x = identity(self.batch, self.n)?;
        self.apply_vjp_rows(None, [&x, &rows], self.n, Side::Adjoint, gradients, None, threads)
    }
}
