//! Backward through time: z_bar_t = phi'^H (W^H z_bar_{t+1} + h_bar_t), and the gradients gathered from it.
//!
//! Time is cut into chunks of some hundred rows (t, b). Within a chunk members go their own ways through the steps; then,
//! after one barrier, they share the columns of the gradient products over all rows of the chunk, or of their half of the
//! batch ([`super::halves`]), whose rows then stand apart from those of the other. z_bar lives in two
//! buffers used in turn, so that the steps of the next chunk may begin while others still gather this one.
//! The derivative is read off h; where that loses something, z is computed anew by the kernel of the forward pass.

use super::affine::{Affine, Finish};
use super::context::{Context, Setting, Wanted};
use super::gradients::{Gatherer, Gradients, Rows};
use super::halves::Half;
use super::sequence::Sequence;
use super::step::{Chunk, Step, Trace};
use super::team::{Pace, Part, Poll};
use super::work::{Room, Work, chunk_rows, span};
use crate::activation::{Kind, Source};
use crate::error::{Error, Result};
use crate::parallel::{Member, run};
use crate::scalar::{Scalar, parts};
use crate::scratch::Region;
use crate::sizes::work;
use std::ops::Range;

/// Fills the gradients that are wanted from ct (T, B, n), which is ignored behind the end of a sequence. All were checked.
///
/// # Safety
/// The memory of the room lives, was cut for these gradients, and nobody else uses it.
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
    // SAFETY: the contract above.
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
    run(room.threads, |member| {
        let scratch = room.own.of(member.id).ptr();
        context.pack(member);
        gatherer.pack(member);
        // SAFETY: all members prepare together, each with scratch of its own.
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

/// How far a member has come: the next step of a chunk, and the trace of the step done last in each half.
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

    /// Everything from there on; returns where member 0 is to go on alone, if so.
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
                    // SAFETY: members write their own rows, or columns with barriers between steps; the buffers of the
                    // chunk before are only read, those of this chunk were last read before the previous barrier.
                    unsafe { pass(half).step(t, states, ct, at.above[half.index]) };
                    at.above[half.index] = pass(half).trace(t);
                }
                if self.pace.alone(part, at.chunk * span + step) {
                    // The others may still read this step's z_bar for the gradient of h0.
                    member.barrier();
                    return Some(Progress { step: step + 1, ..at });
                }
            }
            member.barrier();
            for half in halves.iter().flatten() {
                // SAFETY: all rows of the chunk are complete.
                unsafe { pass(half).gather(states, scratch, at.chunk == 0) };
            }
            // The products of the chunk are no part of the pace of its steps.
            part.start_clock();
            if self.poll.leave(member, at.chunk) {
                return None;
            }
            at = Progress { chunk: at.chunk + 1, step: 0, ..at };
        }
        member.barrier();
        // SAFETY: every product is complete.
        unsafe {
            context.step.finish(scratch, member);
            gatherer.finish(member);
        }
        None
    }
}

/// Whether the rows of a chunk are copied to lie one after the other: those of a half, and where some sequences end or
/// start within the chunk. (Where all have the same length even the first step needs no copies: it is gathered apart.)
fn copied<T: Scalar>(context: &Context<'_, T>, steps: &Range<usize>) -> bool {
    let (schedule, halves) = (&context.schedule, context.halves);
    let together = || schedule.full(&(0..schedule.steps));
    let seamless = || schedule.full(steps) && schedule.seamless(steps);
    halves > 1 || !(together() || seamless())
}

/// One member's way through one chunk of a half of the batch.
struct Pass<'a, T: Scalar> {
    context: &'a Context<'a, T>,
    gatherer: &'a Gatherer<'a, T>,
    work: &'a Work<T::Real>,
    steps: &'a Range<usize>,
    copied: bool,
    half: &'a Half<'a>,
    part: &'a Part<'a>,
}

