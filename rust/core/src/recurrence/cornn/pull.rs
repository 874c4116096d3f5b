//! A step of a network of oscillators backward, and the gradients gathered from many.

use super::super::driver::cell::{Cell, Pull};
use super::super::driver::window::Window;
use super::super::parts::pair_pull::{PairBars, PairPull, Piece};
use super::super::time::chunk::{Chunk, ChunkRow};
use super::Setting;
use super::cell::CornnCell;
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{DenseStep, Gather, Part, Step};
use isometry_kernels::recurrence::{Affine, OscillatePull};
use std::ops::Range;

/// The network in a backward pass.
pub(super) struct CornnPull<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    of: PairPull<'s, R>,
    /// Of y and of z.
    w: [DenseStep<'s, R>; 2],
    /// The steps of replayed segments.
    again: Option<CornnCell<'s, R>>,
    /// The parts of the cotangents of y and z before a step that are not products with W, rows of one step.
    carry: [Region<R>; 2],
}

impl<'s, R: Real> CornnPull<'s, R> {
    /// For gradients that have passed their check.
    pub fn carve(
        arena: &mut Arena,
        setting: &'s Setting<'s, R>,
        replayed: bool,
        bars: PairBars<'s, R>,
    ) -> Self {
        let (n, of) = (setting.pairs.n, PairPull::carve(arena, &setting.pairs, bars, false));
        let [w_y, w_z] = setting.matrices();
        let w = [(w_y, 0), (w_z, n * n)].map(|(w, at)| {
            let bar = bars.w.map(|bar| Shared(bar.at(at)));
            DenseStep::carve(arena, (n, n), w, bar, of.uses()).apart(2 * n)
        });
        CornnPull {
            setting,
            w,
            again: replayed.then(|| CornnCell::carve(arena, setting)),
            carry: [(); 2].map(|()| arena.take(&[setting.pairs.line.schedule.batch, n])),
            of,
        }
    }

    /// The cotangents of y and z of the step before, carry + W^T q.
    ///
    /// # Safety
    /// The bars of the step are complete for these rows; nobody else uses these columns of both.
    unsafe fn previous(&self, bars: *const R, rows: Range<usize>, part: &Part<'_>, scratch: *mut R) {
        let Setting { pairs, .. } = self.setting;
        for (i, w) in self.w.iter().enumerate() {
            let mut map = Affine::new(pairs.n, pairs.line.schedule.batch, self.of.g[i].ptr());
            map.add = self.carry[i].ptr();
            // SAFETY: the contract above; the packed W has n columns.
            unsafe { w.backward(self.of.trace(bars, 0), map, rows.clone(), part, scratch) }
        }
    }
}

// SAFETY: the scratch is that of W and of the inputs; the cell is the one of the forward pass.
unsafe impl<R: Real> Pull<R> for CornnPull<'_, R> {
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
        let (Setting { pairs, law, .. }, of, part) = (self.setting, &self.of, chunk.part());
        let (bars, pitch, of_t) = (of.bars(chunk.place(t)), of.pitch, self.setting.t(t, window));
        let (columns, carry) = (part.columns::<R>(pairs.n), self.carry.map(Region::ptr));
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let previous = |bars: *const R, rows| self.previous(bars, rows, part, scratch);
            of.begin(t, window, above, chunk, previous);
            for Piece { rows, g, ct, .. } in of.pieces(t, window, chunk) {
                let area = pairs.area(&rows, &columns);
                OscillatePull { t: of_t, g, ct, carry, bars, pitch, law: *law, area }.call();
            }
            of.end(t, window, chunk, previous);
        }
    }

    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let n = self.setting.pairs.n;
        // SAFETY: the contract of the trait; members write different parts of W_bar.
        unsafe {
            let before = |rows: Gather<R>| {
                for (i, w) in self.w.iter().enumerate() {
                    let previous = rows.previous.wrapping_add(i * n);
                    w.gather(&Gather { previous, ..rows }, scratch, &chunk.half.gatherer);
                }
            };
            self.of.gather(window, chunk, scratch, before, |_| {});
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
