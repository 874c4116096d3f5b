//! h_t = phi(W h_{t-1} + V x_t + b) for all t, written to the caller's array; nothing else is kept.

use super::context::{Context, Setting, Wanted};
use super::packed::Packed;
use super::pages::want_huge_pages;
use super::sequence::Sequence;
use super::step::Step;
use super::team::{Pace, Part, Poll, layout};
use crate::error::{Error, Result};
use crate::parallel::{Member, Shared, run};
use crate::scalar::{Scalar, parts_mut};
use crate::scratch::{Arena, Regions};
use crate::sizes::work;

/// The members of a forward pass and their memory.
pub struct Room<T: Scalar> {
    input: Packed<T>,
    own: Regions<T::Real>,
    threads: usize,
    /// Whether members share columns instead of rows.
    columns: bool,
    /// Multiply-adds of one step per row.
    work: usize,
}

impl<T: Scalar> Room<T> {
    /// For up to `threads` members.
    pub fn carve(arena: &mut Arena, setting: &Setting<'_, T>, step: &dyn Step<T>, threads: usize) -> Self {
        let Sequence { steps, batch, features, n, .. } = setting.sequence;
        let work = step.work().saturating_add(work(&[n, features, T::PARTS, T::PARTS]));
        let (threads, columns) = layout(work, step.divisible(), batch, steps, threads);
        let own = arena.regions(threads, &[step.scratch(0)]);
        Room { input: setting.input(arena), own, threads, columns, work }
    }
}

/// Fills states (T, B, n), whose size is checked; zeros past the end of a sequence.
pub fn forward<T: Scalar>(
    step: &dyn Step<T>,
    room: &Room<T>,
    setting: &Setting<'_, T>,
    states: &mut [T],
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let batch = setting.sequence.batch;
    let context = Context::new(setting, step, &room.input);
    let work = room.work.saturating_mul(batch);
    want_huge_pages(states);
    let states = Shared(parts_mut(states).as_mut_ptr());
    let (poll, pace) = (Poll::new(cancel, work), Pace::new(work));
    let call = Call { context: &context, states, poll: &poll, pace: &pace };
    run(room.threads, &|member| {
        context.pack(member);
        // SAFETY: all members prepare together, each with its own scratch.
        unsafe { step.prepare(room.own.of(member.id).ptr(), member) };
        member.barrier();
        let part = if room.columns {
            Part::columns_of(member, batch)
        } else {
            Part::rows_of(member, context.schedule.share(member.id, member.count))
        };
        if let Some(k) = call.walk(&part, 0).filter(|_| member.id == 0) {
            Member::alone(|member| call.walk(&Part::rows_of(member, 0..batch), k));
        }
    });
    if poll.stopped() { Err(Error::Interrupted) } else { Ok(()) }
}

struct Call<'a, T: Scalar> {
    context: &'a Context<'a, T>,
    states: Shared<T::Real>,
    poll: &'a Poll<'a>,
    pace: &'a Pace,
}

impl<T: Scalar> Call<'_, T> {
    /// The steps from the k-th on; returns the step from which member 0 continues alone, if any.
    fn walk(&self, part: &Part<'_>, from: usize) -> Option<usize> {
        let Call { context, states, .. } = *self;
        for k in from..context.schedule.steps {
            let t = context.schedule.step(k);
            let out = states.at(t * context.stride());
            // SAFETY: the previous step of these rows was written by this member, or by all members before a barrier.
            unsafe {
                context.advance(t, states.0, out, Wanted::State, part);
                let behind = part.rows(context.schedule.active(t)..context.schedule.batch);
                if part.leads() {
                    out.add(behind.start * context.width).write_bytes(0, behind.len() * context.width);
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
