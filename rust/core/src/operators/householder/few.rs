//! Few rows: reflections one at a time, each matrix on one thread.

use super::Householder;
use super::gradients::Wants;
use crate::batch::{Batch, Split};
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::householder::{Pass, Pull, Sizes};

impl<T: Scalar> Householder<'_, T> {
    fn sizes(&self, b: usize, rows: usize) -> Sizes<T> {
        Sizes { u: self.columns(b).u, n: self.n, m: self.m, rows }
    }

    /// The matrices, at `passes` times the cost of a product with U.
    fn whole(&self, passes: usize, rows: usize, threads: usize) -> Split {
        Batch::whole::<T>(self.batch, work(&[passes, rows, self.n, self.m])).split(threads)
    }

    pub(super) fn apply_few(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        let carve = |arena: &mut Arena| -> [Region<T>; 2] {
            let last = if self.has_last() { n } else { 0 };
            [last, self.sizes(0, rows).work(1, 1)].map(|len| arena.take(&[len]))
        };
        let out = Shared(out.as_mut_ptr());
        self.whole(2, rows, threads).run(
            |_| (),
            carve,
            |member, b, (), [e, room]| {
                let (x, out) = (x[b * rows * n..].as_ptr(), out.at(b * rows * n));
                let (e, forward) = (e.ptr(), side == Side::Forward);
                // SAFETY: the arrays' sizes were checked; matrix b belongs to this member only.
                unsafe {
                    self.diagonal(member, b, e);
                    if forward && self.has_last() {
                        self.scaled(member, e, side, x, rows, out);
                    } else {
                        std::ptr::copy_nonoverlapping(x, out, rows * n);
                    }
                    Pass { sizes: self.sizes(b, rows), forward, y: out, work: room.ptr() }.call();
                    if !forward && self.has_last() {
                        self.scaled(member, e, side, out, rows, out);
                    }
                }
            },
        )
    }

    /// The whole gradient, in terms of the forward map.
    pub(super) fn apply_vjp_few(
        &self,
        x: &[T],
        ct: &[T],
        rows: usize,
        wants: &Wants<T>,
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        let carve = |arena: &mut Arena| -> [Region<T>; 4] {
            let last = usize::from(self.has_last());
            [[last, n, 1], [last, rows, n], [1, rows, n], [1, 1, self.sizes(0, rows).work(2, 2)]]
                .map(|sizes| arena.take(&sizes))
        };
        self.whole(6, rows, threads).run(
            |_| (),
            carve,
            |member, b, (), [e, y, g, room]| {
                let (start, null) = (b * rows * n, std::ptr::null_mut());
                let (x, ct, e) = (x[start..].as_ptr(), ct[start..].as_ptr(), e.ptr());
                let [x_bar, c] = [Side::Forward, Side::Adjoint].map(|side| wants.x_bar(side, start));
                let (g, c) = (x_bar.unwrap_or(g.ptr()), c.unwrap_or(null));
                let u_bar = wants.vectors.map_or(null, |all| all.at(b * n * self.m));
                // SAFETY: the arrays' sizes were checked; matrix b belongs to this member only.
                unsafe {
                    self.diagonal(member, b, e);
                    if self.has_last() {
                        self.scaled(member, e, Side::Forward, x, rows, y.ptr());
                    }
                    let y = if self.has_last() { y.ptr().cast_const() } else { x };
                    std::ptr::copy_nonoverlapping(ct, g, rows * n);
                    Pull { sizes: self.sizes(b, rows), y, g, c, u_bar, work: room.ptr() }.call();
                    self.pull_last(member, (b, e), [x, g], rows, wants.last, x_bar);
                }
            },
        )
    }
}
