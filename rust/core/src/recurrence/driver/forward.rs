//! Forward through time: the states of all steps, in the caller's array, or a window of them, the last of each sequence,
//! and those at the borders of segments.

use super::super::beside::Lane;
use super::super::time::{Schedule, Segments};
use super::cell::Cell;
use super::sharing::{Pace, Room};
use super::window::Windows;
use crate::parallel::{Member, Shared, run};
use crate::scalar::Real;
use crate::transition::Part;
use isometry_kernels::stop::poll;

/// Where a forward pass writes, besides the windows of the steps.
pub struct Outputs<R> {
    /// All states, among those of other recurrences.
    pub beside: Option<Lane<R>>,
    /// The last state of each sequence (B, width).
    pub last: Option<Shared<R>>,
    /// The states at the borders of segments (K, B, width).
    pub marks: Option<(Shared<R>, Segments)>,
}

/// Fills the windows of all steps in turn, each of so much work per row, with zeros past the end of a sequence in states of all steps, and the outputs.
///
/// # Safety
/// The outputs have their sizes; the memory of the room and of the cell lives, was cut for this call, and nobody else uses it.
pub unsafe fn forward<R: Real>(
    (cell, work): (&dyn Cell<R>, usize),
    room: &Room<R>,
    schedule: &Schedule,
    (windows, outputs): (&Windows<'_, *mut R>, &Outputs<R>),
) {
    let work = work.saturating_mul(schedule.batch);
    let pace = Pace::new(work);
    let call = Call { cell, schedule, windows, outputs, work, pace: &pace };
    run(room.threads, &|member| {
        let scratch = room.scratch(member);
        // SAFETY: all members prepare together, each with scratch of its own.
        unsafe { cell.prepare(scratch, member) };
        member.barrier();
        let part = room.part(member, schedule);
        if let Some(k) = call.walk(&part, 0, scratch).filter(|_| member.id == 0) {
            Member::alone(|member| call.walk(&Part::rows_of(member, 0..schedule.batch), k, scratch));
        }
    });
}

struct Call<'a, R: Real> {
    cell: &'a dyn Cell<R>,
    schedule: &'a Schedule,
    windows: &'a Windows<'a, *mut R>,
    outputs: &'a Outputs<R>,
    /// Of a step.
    work: usize,
    pace: &'a Pace,
}

impl<R: Real> Call<'_, R> {
    /// The steps from the k-th on; returns the step from which member 0 continues alone, if sharing stops.
    fn walk(&self, part: &Part<'_>, from: usize, scratch: *mut R) -> Option<usize> {
        let Call { cell, schedule, windows, outputs, .. } = *self;
        for k in from..schedule.steps {
            let (t, window) = (schedule.step(k), windows.of(k));
            // SAFETY: the rows of this member were finished by itself in the step before, or by all, after a barrier.
            unsafe {
                self.cross(k, part);
                cell.ahead(k, &(0..schedule.steps), part);
                cell.advance(t, &window, part, scratch);
                windows.clear(k, part);
                part.sync();
                if let Some(beside) = outputs.beside.filter(|_| part.leads()) {
                    let (before, active) = (t * schedule.batch, schedule.active(t));
                    beside.write(before, windows.state(k, &window), part.rows(0..active));
                    beside.write(before, std::ptr::null(), part.rows(active..schedule.batch));
                }
                if let Some(last) = outputs.last {
                    let ending = schedule.continued(t)..schedule.active(t);
                    windows.copy(windows.state(k, &window), last.0, ending, part);
                }
            }
            poll(self.work);
            if self.pace.alone(part, k) {
                return Some(k + 1);
            }
        }
        None
    }

    /// Before the k-th step: stores the states at a border, and takes them along into a new window.
    ///
    /// # Safety
    /// The step before is complete for this part's rows.
    unsafe fn cross(&self, k: usize, part: &Part<'_>) {
        let Call { windows, outputs, schedule, .. } = *self;
        let border = outputs.marks.and_then(|(marks, segments)| Some((marks, segments.border(k)?)));
        let all = || 0..schedule.batch;
        // SAFETY: the contract above; a border has B rows.
        unsafe {
            if let Some((marks, border)) = border {
                let state = windows.state(k - 1, &windows.of(k - 1));
                windows.copy(state, marks.at(border * windows.stride()), all(), part);
            }
            if windows.turns(k) {
                windows.enter(k, part);
            }
        }
    }
}
