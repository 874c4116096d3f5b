//! A step of an LSTM backward, and the gradients gathered from many.

use super::super::driver::cell::{Cell, Pull};
use super::super::driver::window::Window;
use super::super::parts::pair_pull::{PairBars, PairPull, Piece};
use super::super::time::chunk::{Chunk, ChunkRow};
use super::Setting;
use super::cell::LstmCell;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{DenseStep, Part, Step};
use isometry_kernels::recurrence::{Affine, LstmGatesPull};
use std::ops::Range;

/// An LSTM in a backward pass.
pub(super) struct LstmPull<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    of: PairPull<'s, R>,
    w: DenseStep<'s, R>,
    /// The steps of replayed segments.
    again: Option<LstmCell<'s, R>>,
}

impl<'s, R: Real> LstmPull<'s, R> {
    /// For gradients that have passed their check.
    pub fn carve(
        arena: &mut Arena,
        setting: &'s Setting<'s, R>,
        replayed: bool,
        bars: PairBars<'s, R>,
    ) -> Self {
        let (n, of) = (setting.pairs.n, PairPull::carve(arena, &setting.pairs, bars, false));
        LstmPull {
            setting,
            w: DenseStep::carve(arena, (4 * n, n), setting.pairs.w, bars.w, of.uses()).apart(2 * n),
            again: replayed.then(|| LstmCell::carve(arena, setting)),
            of,
        }
    }

    /// The cotangent of h of the step before, W^T bars; that of c is there.
    ///
    /// # Safety
    /// The bars of the step are complete for these rows; nobody else uses these columns of it.
    unsafe fn previous(&self, bars: *const R, rows: Range<usize>, part: &Part<'_>, scratch: *mut R) {
        let Setting { pairs, .. } = self.setting;
        let map = Affine::new(pairs.n, pairs.line.schedule.batch, self.of.g[0].ptr());
        // SAFETY: the contract above; the packed W has n columns.
        unsafe { self.w.backward(self.of.trace(bars, 0), map, rows, part, scratch) }
    }
}

// SAFETY: the scratch is that of W and of the inputs; the cell is the one of the forward pass.
unsafe impl<R: Real> Pull<R> for LstmPull<'_, R> {
    fn work(&self) -> [usize; 2] {
        [self.w.work(), self.w.work().saturating_add(self.setting.pairs.input_work())]
    }
    fn divisible(&self) -> bool {
        self.w.divisible()
    }
    fn scratch(&self) -> usize {
        self.w.scratch(self.setting.pairs.line.schedule.chunk_rows()).max(self.of.scratch())
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
            self.w.prepare(scratch, member);
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
        let (Setting { pairs, .. }, of, part) = (self.setting, &self.of, chunk.part());
        let (n, bars, pitch) = (pairs.n, of.bars(chunk.place(t)), of.pitch);
        let gates = self.setting.gates(t, window);
        let state = window.states.wrapping_add(t * pairs.line.stride());
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let previous = |bars: *const R, rows| self.previous(bars, rows, part, scratch);
            of.begin(t, window, above, chunk, previous);
            for Piece { rows, previous, g: [h_bar, _], ct } in of.pieces(t, window, chunk) {
                let (area, carry) = (pairs.area(&rows, &part.columns::<R>(n)), of.g[1].ptr());
                LstmGatesPull { gates, previous, state, h_bar, ct, carry, bars, pitch, area }.call();
            }
            of.end(t, window, chunk, previous);
        }
    }

    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R) {
        // SAFETY: the contract of the trait; members write different parts of W_bar.
        unsafe {
            let before = |rows| self.w.gather(&rows, scratch, &chunk.half.gatherer);
            self.of.gather(window, chunk, scratch, before, |_| {});
        }
    }

    unsafe fn finish(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.finish(scratch, member);
            self.of.finish(member);
        }
    }
}
