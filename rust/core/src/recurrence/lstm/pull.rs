//! A step of an LSTM backward, and the gradients gathered from many.

use super::super::driver::cell::{Cell, Pull};
use super::super::driver::window::Window;
use super::super::parts::inputs::Inputs;
use super::super::time::chunk::{Chunk, ChunkRow};
use super::super::time::halves::halves;
use super::super::time::timeline::{Copies, rows_apart};
use super::Bars;
use super::Setting;
use super::cell::LstmCell;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{DenseStep, Gather, Part, Step, Trace, Uses};
use isometry_kernels::recurrence::{Affine, LstmGatesPull};
use std::ops::Range;

/// An LSTM in a backward pass.
pub(super) struct LstmPull<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    halves: usize,
    w: DenseStep<'s, R>,
    /// The steps of replayed segments.
    again: Option<LstmCell<'s, R>>,
    /// The cotangents of the arguments of the gates, for the rows of each chunk, and copies of what they came from.
    chunks: [(Region<R>, Copies<R>); 2],
    /// Numbers from one row of bars to the next.
    pitch: usize,
    /// The cotangents of h and of c from the step after, rows of one step.
    h_bar: Region<R>,
    carry: Region<R>,
    bars: Bars<R>,
    inputs: Inputs<'s, R>,
}

impl<'s, R: Real> LstmPull<'s, R> {
    /// For gradients that have passed their check.
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>, replayed: bool, bars: Bars<R>) -> Self {
        let &Setting { ref line, n, w, u, .. } = setting;
        let (schedule, halves) = (&line.schedule, halves(&line.schedule));
        let uses = Uses { forward: false, given: None, backward: Some(halves) };
        // An odd number of cache lines: the gradient of W reads the bars down their columns.
        let cache_line = 64 / size_of::<R>();
        let pitch = ((4 * n).div_ceil(cache_line) | 1) * cache_line;
        LstmPull {
            setting,
            halves,
            w: DenseStep::carve(arena, (4 * n, n), w, bars.w, uses).apart(line.width),
            again: replayed.then(|| LstmCell::carve(arena, setting)),
            chunks: [(); 2].map(|()| {
                let rows = rows_apart(arena, true, schedule.chunk_rows(), pitch);
                (rows, Copies::carve(arena, line, halves, false))
            }),
            pitch,
            h_bar: arena.take(&[schedule.batch, n]),
            carry: arena.take(&[schedule.batch, n]),
            inputs: Inputs::carve(arena, line, (u, 4 * n), halves, bars.inputs),
            bars,
        }
    }

    /// The bars at a row.
    fn bars(&self, at: ChunkRow) -> *mut R {
        self.chunks[at.turn].0.at(at.row * self.pitch)
    }

    fn trace(&self, bar: *const R) -> Trace<R> {
        Trace { bar, apart: self.pitch, kept: std::ptr::null_mut() }
    }

    /// `h_bar` of the step before, W^T bars.
    ///
    /// # Safety
    /// The bars of the step are complete for these rows; nobody else uses these columns of `h_bar`.
    unsafe fn previous(&self, bars: *const R, rows: Range<usize>, part: &Part<'_>, scratch: *mut R) {
        let map = Affine::new(self.setting.n, self.setting.line.schedule.batch, self.h_bar.ptr());
        // SAFETY: the contract above; the packed W has n columns.
        unsafe { self.w.backward(self.trace(bars), map, rows, part, scratch) }
    }

    /// Adds these columns of a row of `h_bar` and `carry` to a cotangent of states (B, 2n), or writes them there.
    ///
    /// # Safety
    /// The row is complete; nobody else uses these columns of it.
    unsafe fn put(&self, into: *mut R, row: usize, columns: &Range<usize>, add: bool) {
        let n = self.setting.n;
        for (part, from) in [self.h_bar, self.carry].into_iter().enumerate() {
            for column in columns.clone() {
                // SAFETY: the contract above.
                unsafe {
                    let to = into.add((2 * row + part) * n + column);
                    let before = if add { *to } else { R::zero() };
                    *to = before + *from.at(row * n + column);
                }
            }
        }
    }
}

