//! A step of a long expressive memory backward, and the gradients gathered from many.

use super::super::driver::cell::{Cell, Pull};
use super::super::driver::window::Window;
use super::super::parts::pair_pull::{PairBars, PairPull, Piece};
use super::super::time::chunk::{Chunk, ChunkRow};
use super::Setting;
use super::cell::LemCell;
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{DenseStep, Gather, Part, Step};
use isometry_kernels::recurrence::{Affine, ExpressPull, RememberPull};
use std::ops::Range;

/// The memory in a backward pass.
pub(super) struct LemPull<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    of: PairPull<'s, R>,
    /// Of y and of z.
    w: [DenseStep<'s, R>; 2],
    /// The steps of replayed segments.
    again: Option<LemCell<'s, R>>,
    /// The part of the cotangent of y_{t-1} that does not pass through W, for the rows of one step.
    carry: Region<R>,
}

impl<'s, R: Real> LemPull<'s, R> {
    /// For gradients that have passed their check.
    pub fn carve(
        arena: &mut Arena,
        setting: &'s Setting<'s, R>,
        replayed: bool,
        bars: PairBars<'s, R>,
    ) -> Self {
        let (n, of) = (setting.pairs.n, PairPull::carve(arena, &setting.pairs, bars, true));
        let [of_y, of_z] = setting.matrices();
        let w = [(of_y, 3 * n, 0), (of_z, n, 3 * n * n)].map(|(w, rows, at)| {
            let bar = bars.w.map(|bar| Shared(bar.at(at)));
            DenseStep::carve(arena, (rows, n), w, bar, of.uses()).apart(2 * n)
        });
        LemPull {
            setting,
            w,
            again: replayed.then(|| LemCell::carve(arena, setting)),
            carry: arena.take(&[setting.pairs.line.schedule.batch, n]),
            of,
        }
    }

    /// The cotangent of y of the step before, carry + W^T q; that of z is there.
    ///
    /// # Safety
    /// The bars of the step are complete for these rows; nobody else uses these columns of it.
    unsafe fn previous(&self, bars: *const R, rows: Range<usize>, part: &Part<'_>, scratch: *mut R) {
        let Setting { pairs, .. } = self.setting;
        let mut map = Affine::new(pairs.n, pairs.line.schedule.batch, self.of.g[0].ptr());
        map.add = self.carry.ptr();
        // SAFETY: the contract above; the packed W has n columns.
        unsafe { self.w[0].backward(self.of.trace(bars, 0), map, rows, part, scratch) }
    }
}

// SAFETY: the scratch is that of W and of the inputs; the cell is the one of the forward pass.
unsafe impl<R: Real> Pull<R> for LemPull<'_, R> {
    fn work(&self) -> [usize; 2] {
        let w = self.w.iter().map(Step::work).fold(0, usize::saturating_add);
        [w, w.saturating_add(self.setting.pairs.input_work())]
    }
    fn divisible(&self) -> bool {
        self.w[0].divisible()
    }
    fn scratch(&self) -> usize {
        self.w[0].scratch(self.setting.pairs.line.schedule.chunk_rows()).max(self.of.scratch())
    }
    fn halves(&self) -> usize {
        self.of.halves
    }
    fn again(&self) -> Option<&dyn Cell<R>> {
        self.again.as_ref().map(|cell| cell as &dyn Cell<R>)
    }

    unsafe fn fill(&self) {
        // SAFETY: the contract of the trait.
        unsafe { self.of.fill() }
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.iter().for_each(|w| w.prepare(scratch, member));
            self.of.pack(member);
            if let Some(again) = &self.again {
                again.prepare(scratch, member);
            }
        }
    }

    unsafe fn pull(
        &self,
        t: usize,
        window: &Window<*const R>,
        above: Option<ChunkRow>,
        chunk: &Chunk<'_>,
        scratch: *mut R,
    ) {
        let (&Setting { ref pairs, dt, .. }, of, part) = (self.setting, &self.of, chunk.part());
        let (n, line, pitch) = (pairs.n, &pairs.line, of.pitch);
        let (columns, bars) = (part.columns::<R>(n), of.bars(chunk.place(t)));
        let [gates, own] = self.setting.gates(t, window);
        let (carry, z_bar) = (self.carry.ptr(), of.g[1].ptr());
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let previous = |bars: *const R, rows| self.previous(bars, rows, part, scratch);
            of.begin(t, window, above, chunk, previous);
            for Piece { rows, previous, g, ct } in of.pieces(t, window, chunk) {
                let area = pairs.area(&rows, &columns);
                ExpressPull { gates, own, previous, g, ct, carry, z_bar, bars, pitch, dt, area }.call();
            }
            part.sync();
            let mut map = Affine::new(n, line.schedule.batch, z_bar);
            map.add = z_bar;
            let active = part.rows(0..line.schedule.active(t));
            self.w[1].backward(of.trace(bars, 3), map, active, part, scratch);
            for (rows, previous) in line.sources(t, window.states) {
                let area = pairs.area(&part.rows(rows), &columns);
                RememberPull { gates, previous, z_bar, bars, pitch, dt, area }.call();
            }
            of.end(t, window, chunk, previous);
        }
    }

    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let gatherer = &chunk.half.gatherer;
        // SAFETY: the contract of the trait; members write different parts of W_bar.
        unsafe {
            let before = |rows| self.w[0].gather(&rows, scratch, gatherer);
            let after = |rows: Gather<R>| {
                let trace = self.of.trace(rows.trace.bar, 3);
                let previous = rows.previous.wrapping_add(self.setting.pairs.n);
                self.w[1].gather(&Gather { trace, previous, ..rows }, scratch, gatherer);
            };
            self.of.gather(window, chunk, scratch, before, after);
        }
    }

    unsafe fn finish(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.iter().for_each(|w| w.finish(scratch, member));
            self.of.finish(member);
        }
    }
}
