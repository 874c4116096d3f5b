//! Stacks of rotations of the plane and of space, which have closed forms: no matrix is formed where each turns one vector.

use crate::argument::Bar;
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::lanes;
use crate::parallel::Shared;
use crate::scalar::{Real, Scalar, parts, parts_mut};
use crate::side::Side;
use crate::sizes::{check_len, triangles};
pub use isometry_kernels::quaternion::Law;
use isometry_kernels::quaternion::{Matrices, PullMatrices, PullTurn, Stack, Turn};

/// Vectors of a part of a stack, which one thread computes.
const VECTORS: usize = 16;
/// The cost of a rotation in multiply-adds; a few times as many are done in lanes.
const COST: usize = 60;

/// A stack of real rotations of R^n, n = 2 or 3: a view of the parameters. Every call checks the sizes of its arrays, as an operator
/// in safe code may have rotations of other sizes than its own.
#[derive(Clone, Copy, Debug)]
pub struct Rotations<'a, R: Real> {
    upper: &'a [R],
    signs: Option<&'a [R]>,
    law: Law,
    batch: usize,
    n: usize,
}

impl<'a, R: Real> Rotations<'a, R> {
    /// Of the strict upper triangles of A and the diagonals of D; None unless they are real and n is 2 or 3.
    pub(crate) fn of<T: Scalar<Real = R>>(
        upper: &'a [T],
        signs: Option<&'a [R]>,
        law: Law,
        (batch, n): (usize, usize),
    ) -> Option<Self> {
        let real = T::PARTS == 1 && (n == 2 || n == 3);
        real.then(|| Rotations { upper: parts(upper), signs, law, batch, n })
    }

    /// The rotations from one on.
    fn stack(&self, first: usize, count: usize) -> Stack<R> {
        let Rotations { upper, signs, law, n, .. } = *self;
        let upper = upper[first * (n * (n - 1) / 2)..].as_ptr();
        Stack { upper, signs: signs.map(|signs| signs[first * n..].as_ptr()), law, n, count }
    }

    /// Calls `f(first, rotations)` for parts of the stack.
    fn each(&self, threads: usize, f: impl Fn(usize, Stack<R>) + Sync) -> Result<()> {
        let part = VECTORS * lanes::<R>();
        let parts = Batch::whole::<R>(self.batch.div_ceil(part), part.min(self.batch) * COST);
        parts.split(threads).run(
            |_| (),
            |_| (),
            |_, i, (), ()| {
                let first = i * part;
                f(first, self.stack(first, (self.batch - first).min(part)));
            },
        )
    }

    /// Writes the matrices.
    pub(crate) fn matrices<T: Scalar<Real = R>>(&self, out: &mut [T], threads: usize) -> Result<()> {
        check_len("out", out.len(), &[self.batch, self.n, self.n])?;
        let (out, each) = (Shared(parts_mut(out).as_mut_ptr()), self.n * self.n);
        // SAFETY: `out` has room for the matrices; parts are disjoint.
        self.each(threads, |first, of| unsafe { Matrices { of, out: out.at(first * each) }.call() })
    }

    /// The gradients of the first argument, the triangles, from those of the matrices.
    pub(crate) fn pull_matrices<T: Scalar<Real = R>>(
        &self,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        threads: usize,
    ) -> Result<()> {
        let Some(upper) = first(bars) else { return Ok(()) };
        check_len("ct", ct.len(), &[self.batch, self.n, self.n])?;
        check_len("upper_bar", upper.len(), &triangles(self.batch, self.n))?;
        let (n, ct, upper) = (self.n, parts(ct), Shared(upper.as_mut_ptr()));
        self.each(threads, |first, of| {
            let (ct, upper) = (ct[first * n * n..].as_ptr(), upper.at(first * (n * (n - 1) / 2)));
            // SAFETY: the arrays have the sizes of the stack; parts are disjoint.
            unsafe { PullMatrices { of, ct, upper }.call() }
        })
    }

