//! The memory of the steps: of all, or of a window of them that moves with the recurrence.

use super::super::time::{Checkpoint, Schedule, Segments};
use crate::scratch::{Arena, Region};
use crate::transition::Part;
use std::ops::Range;

/// A pointer, to memory that is written or only read: the caller's arrays are never written through a reference that reads.
pub trait Pointer: Copy {
    /// Ahead by so many numbers, modulo the address space.
    fn moved(self, by: usize) -> Self;
}
impl<R> Pointer for *mut R {
    fn moved(self, by: usize) -> Self {
        self.wrapping_add(by)
    }
}
impl<R> Pointer for *const R {
    fn moved(self, by: usize) -> Self {
        self.wrapping_add(by)
    }
}

/// The arrays of some steps.
#[derive(Clone, Copy)]
pub struct Window<P> {
    /// The states of step t are t steps from here.
    pub states: P,
    /// The cotangents of step t are t steps from here, where the caller has no array of them alone.
    pub cts: P,
    /// Arrays that the cell saves, with room for `slots` steps, used in turn.
    saved: P,
    slots: usize,
}

impl<P: Pointer> Window<P> {
    /// Step t of the saved array that begins after `before` others of `each` numbers per step, and has `own`.
    pub fn saved(&self, t: usize, before: usize, each: usize, own: usize) -> P {
        self.saved.moved(before * self.slots * each + t % self.slots * own * each)
    }
}

/// The windows of all steps, or one of them all, for the time that the caller's arrays are borrowed.
#[derive(Clone, Copy)]
pub struct Windows<'a, P> {
    schedule: &'a Schedule,
    /// (T, B, width), or the states of a window and those before it.
    states: P,
    /// Of a window, or empty.
    cts: P,
    saved: P,
    /// Numbers of a state.
    width: usize,
    /// Steps that the saved arrays have room for.
    slots: usize,
    /// The steps of each window, where the states do not have all steps.
    steps: Option<Segments>,
}

// SAFETY: only addresses; code that dereferences them guarantees disjoint or synchronised accesses.
unsafe impl<P> Sync for Windows<'_, P> {}

impl<P: Pointer> Windows<'_, P> {
    /// Numbers of a step.
    pub fn stride(&self) -> usize {
        self.schedule.batch * self.width
    }

    /// That of the k-th step.
    pub fn of(&self, k: usize) -> Window<P> {
        let Windows { states, cts, saved, slots, .. } = *self;
        let Some(steps) = self.steps else { return Window { states, cts, saved, slots } };
        let Range { start, end } = steps.of(k);
        let (schedule, stride) = (self.schedule, self.stride());
        let first = schedule.step(start).min(schedule.step(end - 1));
        // the step before the window, in the direction of the recurrence, is the first or the last of its states
        let before = (first * stride).wrapping_neg();
        let states = states.moved(if schedule.reverse { before } else { before.wrapping_add(stride) });
        Window { states, cts: cts.moved(before), saved, slots }
    }

    /// The states of the k-th step in the window of another.
    pub fn state(&self, k: usize, window: &Window<P>) -> P {
        window.states.moved(self.schedule.step(k) * self.stride())
    }

    /// Whether the k-th step is the first of a window.
    pub fn turns(&self, k: usize) -> bool {
        self.steps.is_some_and(|steps| k > 0 && steps.of(k).start == k)
    }

    /// The caller's arrays in place of these.
    fn over([states, saved]: [Option<P>; 2], own: Self) -> Self {
        let slots = if saved.is_some() { own.schedule.steps } else { own.slots };
        Windows { states: states.unwrap_or(own.states), saved: saved.unwrap_or(own.saved), slots, ..own }
    }
}

