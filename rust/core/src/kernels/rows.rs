//! Rows times a batch of matrices: C = X W^T for c = W x, C = X conj(W) for c = W^H x, and the gradients,
//!
//! ```text
//! X_bar = C_bar conj(W),   W_bar = C_bar^T conj(X);   adjoint: X_bar = C_bar W^T,   W_bar = X^T conj(C_bar).
//! ```

use super::{Operand, Product};
use crate::batch::Batch;
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::side::Side;
use crate::sizes::{check_len, work};

/// A batch of matrices (batch, p, q).
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Number of matrices.
    pub batch: usize,
    /// Rows of each.
    pub p: usize,
    /// Columns of each.
    pub q: usize,
    /// Whether the rows lie in memory as (rows, batch, n), not as (batch, rows, n).
    pub interleaved: bool,
}

impl<T: Scalar> Matrices<'_, T> {
    /// (features in, features out) of a side; refuses arrays of other sizes.
    fn sizes(&self, side: Side, rows: usize, (x, ct): (&[T], &[T])) -> Result<(usize, usize)> {
        let (from, into) = side.features((self.p, self.q));
        check_len("matrix", self.data.len(), &[self.batch, self.p, self.q])?;
        check_len("x", x.len(), &[self.batch, rows, from])?;
        check_len("out", ct.len(), &[self.batch, rows, into])?;
        Ok((from, into))
    }

    /// The rows of the b-th matrix, each of `width` numbers: the index of the first number, and the stride of the rows.
    fn place(&self, b: usize, rows: usize, width: usize) -> (usize, usize) {
        if self.interleaved && rows > 0 { (b * width, self.batch * width) } else { (b * rows * width, width) }
    }

    /// The right factor of a product of rows with W: W^T or conj(W).
    fn right(&self, b: usize, side: Side) -> Operand<T> {
        let w = Operand::new(self.data[b * self.p * self.q..].as_ptr(), self.q);
        if side == Side::Forward { w.t() } else { w.conj() }
    }

    /// Runs the products `f(b)`, `cost` multiply-adds together, for every matrix.
    fn products<const N: usize>(
        &self,
        cost: usize,
        (rows, depth): (usize, usize),
        threads: usize,
        f: impl Fn(usize) -> [Option<Product<T>>; N] + Sync,
    ) -> Result<()> {
        let scratch =
            |arena: &mut Arena| -> Region<T::Real> { arena.take(&[Product::<T>::scratch(rows, depth)]) };
        Batch::new::<T>(self.batch, cost, 1).split(threads).run(
            |_| (),
            scratch,
            |member, b, (), scratch| {
                for product in f(b).into_iter().flatten() {
                    // SAFETY: sizes were checked for the view and the call; results do not overlap each other or the
                    // arguments, so no barrier is needed between them.
                    unsafe {
                        if !product.is_small() {
                            product.run(member, scratch.ptr());
                        } else if member.id == 0 {
                            product.sum_by_sum();
                        }
                    };
                }
            },
        )
    }

    /// x (batch, rows, from) -> out (batch, rows, into), or (rows, batch, from) -> (rows, batch, into).
    pub fn apply(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) -> Result<()> {
        let (from, into) = self.sizes(side, rows, (x, out))?;
        if out.is_empty() {
            return Ok(());
        }
        let out = Shared(out.as_mut_ptr());
        self.products(work(&[rows, self.p, self.q]), (rows, from), threads, |b| {
            let ((start, stride), (to, step)) = (self.place(b, rows, from), self.place(b, rows, into));
            let x = Operand::new(x[start..].as_ptr(), stride);
            [Some(Product::new((rows, into, from), x, self.right(b, side), out.at(to), step))]
        })
    }

    /// The gradients that are wanted.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
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
        let (p, q, (from, into)) = (self.p, self.q, self.sizes(side, rows, (x, ct))?);
        weight_bar.as_ref().map_or(Ok(()), |bar| check_len("weight_bar", bar.len(), &[self.batch, p, q]))?;
        x_bar.as_ref().map_or(Ok(()), |bar| check_len("x_bar", bar.len(), &[x.len()]))?;
        let wanted = |bar: &mut [T]| (!bar.is_empty()).then_some(Shared(bar.as_mut_ptr()));
        let (weight_bar, x_bar) = (weight_bar.and_then(wanted), x_bar.and_then(wanted));
        let count = usize::from(weight_bar.is_some()) + usize::from(x_bar.is_some());
        if count == 0 {
            return Ok(());
        }
        let size = (rows.max(p), rows.max(p).max(q));
        self.products(work(&[count, rows, p, q]), size, threads, |b| {
            let ((start, stride), (to, step)) = (self.place(b, rows, from), self.place(b, rows, into));
            let x = Operand::new(x[start..].as_ptr(), stride);
            let ct = Operand::new(ct[to..].as_ptr(), step);
            let (left, right) = if side == Side::Forward { (ct, x) } else { (x, ct) };
            [
                weight_bar
                    .map(|bar| Product::new((p, q, rows), left.t(), right.conj(), bar.at(b * p * q), q)),
                x_bar.map(|bar| {
                    let bar = bar.at(start);
                    Product::new((rows, from, into), ct, self.right(b, side.other()), bar, stride)
                }),
            ]
        })
    }
}

/// The transposes of matrices (p, q), in tiles: a column of a matrix whose row stride is a power of two maps to few cache sets.
pub fn transposed<T: Scalar>(from: &[T], (p, q): (usize, usize), to: &mut [T]) {
    const TILE: usize = 16;
    for (from, to) in from.chunks_exact((p * q).max(1)).zip(to.chunks_exact_mut((p * q).max(1))) {
        for (i, rows) in from.chunks(TILE * q).enumerate() {
            for first in (0..q).step_by(TILE) {
                for j in first..q.min(first + TILE) {
                    let places = to[j * p..][i * TILE..p].iter_mut();
                    places.zip(rows.chunks_exact(q)).for_each(|(to, row)| *to = row[j]);
                }
            }
        }
    }
}
