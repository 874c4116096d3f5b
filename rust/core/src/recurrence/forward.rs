//! Forward through time: the states of all steps, in the caller's array.

use super::cell::Cell;
use super::schedule::Schedule;
use super::sharing::{Pace, Poll, Room};
use crate::error::{Error, Result};
use crate::parallel::{Member, Shared, run};
use crate::scalar::Real;
use crate::transition::Part;

/// Fills states (T, B, width), whose size was checked; zeros past the end of a sequence.
pub fn forward<R: Real>(
    cell: &dyn Cell<R>,
    room: &Room<R>,
    schedule: &Schedule,
    states: &mut [R],
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let work = cell.work().saturating_mul(schedule.batch);
    let states = Shared(states.as_mut_ptr());
    let (poll, pace) = (Poll::new(cancel, work), Pace::new(work));
    let call = Call { cell, schedule, states, poll: &poll, pace: &pace };
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
    if poll.stopped() { Err(Error::Interrupted) } else { Ok(()) }
}

struct Call<'a, R: Real> {
    cell: &'a dyn Cell<R>,
    schedule: &'a Schedule,
    states: Shared<R>,
    poll: &'a Poll<'a>,
    pace: &'a Pace,
}

impl<R: Real> Call<'_, R> {
    /// The steps from the k-th on; returns the step from which member 0 continues alone, if sharing stops.
    fn walk(&self, part: &Part<'_>, from: usize, scratch: *mut R) -> Option<usize> {
        let Call { cell, schedule, states, .. } = *self;
        let width = cell.width();
        for k in from..schedule.steps {
            let t = schedule.step(k);
            // SAFETY: the rows of this member were finished by itself in the step before, or by all, after a barrier.
            unsafe {
                cell.advance(t, states.0, part, scratch);
                let behind = part.rows(schedule.active(t)..schedule.batch);
                if part.leads() {
                    let first = t * schedule.batch + behind.start;
                    states.at(first * width).write_bytes(0, behind.len() * width);
                }
            }
            part.sync();
            if self.poll.leave(part.member, k) {
                return None;
            }
            if self.pace.alone(part, k) {
                return Some(k + 1);
            }
        }
        None
    }
}
