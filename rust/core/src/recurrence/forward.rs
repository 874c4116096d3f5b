//! h_t = phi(W h_{t-1} + V x_t + b) for all t, written where the caller wants it: nothing else is kept.

use super::context::{Context, Wanted};
use super::pages::want_huge_pages;
use super::sequence::Sequence;
use super::step::Step;
use super::team::{Pace, Part, Poll, layout};
use crate::error::{Error, Result, check_len};
use crate::kernels::Buffer;
use crate::parallel::{Member, Shared, run};
use crate::scalar::{Scalar, parts_mut};

/// Fills states (T, B, n); zeros behind the end of a sequence.
pub fn forward<T: Scalar>(
    step: &dyn Step<T>,
    sequence: &Sequence<'_, T>,
    states: &mut [T],
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let Sequence { steps, batch, features, n, .. } = *sequence;
    check_len("states", states.len(), steps * batch * n)?;
    let context = Context::new(sequence, step);
    let work = step.work() + n * features * T::PARTS * T::PARTS;
    let (threads, columns) = layout(work, step.divisible(), batch, steps, threads);
    want_huge_pages(states);
    let states = Shared(parts_mut(states).as_mut_ptr());
    let (poll, pace) = (Poll::new(cancel, work * batch), Pace::new(work * batch));
    let call = Call { context: &context, states, poll: &poll, pace: &pace };
    run(threads, &|member| {
        let scratch = Buffer::scratch(step.scratch(0));
        context.pack(member);
        // SAFETY: all members prepare together.
        unsafe { step.prepare(scratch.ptr(), member) };
        member.barrier();
        let part = if columns {
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
    /// The steps from the k-th on; returns where member 0 is to go on alone, if so.
    fn walk(&self, part: &Part<'_>, from: usize) -> Option<usize> {
        let Call { context, states, .. } = *self;
        for k in from..context.schedule.steps {
            let t = context.schedule.step(k);
            let out = states.at(t * context.stride());
            // SAFETY: the rows of this member were finished by itself in the step before, or by all, after a barrier.
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