impl<'a, R> Windows<'a, *mut R> {
    /// To be written, the caller's arrays of all steps where there are any.
    pub fn written(self, arrays: [Option<&'a mut [R]>; 2]) -> Self {
        Windows::over(arrays.map(|array| array.map(<[R]>::as_mut_ptr)), self)
    }

    /// To be read, the caller's arrays of all steps where there are any.
    pub fn read(&self, arrays: [Option<&'a [R]>; 2]) -> Windows<'a, *const R> {
        let Windows { schedule, states, cts, saved, width, slots, steps } = *self;
        let own = Windows {
            schedule,
            states: states.cast_const(),
            cts: cts.cast_const(),
            saved: saved.cast_const(),
            width,
            slots,
            steps,
        };
        Windows::over(arrays.map(|array| array.map(<[R]>::as_ptr)), own)
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

    /// Zeros for this part's rows past the ends of sequences, in states of all steps.
    ///
    /// # Safety
    /// Nobody else uses these rows.
    pub unsafe fn clear(&self, k: usize, part: &Part<'_>) {
        let rows = part.rows(self.schedule.active(self.schedule.step(k))..self.schedule.batch);
        if self.steps.is_none() && part.leads() {
            let first = self.state(k, &self.of(k)).wrapping_add(rows.start * self.width);
            // SAFETY: the contract above; a step has B rows.
            unsafe { first.write_bytes(0, rows.len() * self.width) }
        }
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

/// The memory of windows that the caller has no array for.
pub struct WindowMemory<R> {
    /// Those that backward replays; all steps if it does not.
    pub segments: Segments,
    window: Option<usize>,
    states: Region<R>,
    cts: Region<R>,
    saved: Region<R>,
    slots: usize,
}

impl<R> WindowMemory<R> {
    /// For a forward pass: states of a window unless the caller has an array for all, and one step of what the cell saves, so many
    /// numbers for a sequence.
    pub fn forward(arena: &mut Arena, schedule: &Schedule, width: usize, moving: bool, saved: usize) -> Self {
        let window = moving.then_some(schedule.span.min(schedule.steps));
        let segments = Segments::new(schedule.steps, schedule.steps);
        WindowMemory::carve(arena, schedule, width, segments, window, [saved, 1, 0])
    }

    /// For a backward pass of a cell that saves so many numbers per step and sequence: none without a checkpoint, else
    /// a segment or, where steps are undone, a chunk; a chunk and its cotangents where they lie `beside` others.
    pub fn backward(
        arena: &mut Arena,
        schedule: &Schedule,
        width: usize,
        checkpoint: Option<Checkpoint>,
        (beside, saved): (bool, usize),
    ) -> Self {
        let Schedule { steps, batch, span, .. } = *schedule;
        let chunk = span.min(steps);
        let Some(checkpoint) = checkpoint else {
            let (whole, window) = (Segments::new(steps, steps), beside.then_some(chunk));
            return WindowMemory::carve(arena, schedule, width, whole, window, [0, 1, window.unwrap_or(0)]);
        };
        let segments = checkpoint.segments(steps, batch, [saved, width]);
        let window = match checkpoint {
            Checkpoint::Sqrt => segments.length(),
            Checkpoint::Reversible => chunk,
        };
        WindowMemory::carve(arena, schedule, width, segments, Some(window), [saved, window, 0])
    }

    fn carve(
        arena: &mut Arena,
        schedule: &Schedule,
        width: usize,
        segments: Segments,
        window: Option<usize>,
        [saved, slots, cts]: [usize; 3],
    ) -> Self {
        let states = window.map_or(0, |steps| steps + 1);
        WindowMemory {
            segments,
            window,
            states: arena.take(&[states, schedule.batch, width]),
            cts: arena.take(&[cts, schedule.batch, width]),
            saved: arena.take(&[saved, slots, schedule.batch]),
            slots,
        }
    }

    /// The windows in this memory.
    pub fn windows<'a>(&self, schedule: &'a Schedule, width: usize) -> Windows<'a, *mut R> {
        let [states, cts, saved] = [self.states, self.cts, self.saved].map(Region::ptr);
        let steps = self.window.map(|length| Segments::new(schedule.steps, length));
        Windows { schedule, states, cts, saved, width, slots: self.slots, steps }
    }
}
