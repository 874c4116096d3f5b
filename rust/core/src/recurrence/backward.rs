//! Backward through time: z_bar_t = phi'^H (W^H z_bar_{t+1} + h_bar_t), and the gradients accumulated from it.
//!
//! Time is cut into chunks of a few hundred rows (t, b). Within a chunk each member runs its own rows through the steps.
//! After one barrier the members share the columns of the gradient products over all rows of the chunk, or over the rows
//! of their half of the batch ([`super::halves`]), which are stored separately. z_bar is double-buffered, so that the
//! steps of the next chunk can begin while other members still gather this one. The derivative is computed from h; where
//! h does not determine it accurately, z is recomputed by the kernel of the forward pass.

use super::context::{Context, Setting};
use super::gradients::{Gatherer, Gradients};
use super::halves::Half;
use super::pass::Pass;
use super::sequence::Sequence;
use super::step::{Step, Trace};
use super::team::{Pace, Part, Poll};
use super::work::{Room, Work, chunk_rows, span};
use crate::error::{Error, Result};
use crate::parallel::{Member, run};
use crate::scalar::{Scalar, parts};
use crate::sizes::work;
use std::ops::Range;

/// Fills the requested gradients from ct (T, B, n), which is ignored past the end of a sequence. All arguments are
/// checked.
///
/// # Safety
/// The memory of the room is alive, was carved for these gradients, and is not otherwise in use.
pub unsafe fn backward<T: Scalar>(
    step: &dyn Step<T>,
    room: &Room<T>,
    setting: &Setting<'_, T>,
    (states, ct): (&[T], &[T]),
    gradients: Gradients<'_, T>,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let Sequence { batch, features, n, .. } = setting.sequence;
    let context = Context::new(setting, step, &room.input);
    // SAFETY: the room was carved for these gradients and is used by this call only.
    let gatherer = unsafe { Gatherer::new(&context, &room.gathered, gradients) };
    let (own, input) = (step.work(), work(&[n, features, T::PARTS, T::PARTS]));
    let all = own.saturating_mul(2).saturating_add(input);
    let poll = Poll::new(cancel, all.saturating_mul(chunk_rows(&setting.sequence)));
    let pace = Pace::new(own.saturating_mul(batch));
    let call = Call {
        context: &context,
        gatherer: &gatherer,
        chunks: &room.chunks,
        poll: &poll,
        pace: &pace,
        states,
        ct,
    };
    run(room.threads, &|member| {
        let scratch = room.own.of(member.id).ptr();
        context.pack(member);
        gatherer.pack(member);
        // SAFETY: all members prepare together, each with its own scratch.
        unsafe { step.prepare(scratch, member) };
        member.barrier();
        let part = if room.columns {
            Part::columns_of(member, batch)
        } else {
            Part::rows_of(member, context.schedule.share(member.id, member.count))
        };
        let above = [Trace { bar: std::ptr::null(), kept: std::ptr::null_mut() }; 2];
        let from = Progress { chunk: 0, step: 0, above };
        if let Some(from) = call.walk(&part, from, scratch).filter(|_| member.id == 0) {
            Member::alone(|member| call.walk(&Part::rows_of(member, 0..batch), from, scratch));
        }
    });
    if poll.stopped() { Err(Error::Interrupted) } else { Ok(()) }
}

/// The progress of a member: the next step of a chunk, and the trace of the last step done in each half.
#[derive(Clone, Copy)]
struct Progress<R> {
    chunk: usize,
    step: usize,
    above: [Trace<R>; 2],
}

/// What the members of a call share.
struct Call<'a, T: Scalar> {
    context: &'a Context<'a, T>,
    gatherer: &'a Gatherer<'a, T>,
    chunks: &'a [Work<T::Real>; 2],
    poll: &'a Poll<'a>,
    pace: &'a Pace,
    states: &'a [T],
    ct: &'a [T],
}

impl<T: Scalar> Call<'_, T> {
    /// The steps of the k-th chunk from the end of the recurrence.
    fn chunk(&self, k: usize) -> Range<usize> {
        let (steps, span) = (self.context.schedule.steps, span(self.context.sequence.batch));
        let (late, early) = (steps - k * span, steps.saturating_sub((k + 1) * span));
        if self.context.schedule.reverse { steps - late..steps - early } else { early..late }
    }

    /// Runs all chunks from there on; returns the position from which member 0 continues alone, if any.
    fn walk(
        &self,
        part: &Part<'_>,
        from: Progress<T::Real>,
        scratch: *mut T::Real,
    ) -> Option<Progress<T::Real>> {
        let Call { context, gatherer, .. } = *self;
        let (states, ct) = (parts(self.states).as_ptr(), parts(self.ct).as_ptr());
        let (member, span) = (part.member, span(context.sequence.batch));
        let halves = Half::all(context, part);
        let mut at = from;
        while at.chunk * span < context.schedule.steps {
            let (steps, work) = (self.chunk(at.chunk), &self.chunks[at.chunk % 2]);
            let copied = copied(context, &steps);
            let pass = |half| Pass { context, gatherer, work, steps: &steps, copied, half, part: &half.part };
            for step in at.step..steps.len() {
                let t = if context.schedule.reverse { steps.start + step } else { steps.end - 1 - step };
                for half in halves.iter().flatten() {
                    // SAFETY: members write disjoint rows, or disjoint columns with barriers between steps. The buffers
                    // of the previous chunk are only read; those of this chunk were last read before the previous
                    // barrier.
                    unsafe { pass(half).step(t, states, ct, at.above[half.index]) };
                    at.above[half.index] = pass(half).trace(t);
                }
                if self.pace.alone(part, at.chunk * span + step) {
                    // Other members may still read this step's z_bar for the gradient of h0.
                    member.barrier();
                    return Some(Progress { step: step + 1, ..at });
                }
            }
            member.barrier();
            for half in halves.iter().flatten() {
                // SAFETY: all rows of the chunk are complete.
                unsafe { pass(half).gather(states, scratch, at.chunk == 0) };
            }
            // The products of the chunk do not count towards the pace of its steps.
            part.start_clock();
            if self.poll.leave(member, at.chunk) {
                return None;
            }
            at = Progress { chunk: at.chunk + 1, step: 0, ..at };
        }
        member.barrier();
        // SAFETY: all products are complete.
        unsafe {
            context.step.finish(scratch, member);
            gatherer.finish(member);
        }
        None
    }
}

/// Whether the rows of a chunk are copied to be contiguous: those of a half, and where sequences end or start within the
/// chunk. (If all lengths are equal even the first step needs no copies: it is gathered separately.)
fn copied<T: Scalar>(context: &Context<'_, T>, steps: &Range<usize>) -> bool {
    let (schedule, halves) = (&context.schedule, context.halves);
    let together = || schedule.full(&(0..schedule.steps));
    let seamless = || schedule.full(steps) && schedule.seamless(steps);
    halves > 1 || !(together() || seamless())
}
