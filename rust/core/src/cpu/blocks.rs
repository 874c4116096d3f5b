//! Rows times a block-diagonal matrix, y = diag(W_0, ..., W_{nb-1}) x: a row is x (nb, q), its result (nb, p).

use crate::error::Result;
use crate::kernels::Matrices;
use crate::scalar::Scalar;
use crate::side::Side;

/// The blocks: W (nb, p, q).
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a, T: Scalar>(Matrices<'a, T>);

impl<'a, T: Scalar> Blocks<'a, T> {
    /// Calls check the length of `data`.
    pub fn new(data: &'a [T], (batch, p, q): (usize, usize, usize)) -> Self {
        Blocks(Matrices { data, batch, p, q, interleaved: true })
    }

    /// x (rows, nb, q) -> out (rows, nb, p).
    ///
    /// # Errors
    /// If an array has another length.
    pub fn apply(&self, x: &[T], rows: usize, out: &mut [T], threads: usize) -> Result<()> {
        self.0.apply(x, rows, Side::Forward, out, threads)
    }

    /// The gradients that are wanted: of the blocks and of x, from that of the result.
    ///
    /// # Errors
    /// If an array has another length.
    pub fn apply_vjp(
        &self,
        x: &[T],
        ct: &[T],
        rows: usize,
        weight_bar: Option<&mut [T]>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        self.0.apply_vjp(x, ct, rows, Side::Forward, weight_bar, x_bar, threads)
    }
}
