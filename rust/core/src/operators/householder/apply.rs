//! c = W x for rows without forming W: block by block, or reflection by reflection for few rows.

use super::Householder;
use super::blocks::{APART_ROWS, Blocks, Chunk, Trail, Way, few};
use super::cpu::{Hand, over};
use crate::error::Result;
use crate::kernels::tiles;
use crate::side::Side;
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;
use isometry_kernels::householder::Pass;

/// Rows that one thread takes through all blocks at a time.
const APPLY_ROWS: usize = 256;

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn apply_cpu(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        if few(rows) {
            return self.apply_few(x, rows, side, out, threads);
        }
        let cut = Blocks::new(self.n, self.m, rows);
        let cost = self.cost_apply(cut, rows);
        let split = self.split(cost, threads);
        let threads = split.each();
        // whole rows per thread or, for few rows, all threads inside the products
        let apart = rows >= APART_ROWS * threads;
        let tall = if apart { rows.div_ceil(threads).clamp(8, APPLY_ROWS) } else { rows };
        let area = |arena: &mut Arena| [(); 2].map(|()| arena.take(&[tall, cut.width]));
        let carve = |arena: &mut Arena| {
            let areas = arena.frames(if apart { threads } else { 1 }, area);
            (self.apply_places(arena, cut, false), areas)
        };
        let out = Shared(out.as_mut_ptr());
        let product = (n.max(self.m).max(tall), n.max(cut.width));
        over(split, product, carve, |hand, b, (at, areas)| {
            let x = &x[b * rows * n..(b + 1) * rows * n];
            let (out, ti, e) = (out.at(b * rows * n), at.ti, at.e.ptr().cast_const());
            let own = area(&mut areas.of(if apart { hand.member.id } else { 0 }).arena());
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, cut, at, ti);
                if !apart {
                    self.pass(hand, b, cut, ti, e, side, x.as_ptr(), rows, out, own);
                    return;
                }
                Member::alone(|member| {
                    let solo = Hand { member, scratch: hand.scratch };
                    for (i, (row, height)) in tiles(rows, tall).enumerate() {
                        if i % hand.member.count == hand.member.id {
                            let (x, out) = (x.as_ptr().add(row * n), out.add(row * n));
                            self.pass(&solo, b, cut, ti, e, side, x, height, out, own);
                        }
                    }
                });
            }
        })
    }

    /// Multiply-adds of applying all blocks to the rows.
    fn cost_apply(&self, cut: Blocks, rows: usize) -> usize {
        self.cost_inverses(cut).saturating_add(work(&[rows, self.m, 2 * self.n + cut.width / 2]))
    }

    /// The forward map, with the trail that the gradient reads.
    pub(super) fn apply_keeping_cpu(
        &self,
        x: &[T],
        rows: usize,
        out: &mut [T],
        keep: &mut [T],
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        let cut = Blocks::new(self.n, self.m, rows);
        let kept = keep.len() / self.batch;
        let (out, keep) = (Shared(out.as_mut_ptr()), Shared(keep.as_mut_ptr()));
        let cost = self.cost_apply(cut, rows);
        let split = self.split(cost, threads);
        let product = (n.max(self.m).max(rows), n.max(cut.width));
        let carve = |arena: &mut Arena| {
            let q: Region<T> = arena.take(&[rows, cut.width]);
            (self.apply_places(arena, cut, true), q)
        };
        over(split, product, carve, |hand, b, (at, q)| {
            let start = b * rows * n;
            let mut kept = Frame::over(keep.at(b * kept), kept).arena();
            let trail = Trail::carve(&mut kept, cut, rows, n, self.has_last());
            let chunk = Chunk { b, x: x[start..].as_ptr(), ct: std::ptr::null(), rows, first: true, start };
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, cut, at, trail.ti);
                let way = Way { cut, trail, e: at.e.ptr(), q: q.ptr() };
                self.trace(hand, &way, &chunk, Some(out.at(start)));
            }
        })
    }

    /// Applies W or W^H to rows.
    ///
    /// # Safety
    /// x and out have `rows` rows, the two work areas rows x width elements; T^-1 and E are complete.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one pass")]
    unsafe fn pass(
        &self,
        hand: &Hand<'_, T>,
        b: usize,
        cut: Blocks,
        ti: Region<T>,
        e: *const T,
        side: Side,
        x: *const T,
        rows: usize,
        out: *mut T,
        [q, h]: [Region<T>; 2],
    ) {
        let (q, h) = (q.ptr(), h.ptr());
        // SAFETY: the contract above; barriers separate writes from reads by other members.
        unsafe {
            let mut source = x;
            if side == Side::Forward && self.has_last() || cut.count == 0 {
                self.scaled(hand, x, rows, e, side == Side::Adjoint, out);
                hand.barrier();
                source = out;
            }
            for step in 0..cut.count {
                let block = if side == Side::Forward { cut.count - 1 - step } else { step };
                let columns = self.columns(b).block(block * cut.width, cut.width);
                let ti = cut.inverse(ti, block);
                self.coefficients(hand, columns, ti, cut.width, side, source, rows, q, h);
                self.subtract(hand, columns, source, h, cut.width, rows, out);
                hand.barrier();
                source = out;
            }
            if side == Side::Adjoint && self.has_last() && cut.count > 0 {
                self.scaled(hand, out, rows, e, true, out);
            }
        }
    }

    fn apply_few(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) -> Result<()> {
        let n = self.n;
        let carve = |arena: &mut Arena| {
            let e: Region<T> = arena.take(&[if self.has_last() { n } else { 0 }]);
            let room: Region<T> = arena.take(&[self.sizes(0, rows).work(1, 1)]);
            (e, room)
        };
        let out = Shared(out.as_mut_ptr());
        self.whole(work(&[2, rows, n, self.m]), threads).run(|_| (), carve, |member, b, (), &(e, room)| {
            let hand = &Hand::without_products(member);
            let (x, out) = (x[b * rows * n..].as_ptr(), out.at(b * rows * n));
            let (e, forward) = (e.ptr(), side == Side::Forward);
            // SAFETY: the arrays' sizes were checked; matrix b belongs to this member only.
            unsafe {
                if self.has_last() {
                    self.diagonal(hand, b, e);
                }
                if forward && self.has_last() {
                    self.scaled(hand, x, rows, e, false, out);
                } else {
                    std::ptr::copy_nonoverlapping(x, out, rows * n);
                }
                Pass { sizes: self.sizes(b, rows), forward, y: out, work: room.ptr() }.call();
                if !forward && self.has_last() {
                    self.scaled(hand, out, rows, e, true, out);
                }
            }
        })
    }
}