// SAFETY: the scratch is that of W and of the inputs; the cell is the one of the forward pass.
unsafe impl<R: Real> Pull<R> for LstmPull<'_, R> {
    fn work(&self) -> [usize; 2] {
        [self.w.work(), self.w.work().saturating_add(self.setting.input_work())]
    }
    fn divisible(&self) -> bool {
        self.w.divisible()
    }
    fn scratch(&self) -> usize {
        self.w.scratch(self.setting.line.schedule.chunk_rows()).max(self.inputs.scratch())
    }
    fn halves(&self) -> usize {
        self.halves
    }
    fn again(&self) -> Option<&dyn Cell<R>> {
        self.again.as_ref().map(|cell| cell as &dyn Cell<R>)
    }

    unsafe fn fill(&self) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.bars.ct.fill(&self.setting.line);
            self.inputs.fill();
        }
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.prepare(scratch, member);
            self.inputs.pack(member);
            if let Some(again) = &self.again {
                again.prepare(scratch, member);
            }
        }
    }

    unsafe fn pull(
        &self,
        t: usize,
        window: &Window<R>,
        above: Option<ChunkRow>,
        chunk: &Chunk<'_>,
        scratch: *mut R,
    ) {
        let (Setting { line, n, .. }, part, ct) = (self.setting, chunk.part(), &self.bars.ct);
        let (n, schedule, columns) = (*n, &line.schedule, part.columns::<R>(*n));
        let (active, continued) = (schedule.active(t), schedule.continued(t));
        let (bars, gates) = (self.bars(chunk.place(t)), self.setting.gates(t, window).cast_const());
        let state = window.states.wrapping_add(t * line.stride()).cast_const();
        let none = std::ptr::null();
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            line.renew(t, window.states, part);
            let late = part.rows(0..continued);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                self.previous(self.bars(above), late.clone(), part, scratch);
                for row in schedule.next(t).into_iter().flat_map(|after| line.reset(after, &late)) {
                    for bar in [self.h_bar, self.carry] {
                        bar.at(row * n + columns.start).write_bytes(0, columns.len());
                    }
                }
            }
            for (all, previous) in line.sources(t, window.states) {
                let continuing = (0..continued, self.h_bar.ptr().cast_const(), ct.continued(t));
                for (rows, h_bar, ct) in [continuing, (continued..active, none, ct.ending(t))] {
                    let rows = part.rows(rows.start.max(all.start)..rows.end.min(all.end));
                    let area = self.setting.area(&rows, &columns);
                    let (carry, pitch) = (self.carry.ptr(), self.pitch);
                    LstmGatesPull { gates, previous, state, h_bar, ct, carry, bars, pitch, area }.call();
                }
            }
            part.sync();
            let rows = part.rows(0..active);
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = ct.starting(&starting) {
                self.previous(bars, starting.clone(), part, scratch);
                starting.clone().for_each(|row| self.put(h0_bar, row, &columns, false));
                for row in line.reset(t, &starting) {
                    for part in 0..2 {
                        h0_bar.add((2 * row + part) * n + columns.start).write_bytes(0, columns.len());
                    }
                }
            }
            if let Some(fresh) = ct.fresh(line, t) {
                for row in line.reset(t, &rows) {
                    self.previous(bars, row..row + 1, part, scratch);
                    self.put(fresh, row, &columns, true);
                }
            }
            self.chunks[chunk.turn()].1.put(line, chunk, t, window.states);
        }
    }

    unsafe fn gather(&self, window: &Window<R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let (line, half) = (&self.setting.line, chunk.half);
        let (bars, copies) = &self.chunks[chunk.turn()];
        let states = |steps: Range<usize>, previous: *const R, first: bool| {
            let row = chunk.row(steps.start) + half.rows.start;
            let trace = self.trace(bars.at(row * self.pitch));
            let rows = Gather { half: half.index, rows: chunk.rows(&steps), trace, previous, first };
            // SAFETY: the contract of the trait; members write different parts of W_bar.
            unsafe { self.w.gather(&rows, scratch, &half.gatherer) }
        };
        let before = line.before(chunk, copies, window.states);
        states(before.rest.0, before.rest.1, chunk.index == 0);
        if let Some((steps, h0)) = before.start {
            chunk.part().member.barrier();
            states(steps, h0, false);
        }
        let bars = bars.at(chunk.begin() * self.pitch).cast_const();
        // SAFETY: the contract of the trait; members write different columns of the sums.
        unsafe { self.inputs.gather(chunk, bars, self.pitch, line.inputs(chunk, copies), scratch) }
    }

    unsafe fn finish(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.finish(scratch, member);
            self.inputs.finish(member);
        }
    }
}