    /// W x or W^T x, one vector for each rotation.
    pub(crate) fn apply<T: Scalar<Real = R>>(
        &self,
        x: &[T],
        side: Side,
        out: &mut [T],
        threads: usize,
    ) -> Result<()> {
        check_len("x", x.len(), &[self.batch, self.n])?;
        check_len("out", out.len(), &[self.batch, self.n])?;
        let (n, x, out) = (self.n, parts(x), Shared(parts_mut(out).as_mut_ptr()));
        self.each(threads, |first, of| {
            let (x, out) = (x[first * n..].as_ptr(), out.at(first * n));
            // SAFETY: the arrays have the sizes of the stack; parts are disjoint.
            unsafe { Turn { of, x, adjoint: side == Side::Adjoint, out }.call() }
        })
    }

    /// The gradients of [`Rotations::apply`].
    pub(crate) fn pull<T: Scalar<Real = R>>(
        &self,
        (x, ct): (&[T], &[T]),
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        let upper = first(bars);
        check_len("x", x.len(), &[self.batch, self.n])?;
        check_len("ct", ct.len(), &[self.batch, self.n])?;
        check_len("x_bar", x_bar.as_deref().unwrap_or(x).len(), &[self.batch, self.n])?;
        if let Some(upper) = &upper {
            check_len("upper_bar", upper.len(), &triangles(self.batch, self.n))?;
        }
        let (n, x, ct) = (self.n, parts(x), parts(ct));
        let upper = upper.map(|upper| Shared(upper.as_mut_ptr()));
        let x_bar = x_bar.map(|x_bar| Shared(parts_mut(x_bar).as_mut_ptr()));
        self.each(threads, |first, of| {
            let turn = Turn {
                of,
                x: x[first * n..].as_ptr(),
                adjoint: side == Side::Adjoint,
                out: std::ptr::null_mut(),
            };
            let ct = ct[first * n..].as_ptr();
            let upper = upper.map(|upper| upper.at(first * (n * (n - 1) / 2)));
            let x_bar = x_bar.map(|x_bar| x_bar.at(first * n));
            // SAFETY: the arrays have the sizes of the stack; parts are disjoint.
            unsafe { PullTurn { of: turn, ct, upper, x_bar }.call() }
        })
    }
}

/// The room of the first gradient, if it is wanted.
fn first<'a, T: Scalar>(bars: &'a mut [Bar<'_, T>]) -> Option<&'a mut [T::Real]> {
    bars.first_mut().and_then(|bar| bar.again().own()).map(parts_mut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fill;

    #[test]
    fn arrays_of_other_sizes_are_refused() {
        fn check<R: Real>(batch: usize, n: usize) {
            let (len, triangle) = (batch * n, batch * (n * (n - 1) / 2));
            let x = fill::<R>(len + 1, 1.0, 1);
            let op = Rotations::of::<R>(&x[..triangle], None, Law::Cayley, (batch, n)).unwrap();
            let near = |len: usize| [0, len - 1, len, len + 1];
            for (own, other) in near(len).into_iter().flat_map(|own| near(len).map(|other| (own, other))) {
                let (x, mut out, side) = (&x[..own], vec![R::zero(); other], Side::Adjoint);
                let fit = own == len && other == len;
                assert_eq!(op.apply(x, side, &mut out, 2).is_ok(), fit, "{own} {other} of {len}");
                for room in near(triangle) {
                    let mut upper = vec![R::zero(); room];
                    let bars = &mut [Bar::Own(&mut upper)];
                    let pulled = op.pull((x, &out.clone()), side, bars, Some(&mut out), 2);
                    assert_eq!(pulled.is_ok(), fit && room == triangle, "{own} {other} {room} of {len}");
                }
            }
        }
        for batch in [1, 2, 40, 700] {
            check::<f32>(batch, 2);
            check::<f64>(batch, 3);
        }
    }
}
