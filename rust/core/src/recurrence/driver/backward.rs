//! Backward through time: the cotangents of every step, and the gradients gathered from them.
//!
//! Within a chunk members run the steps independently; then, after one barrier, they share the columns of the
//! gradient products over all rows of the chunk, or of their half of the batch ([`Half`]), whose rows
//! are then stored apart from those of the other.

use super::super::time::{Chunk, ChunkRow, Half, Schedule, copied};
use super::cell::{Back, Pull};
use super::chunks::Source;
use super::replay::Loaded;
use super::sharing::{Pace, Room};
use super::window::Windows;
use crate::parallel::{Member, run};
use crate::scalar::Real;
use crate::transition::{Needs, Part};
use isometry_kernels::stop::poll;
use std::ops::Range;

/// Walks a cell back through time; its gradients are then complete. The states are in the windows, or are obtained there
/// chunk by chunk.
///
/// # Safety
/// The memory of the room and of the cell lives, was cut for this call, and nobody else uses it.
pub unsafe fn backward<R: Real>(
    (cell, needs): (&dyn Pull<R>, &Needs),
    room: &Room<R>,
    schedule: &Schedule,
    (windows, source): (&Windows<'_, *const R>, Option<&Source<'_, R>>),
) {
    let (back, forth) = (needs.work[0], needs.step());
    let work = back.saturating_add(forth).saturating_mul(schedule.chunk_rows());
    let pace = Pace::new(back.saturating_mul(schedule.batch));
    let step = forth.saturating_mul(schedule.batch);
    let loads = (step, Pace::new(step));
    let call = Call { cell, schedule, windows, source, work, pace: &pace, loads: &loads };
    run(room.threads, &|member| {
        let scratch = room.scratch(member);
        // SAFETY: all members prepare together, each with scratch of its own.
        unsafe { cell.prepare(scratch, member) };
        member.barrier();
        let part = room.part(member, schedule);
        let from = Progress { chunk: 0, load: Some(0), actions: 0, step: 0, above: [None; 2] };
        if let Some(from) = call.walk(&part, from, scratch).filter(|_| member.id == 0) {
            Member::alone(|member| call.walk(&Part::rows_of(member, 0..schedule.batch), from, scratch));
        }
    });
}

/// The progress of a member: the next step of a chunk, and the rows of the last completed step of each half.
#[derive(Clone, Copy)]
struct Progress {
    chunk: usize,
    /// How far the states of the chunk are obtained, if they are not all there.
    load: Option<usize>,
    /// What was done before to obtain states.
    actions: usize,
    step: usize,
    above: [Option<ChunkRow>; 2],
}

/// The data shared by the members of a call.
struct Call<'a, R: Real> {
    cell: &'a dyn Pull<R>,
    schedule: &'a Schedule,
    windows: &'a Windows<'a, *const R>,
    /// Where the states of a chunk come from, if they are not all there.
    source: Option<&'a Source<'a, R>>,
    /// Of a chunk.
    work: usize,
    pace: &'a Pace,
    /// The work of a replayed step, and the pace of these.
    loads: &'a (usize, Pace),
}

impl<R: Real> Call<'_, R> {
    /// The steps of the k-th chunk from the end of the recurrence.
    fn steps(&self, k: usize) -> Range<usize> {
        let Schedule { steps, span, .. } = *self.schedule;
        let (late, early) = (steps - k * span, steps.saturating_sub((k + 1) * span));
        if self.schedule.reverse { steps - late..steps - early } else { early..late }
    }

    /// All steps from there on; returns the step from which member 0 continues alone, if sharing stops.
    fn walk(&self, part: &Part<'_>, from: Progress, scratch: *mut R) -> Option<Progress> {
        let Call { cell, schedule, .. } = *self;
        let (member, span, count) = (part.member, schedule.span, cell.halves());
        let halves = Half::all(schedule, count, part);
        let mut at = from;
        while at.chunk * span < schedule.steps {
            let steps = &self.steps(at.chunk);
            // the same, counted in the direction of the recurrence
            let end = schedule.steps - at.chunk * span;
            let ordinals = end.saturating_sub(span)..end;
            let window = self.windows.of(ordinals.start);
            if let (Some(source), Some(done)) = (self.source, at.load) {
                let from = (done, at.actions);
                // SAFETY: all members load together; the states of the last chunk are read until the next barrier only.
                match unsafe {
                    source.load(schedule, (&ordinals, count > 1), from, self.loads, part, scratch)
                } {
                    Loaded::Ready(actions) => at = Progress { load: None, actions, ..at },
                    Loaded::Alone(done) => return Some(Progress { load: Some(done), ..at }),
                }
                part.lap();
            }
            let (index, copied) = (at.chunk, copied(schedule, count, steps));
            let chunk = |half| Chunk { schedule, halves: count, index, steps, copied, half };
            for step in at.step..steps.len() {
                let t = if schedule.reverse { steps.start + step } else { steps.end - 1 - step };
                for half in halves.iter().flatten() {
                    let (above, chunk) = (at.above[half.index], &chunk(half));
                    // SAFETY: members write their own rows, or columns with barriers between steps; the buffers of the
                    // chunk before are only read, those of this chunk were last read before the previous barrier.
                    unsafe { cell.pull(Back { t, window: &window, above, chunk, scratch }) };
                    at.above[half.index] = Some(chunk.place(t));
                }
                if self.pace.alone(part, at.chunk * span + step) {
                    // The others may still read this step's cotangents for the gradient of h0.
                    member.barrier();
                    return Some(Progress { step: step + 1, ..at });
                }
            }
            member.barrier();
            for half in halves.iter().flatten() {
                // SAFETY: all rows of the chunk are complete.
                unsafe { cell.gather(&window, &chunk(half), scratch) };
            }
            // The products of the chunk do not count towards the pace of its steps.
            part.lap();
            poll(self.work);
            at = Progress { chunk: at.chunk + 1, load: Some(0), step: 0, ..at };
        }
        member.barrier();
        // SAFETY: every product is complete.
        unsafe { cell.finish(scratch, member) };
        None
    }
}
