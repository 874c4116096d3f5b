//! c = W x for rows without forming W, block by block: on whole rows per thread or, for few of them, with all threads inside
//! the products.

use super::Householder;
use super::blocks::{Blocks, Factors};
use super::hand::{APART_ROWS, over};
use super::trail::Trail;
use crate::error::Result;
use crate::kernels::tiles;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::side::Side;
use crate::sizes::work;

/// Rows that one thread takes through all blocks at a time.
const APPLY_ROWS: usize = 256;

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn apply_blocks(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        let cut = Blocks::new(n, self.m, rows);
        let split = self.split(self.cost_apply(cut, rows), threads);
        let threads = split.each();
        let apart = rows >= APART_ROWS * threads;
        let tall = if apart { rows.div_ceil(threads).clamp(8, APPLY_ROWS) } else { rows };
        let area = |arena: &mut Arena| -> [Region<T>; 2] { [(); 2].map(|()| arena.take(&[tall, cut.width])) };
        let carve = |arena: &mut Arena| {
            let areas = arena.frames(if apart { threads } else { 1 }, area);
            (self.places(arena, cut), arena.take(&cut.sizes()), areas)
        };
        let out = Shared(out.as_mut_ptr());
        let product = (n.max(self.m).max(tall), n.max(cut.width));
        over(split, product, carve, |hand, b, (at, ti, areas)| {
            let (x, out) = (x[b * rows * n..(b + 1) * rows * n].as_ptr(), out.at(b * rows * n));
            let [q, h] = area(&mut areas.of(if apart { hand.member.id } else { 0 }).arena());
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let factors = Factors::new(hand, self, b, cut, at, (*ti, false));
                let (q, h) = (q.ptr(), |_| h.ptr());
                if !apart {
                    factors.through(hand, side, (x, rows), q, h, |_| Some(out));
                    return;
                }
                hand.alone(|solo| {
                    for (i, (row, height)) in tiles(rows, tall).enumerate() {
                        if i % hand.member.count == hand.member.id {
                            let out = out.add(row * n);
                            factors.through(solo, side, (x.add(row * n), height), q, h, |_| Some(out));
                        }
                    }
                });
            }
        })
    }

    /// The forward map, with the trail that the gradient reads.
    pub(super) fn apply_tracing(
        &self,
        x: &[T],
        rows: usize,
        out: &mut [T],
        keep: &mut [T],
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        let cut = Blocks::new(n, self.m, rows);
        let kept = keep.len() / self.batch;
        let (out, keep) = (Shared(out.as_mut_ptr()), Shared(keep.as_mut_ptr()));
        let split = self.split(self.cost_apply(cut, rows), threads);
        let product = (n.max(self.m).max(rows), n.max(cut.width));
        let carve = |arena: &mut Arena| -> (_, Region<T>) {
            let q = arena.take(&[rows, cut.width]);
            (self.places(arena, cut), q)
        };
        over(split, product, carve, |hand, b, (at, q)| {
            let start = b * rows * n;
            let mut kept = Frame::over(keep.at(b * kept), kept).arena();
            let trail = Trail::carve(&mut kept, cut, rows, n, self.has_last());
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let factors = Factors::new(hand, self, b, cut, at, (trail.ti, false));
                factors.trace(hand, &trail, q.ptr(), (x[start..].as_ptr(), rows), Some(out.at(start)));
            }
        })
    }

    /// Multiply-adds of applying all blocks to the rows.
    fn cost_apply(&self, cut: Blocks, rows: usize) -> usize {
        self.cost_inverses(cut).saturating_add(work(&[rows, self.m, 2 * self.n + cut.width / 2]))
    }
}
