//! c = W x for rows without forming W: block after block, or one reflection after the other where rows are few.

use super::Householder;
use super::blocks::{APART_ROWS, Blocks, Chunk, Trail, Way, few};
use super::cpu::{Hand, Layout, each_alone, members, over};
use crate::kernels::tiles;
use crate::operator::Side;
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use isometry_kernels::householder::Pass;

/// Rows that one thread takes through all blocks of an apply.
const APPLY_ROWS: usize = 256;

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn apply_cpu(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) {
        let n = self.n;
        if few(rows) {
            return self.apply_few(x, rows, side, out, threads);
        }
        let cut = Blocks::new(self.m, rows);
        let mut at = self.apply_places(cut, false);
        let cost = self.cost_inverses(cut) + rows * self.m * (2 * n + cut.width / 2);
        let threads = members::<T>(self.batch, cost, threads);
        // whole rows for each thread, or, where rows are few, all threads inside the products
        let apart = rows >= APART_ROWS * threads;
        let tall = if apart { rows.div_ceil(threads).clamp(8, APPLY_ROWS) } else { rows };
        let mut all = Layout(at.len);
        let area = 2 * (tall * cut.width).next_multiple_of(16);
        let areas = all.take(area * if apart { threads } else { 1 });
        at.len = all.0;
        let out = Shared(out.as_mut_ptr());
        let product = (n.max(self.m).max(tall), n.max(cut.width));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory: Shared<T>| {
            let x = &x[b * rows * n..(b + 1) * rows * n];
            let (out, ti, e) = (out.at(b * rows * n), Shared(memory.at(at.ti)), memory.at(at.e).cast_const());
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, cut, &at, memory, ti);
                if !apart {
                    self.pass(hand, b, cut, ti, e, side, x.as_ptr(), rows, out, memory.at(areas));
                    return;
                }
                let own = memory.at(areas + hand.member.id * area);
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
        });
    }

    /// The forward side, with the trail that the gradient follows back.
    pub(super) fn apply_keeping_cpu(
        &self,
        x: &[T],
        rows: usize,
        out: &mut [T],
        keep: &mut [T],
        threads: usize,
    ) {
        let n = self.n;
        let cut = Blocks::new(self.m, rows);
        let (mut at, trail) = (self.apply_places(cut, true), Trail::new(cut, rows, n, self.has_last()));
        let mut all = Layout(at.len);
        let q = all.take(rows * cut.width);
        at.len = all.0;
        let (out, keep) = (Shared(out.as_mut_ptr()), Shared(keep.as_mut_ptr()));
        let cost = self.cost_inverses(cut) + rows * self.m * (2 * n + cut.width / 2);
        let threads = members::<T>(self.batch, cost, threads);
        let product = (n.max(self.m).max(rows), n.max(cut.width));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory: Shared<T>| {
            let start = b * rows * n;
            let kept = Shared(keep.at(b * trail.len));
            let chunk = Chunk { b, x: x[start..].as_ptr(), ct: std::ptr::null(), rows, first: true, start };
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, cut, &at, memory, Shared(kept.at(trail.ti)));
                let way = Way { cut, trail: &trail, kept, e: memory.at(at.e), q: memory.at(q) };
                self.trace(hand, &way, &chunk, Some(out.at(start)));
            }
        });
    }

    /// Takes rows through W or W^H.
    ///
    /// # Safety
    /// x and out have `rows` rows, `area` room for two arrays of rows x width; T^-1 and E are complete.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one pass")]
    unsafe fn pass(
        &self,
        hand: &Hand<'_, T>,
        b: usize,
        cut: Blocks,
        ti: Shared<T>,
        e: *const T,
        side: Side,
        x: *const T,
        rows: usize,
        out: *mut T,
        area: *mut T,
    ) {
        let (q, h) = (area, area.wrapping_add((rows * cut.width).next_multiple_of(16)));
        // SAFETY: the caller's contract; a barrier stands wherever one member reads what others wrote.
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

    fn apply_few(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) {
        let n = self.n;
        let mut all = Layout(0);
        let e = all.take(if self.has_last() { n } else { 0 });
        let work = all.take(self.sizes(0, rows).work(1, 1));
        let out = Shared(out.as_mut_ptr());
        let threads = self.members_few(2 * rows * n * self.m, threads);
        each_alone(self.batch, threads, all.0, |hand: &Hand<'_, T>, b, memory: Shared<T>| {
            let (x, out) = (x[b * rows * n..].as_ptr(), out.at(b * rows * n));
            let (e, forward) = (memory.at(e), side == Side::Forward);
            // SAFETY: the arrays were checked to have their sizes; this member owns matrix b.
            unsafe {
                if self.has_last() {
                    self.diagonal(hand, b, e);
                }
                if forward && self.has_last() {
                    self.scaled(hand, x, rows, e, false, out);
                } else {
                    std::ptr::copy_nonoverlapping(x, out, rows * n);
                }
                Pass { sizes: self.sizes(b, rows), forward, y: out, work: memory.at(work) }.call();
                if !forward && self.has_last() {
                    self.scaled(hand, out, rows, e, true, out);
                }
            }
        });
    }
}
