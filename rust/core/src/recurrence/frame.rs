//! The memory of the steps: of all, or of a window of them that moves with the recurrence.

use super::plan::{Checkpoint, Segments};
use super::schedule::Schedule;
use crate::parallel::Shared;
use crate::scratch::{Arena, Region};
use crate::transition::Part;
use std::ops::Range;

/// The arrays of some steps.
#[derive(Clone, Copy)]
pub struct Frame<R> {
    /// The states of step t are t steps from here.
    pub states: *mut R,
    /// Arrays of `slots` steps that the cell saves; step `first` is at their start.
    saved: *mut R,
    first: usize,
    slots: usize,
}

impl<R> Frame<R> {
    /// Step t of the saved array that begins after `before` others of `each` numbers per step, and has `own`.
    pub fn saved(&self, t: usize, before: usize, each: usize, own: usize) -> *mut R {
        let slot = (t - self.first) % self.slots;
        self.saved.wrapping_add(before * self.slots * each + slot * own * each)
    }
}

/// The frames of all steps.
pub struct Frames<'a, R> {
    schedule: &'a Schedule,
    /// (T, B, width), or the states of a window and those before it.
    states: Shared<R>,
    saved: Shared<R>,
    /// Numbers of a state.
    width: usize,
    /// Steps that the saved arrays have room for.
    slots: usize,
    /// Windows, where the states do not have all steps.
    windows: Option<Segments>,
}

impl<'a, R> Frames<'a, R> {
    /// Numbers of a step.
    fn stride(&self) -> usize {
        self.schedule.batch * self.width
    }

    /// Whether the states of all steps are there.
    pub fn whole(&self) -> bool {
        self.windows.is_none()
    }

    /// That of the k-th step.
    pub fn of(&self, k: usize) -> Frame<R> {
        let Some(windows) = self.windows else {
            return Frame { states: self.states.0, saved: self.saved.0, first: 0, slots: self.slots };
        };
        let Range { start, end } = windows.of(k);
        let (schedule, stride) = (self.schedule, self.stride());
        let first = schedule.step(start).min(schedule.step(end - 1));
        // the step before the window, in the direction of the recurrence, is the first or the last of its states
        let before = first * stride;
        let states = self.states.0.wrapping_sub(before);
        let states = if schedule.reverse { states } else { states.wrapping_add(stride) };
        Frame { states, saved: self.saved.0, first, slots: self.slots }
    }

    /// The states of the k-th step in the frame of another.
    pub fn state(&self, k: usize, frame: &Frame<R>) -> *mut R {
        frame.states.wrapping_add(self.schedule.step(k) * self.stride())
    }

    /// Whether the k-th step is the first of a window.
    pub fn turns(&self, k: usize) -> bool {
        self.windows.is_some_and(|windows| k > 0 && windows.of(k).start == k)
    }

    /// Copies the states before the k-th step, the first of a window, into that window.
    ///
    /// # Safety
    /// They are complete, and nobody else uses the memory of this part's rows.
    pub unsafe fn enter(&self, k: usize, part: &Part<'_>) {
        let [from, to] = [k - 1, k].map(|of| self.state(k - 1, &self.of(of)));
        // SAFETY: the contract above.
        unsafe { self.copy(from, to, 0..self.schedule.batch, part) }
        part.sync();
    }

    /// Copies this part's rows of a step, whole ones.
    ///
    /// # Safety
    /// The rows exist at both, complete at the first, and nobody else uses them at the second.
    pub unsafe fn copy(&self, from: *const R, to: *mut R, rows: Range<usize>, part: &Part<'_>) {
        let rows = part.rows(rows);
        if part.leads() && !rows.is_empty() {
            let at = rows.start * self.width;
            // SAFETY: the contract above.
            unsafe { to.add(at).copy_from(from.add(at), rows.len() * self.width) }
        }
    }
}

/// The memory of frames that the caller has no array for.
pub struct Space<R> {
    /// Those that backward replays; all steps if it does not.
    pub segments: Segments,
    window: Option<usize>,
    states: Region<R>,
    saved: Region<R>,
    slots: usize,
}

impl<R> Space<R> {
    /// For a forward pass: states of a window unless the caller has an array for all, and one step of so many saved ones.
    pub fn forward(
        arena: &mut Arena,
        schedule: &Schedule,
        width: usize,
        windows: bool,
        saved: usize,
    ) -> Self {
        let window = windows.then_some(schedule.span.min(schedule.steps));
        let segments = Segments::new(schedule.steps, schedule.steps);
        Space::carve(arena, schedule, width, segments, window, (saved, 1))
    }

    /// For a backward pass of a cell that saves so many states per step: none without a checkpoint, else a segment or,
    /// where steps are undone, a chunk.
    pub fn backward(
        arena: &mut Arena,
        schedule: &Schedule,
        width: usize,
        checkpoint: Option<Checkpoint>,
        saved: usize,
    ) -> Self {
        let Schedule { steps, batch, span, .. } = *schedule;
        let Some(checkpoint) = checkpoint else {
            return Space::carve(arena, schedule, width, Segments::new(steps, steps), None, (0, 1));
        };
        let segments = checkpoint.segments(steps, batch, saved);
        let window = match checkpoint {
            Checkpoint::Sqrt => segments.length(),
            Checkpoint::Reversible => span.min(steps),
        };
        Space::carve(arena, schedule, width, segments, Some(window), (saved, window))
    }

    fn carve(
        arena: &mut Arena,
        schedule: &Schedule,
        width: usize,
        segments: Segments,
        window: Option<usize>,
        (saved, slots): (usize, usize),
    ) -> Self {
        let states = window.map_or(0, |steps| steps + 1);
        Space {
            segments,
            window,
            states: arena.take(&[states, schedule.batch, width]),
            saved: arena.take(&[saved, slots, schedule.batch, width]),
            slots,
        }
    }

    /// The frames; of all steps where the arrays of the caller are.
    pub fn frames<'a>(
        &self,
        schedule: &'a Schedule,
        width: usize,
        states: Option<&[R]>,
        saved: Option<&[R]>,
    ) -> Frames<'a, R> {
        let start = |array: &[R]| Shared(array.as_ptr().cast_mut());
        let own = (Shared(self.saved.ptr()), self.slots);
        let (saved, slots) = saved.map_or(own, |saved| (start(saved), schedule.steps));
        let states = states.map_or(Shared(self.states.ptr()), start);
        let windows = self.window.map(|length| Segments::new(schedule.steps, length));
        Frames { schedule, states, saved, width, slots, windows }
    }
}