impl<T: Scalar> Pass<'_, T> {
    /// Where the rows of the half begin in the chunk.
    fn first(&self) -> usize {
        self.steps.len() * self.half.rows.start
    }

    /// Where row 0 of step t would lie in the chunk.
    fn before(&self, t: usize) -> usize {
        if self.context.halves == 1 {
            return self.context.schedule.rows(&(self.steps.start..t));
        }
        let Half { rows, .. } = self.half;
        self.first() + (t - self.steps.start) * rows.len() - rows.start
    }

    fn trace(&self, t: usize) -> Trace<T::Real> {
        self.work.trace(self.before(t), self.context.width, self.context.step.kept())
    }

    /// z_bar of step t for this part; `above` is the trace of the step after it.
    ///
    /// # Safety
    /// The arrays have the rows of the sequence; what the step after t left for this part is complete; nobody else writes this
    /// part's rows and columns of the chunk.
    unsafe fn step(&self, t: usize, states: *const T::Real, ct: *const T::Real, above: Trace<T::Real>) {
        let Pass { context, part, work, .. } = self;
        let Setting { schedule, law, width, .. } = context.setting;
        let step = context.step;
        let (active, at) = (schedule.active(t), t * context.stride());
        let trace = self.trace(t);
        let rows = part.rows(0..active);
        let columns = part.columns::<T::Real>(*width);
        let z = work.z.ptr().wrapping_add(self.before(t) * width);
        let (h, again) = (states.wrapping_add(at), !work.z.is_empty());
        let mut map = Affine::new(*width, context.sequence.batch, trace.bar.cast_mut());
        (map.add, map.h) = (ct.wrapping_add(at), h);
        map.ahead = if schedule.reverse { context.stride() as isize } else { -(context.stride() as isize) };
        let fused = context.fused() && !again;
        if fused && law.kind != Kind::Identity {
            map.finish = Finish::Pull(law.kind);
            (map.slope, map.own_bias) = (law.slope, law.bias());
        }
        // SAFETY: the contract above; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            if again {
                context.advance(t, states, z, Wanted::Argument, part);
            }
            let continued = schedule.continued(t);
            let late = part.rows(0..continued);
            if !late.is_empty() {
                step.backward(above, map, late, part);
            }
            map.run(part.rows(continued..active), columns.clone());
            if context.on_input {
                let out = work.input_bar.at(self.before(t) * width);
                self.pull(z, Source::Argument, trace.bar, out, rows.clone());
            } else if !fused {
                let (y, from) = if again { (z.cast_const(), Source::Argument) } else { (h, Source::Value) };
                self.pull(y, from, trace.bar, trace.bar.cast_mut(), rows.clone());
            }
            part.sync();
            step.keep(trace, rows, part);
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = self.gatherer.h0_bar().filter(|_| !starting.is_empty()) {
                let map = Affine::new(*width, context.sequence.batch, h0_bar);
                step.backward(trace, map, starting, part);
            }
            self.copy(t, states);
        }
    }

    /// The pass of an activation that is not fused.
    ///
    /// # Safety
    /// As [`Pass::step`].
    unsafe fn pull(
        &self,
        y: *const T::Real,
        from: Source,
        g: *const T::Real,
        out: *mut T::Real,
        rows: Range<usize>,
    ) {
        let (law, part) = (&self.context.law, self.part);
        // SAFETY: the contract above; a kind that needs whole rows waits for the columns of the others.
        unsafe {
            if !law.kind.by_rows() {
                law.pull(y, from, g, out, rows, part.columns::<T::Real>(law.width));
                return;
            }
            part.sync();
            if part.leads() {
                law.pull(y, from, g, out, rows, 0..law.width);
            }
            part.sync();
        }
    }

    /// Copies this part's rows of what the gradients want.
    ///
    /// # Safety
    /// As [`Pass::step`].
    unsafe fn copy(&self, t: usize, states: *const T::Real) {
        let Pass { context, part, work, .. } = self;
        if !self.copied || !part.leads() {
            return;
        }
        let (rows, before) = (part.rows(0..context.schedule.active(t)), self.before(t));
        let [previous, x, h] = work.copies;
        // SAFETY: the contract above; a copy has room for the rows of the chunk.
        unsafe {
            put(context.x(t), x.ptr(), context.sequence.features * T::PARTS, before, &rows);
            if !h.is_empty() {
                put(states.add(t * context.stride()), h.ptr(), context.width, before, &rows);
            }
            for (rows, source) in context.sources(t, states) {
                put(source, previous.ptr(), context.width, before, &part.rows(rows));
            }
        }
    }

    /// Adds the chunk to the gradients: this member's part.
    ///
    /// # Safety
    /// All rows of the chunk are complete; all members come here, each with scratch of its own.
    unsafe fn gather(&self, states: *const T::Real, scratch: *mut T::Real, first: bool) {
        let Pass { context, part, work, steps, .. } = self;
        let Setting { schedule, width, .. } = context.setting;
        let state = |t: usize| states.wrapping_add(t * context.stride());
        let (member, copied) = (&self.half.gatherer, self.copied);
        let (begin, halved) = (self.first(), context.halves > 1);
        let count = |steps: &Range<usize>| {
            if halved { steps.len() * self.half.rows.len() } else { schedule.rows(steps) }
        };
        let bar = self.half.rows.start * width;
        let gather = |steps: Range<usize>, previous: *const T::Real, first: bool| {
            let (rows, mut trace) = (count(&steps), self.trace(steps.start));
            trace.bar = trace.bar.wrapping_add(bar);
            let half = self.half.index;
            // SAFETY: the contract above; the rows of the chunk stand at both addresses.
            unsafe { context.step.gather(&Chunk { half, rows, trace, previous, first }, scratch, member) }
        };
        // The step of this chunk at which all start together.
        let start = Some(schedule.step(0)).filter(|t| !copied && steps.contains(t));
        let rest = match start {
            Some(t) if t == steps.start => t + 1..steps.end,
            Some(t) => steps.start..t,
            None => steps.start..steps.end,
        };
        let features = context.sequence.features * T::PARTS;
        let x = if copied { work.copies[1].at(begin * features) } else { context.x(steps.start).cast_mut() };
        let h = match (halved, copied) {
            (true, _) => state(steps.start).wrapping_add(bar),
            (false, true) => work.copies[2].ptr().cast_const(),
            (false, false) => state(steps.start),
        };
        let at = |array: Region<T::Real>| array.at(begin * width);
        let inputs = Rows {
            half: self.half.index,
            of: self.half.rows.clone(),
            first: steps.start,
            rows: count(steps),
            bar: at(if context.on_input { work.input_bar } else { work.bar }),
            x,
            y: if context.on_input { at(work.z) } else { h },
            apart: if halved && !context.on_input { context.stride() } else { 0 },
        };
        let before = if copied {
            work.copies[0].at((self.before(rest.start) + self.half.rows.start) * width).cast_const()
        } else {
            // Rows ascend in t also backwards in time; for an empty rest any address will do.
            let t = if schedule.reverse { rest.start + 1 } else { rest.start.max(1) - 1 };
            state(t)
        };
        gather(rest, before, first);
        if let (Some(t), Some(h0)) = (start, context.sequence.h0) {
            part.member.barrier();
            gather(t..t + 1, parts(h0).as_ptr(), false);
        }
        // SAFETY: the contract above.
        unsafe { self.gatherer.gather(&inputs, steps, scratch, first, member) }
    }
}

/// Copies rows of a step to rows of a chunk, zeros where there is no source.
///
/// # Safety
/// The rows exist at the source, if there is one, and in the chunk, where nobody else touches them.
unsafe fn put<R: Copy>(source: *const R, copy: *mut R, width: usize, before: usize, rows: &Range<usize>) {
    let (to, count) = (copy.wrapping_add((before + rows.start) * width), rows.len() * width);
    // SAFETY: the contract above.
    unsafe {
        if count > 0 && source.is_null() {
            to.write_bytes(0, count);
        } else if count > 0 {
            std::ptr::copy_nonoverlapping(source.add(rows.start * width), to, count);
        }
    }
}
