//! Backward through time: z_bar_t = phi'^H (W^H z_bar_{t+1} + h_bar_t), and the gradients gathered from it.
//!
//! Time is cut into chunks of some hundred rows (t, b). Within a chunk members go their own ways through the steps; then,
//! after one barrier, they share the columns of the gradient products over all rows of the chunk, or of their half of the
//! batch ([`super::halves`]), whose rows then stand apart from those of the other. z_bar lives in two
//! buffers used in turn, so that the steps of the next chunk may begin while others still gather this one.
//! The derivative is read off h; where that loses something, z is computed anew by the kernel of the forward pass.

use super::context::{Context, Wanted};
use super::gradients::{Gatherer, Gradients, Rows};
use super::halves::Half;
use super::sequence::Sequence;
use super::step::{Chunk, Step, Trace};
use super::team::{Pace, Part, Poll, layout};
use super::work::{Memory, Work};
use crate::activation::{Kind, Source};
use crate::error::{Error, Result, check_len};
use crate::kernels::Buffer;
use crate::parallel::{Member, run};
use crate::scalar::{Scalar, parts};
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::Range;

/// Rows of a chunk, if a step has fewer. Tests have many chunks.
const ROWS: usize = if cfg!(test) { 16 } else { 512 };

/// Whether the backward pass of this sequence computes z anew with W.
pub fn recomputes<T: Scalar>(sequence: &Sequence<'_, T>) -> bool {
    !sequence.on_input
        && !crate::activation::Law::new::<T>(sequence.activation, sequence.n, sequence.activation_bias)
            .readable()
}

/// Steps of a chunk.
fn span(batch: usize) -> usize {
    (ROWS / batch).max(1)
}

/// Most rows that a chunk of this sequence can have.
pub fn chunk_rows<T: Scalar>(sequence: &Sequence<'_, T>) -> usize {
    span(sequence.batch).min(sequence.steps) * sequence.batch
}

/// Fills the gradients that are wanted from ct (T, B, n), which is ignored behind the end of a sequence.
pub fn backward<T: Scalar>(
    step: &dyn Step<T>,
    sequence: &Sequence<'_, T>,
    states: &[T],
    ct: &[T],
    gradients: Gradients<'_, T>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let Sequence { steps, batch, features, n, .. } = *sequence;
    check_len("states", states.len(), steps * batch * n)?;
    check_len("ct", ct.len(), steps * batch * n)?;
    gradients.check(sequence)?;
    let context = Context::new(sequence, step);
    let gatherer = Gatherer::new(&context, gradients);
    let memory = Memory::new(&context, chunk_rows(sequence), gatherer.wants_states());
    let (threads, columns) = layout(step.work(), step.divisible(), batch, steps, threads);
    let work = 2 * step.work() + n * features * T::PARTS * T::PARTS;
    let poll = Poll::new(cancel, work * chunk_rows(sequence));
    let pace = Pace::new(step.work() * batch);
    let call = Call {
        context: &context,
        gatherer: &gatherer,
        memory: &memory,
        poll: &poll,
        pace: &pace,
        states,
        ct,
    };
    run(threads, &|member| {
        let rows = chunk_rows(sequence);
        let scratch = Buffer::scratch(step.scratch(rows).max(gatherer.scratch(rows)));
        context.pack(member);
        gatherer.pack(member);
        // SAFETY: all members prepare together.
        unsafe { step.prepare(scratch.ptr(), member) };
        member.barrier();
        let part = if columns {
            Part::columns_of(member, batch)
        } else {
            Part::rows_of(member, context.schedule.share(member.id, member.count))
        };
        let above = [Trace { bar: std::ptr::null(), kept: std::ptr::null_mut() }; 2];
        let from = Progress { chunk: 0, step: 0, above };
        if let Some(from) = call.walk(&part, from, scratch.ptr()).filter(|_| member.id == 0) {
            Member::alone(|member| call.walk(&Part::rows_of(member, 0..batch), from, scratch.ptr()));
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
    memory: &'a Memory<T::Real>,
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
            let (steps, work) = (self.chunk(at.chunk), self.memory.chunk(at.chunk));
            let copied = copied(context, &steps);
            let pass =
                |half| Pass { context, gatherer, work: &work, steps: &steps, copied, half, part: &half.part };
            for step in at.step..steps.len() {
                let t = if context.schedule.reverse { steps.start + step } else { steps.end - 1 - step };
                for half in &halves {
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
            for half in &halves {
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
    let Context { schedule, halves, .. } = context;
    let together = || schedule.full(&(0..schedule.steps));
    let seamless = || schedule.full(steps) && schedule.seamless(steps);
    *halves > 1 || !(together() || seamless())
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
    unsafe fn step(&self, t: usize, states: *const T::Real, ct: *const T::Real, above: Trace<T::Real>) {
        let Pass { context, part, work, .. } = self;
        let Context { schedule, law, step, width, .. } = context;
        let (active, at) = (schedule.active(t), t * context.stride());
        let trace = self.trace(t);
        let rows = part.rows(0..active);
        let columns = part.columns::<T::Real>(*width);
        let z = work.z.wrapping_add(self.before(t) * width);
        let (h, again) = (states.wrapping_add(at), !work.z.is_null());
        let bar = trace.bar.cast_mut();
        // h_bar, apart from z_bar where the bias of the activation wants it
        let value_bar =
            if work.value_bar.is_null() { bar } else { work.value_bar.wrapping_add(self.before(t) * width) };
        let mut map = Affine::new(*width, context.sequence.batch, value_bar);
        (map.add, map.h, map.to) = (ct.wrapping_add(at), h, bar);
        map.ahead = if schedule.reverse { context.stride() as isize } else { -(context.stride() as isize) };
        let fused = context.fused() && !again;
        if fused && law.kind != Kind::Identity {
            map.finish = Finish::Pull(law.phi());
        }
        // SAFETY: passed on from the caller.
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
                let out = work.input_bar.add(self.before(t) * width);
                self.pull(z, Source::Argument, bar, out, rows.clone());
            } else if !fused {
                let (y, from) = if again { (z.cast_const(), Source::Argument) } else { (h, Source::Value) };
                self.pull(y, from, value_bar, bar, rows.clone());
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
    unsafe fn pull(
        &self,
        y: *const T::Real,
        from: Source,
        g: *const T::Real,
        out: *mut T::Real,
        rows: Range<usize>,
    ) {
        let (law, part) = (&self.context.law, self.part);
        // SAFETY: passed on from the caller; a kind that needs whole rows waits for the columns of the others.
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
    unsafe fn copy(&self, t: usize, states: *const T::Real) {
        let Pass { context, part, work, .. } = self;
        if !self.copied || !part.leads() {
            return;
        }
        let (rows, before) = (part.rows(0..context.schedule.active(t)), self.before(t));
        let [previous, x, h] = work.copies;
        // SAFETY: passed on from the caller; a copy has room for the rows of the chunk.
        unsafe {
            put(context.x(t), x, context.sequence.features * T::PARTS, before, &rows);
            if !h.is_null() {
                put(states.add(t * context.stride()), h, context.width, before, &rows);
            }
            for (rows, source) in context.sources(t, states) {
                put(source, previous, context.width, before, &part.rows(rows));
            }
        }
    }

    /// Adds the chunk to the gradients: this member's part.
    unsafe fn gather(&self, states: *const T::Real, scratch: *mut T::Real, first: bool) {
        let Pass { context, part, work, steps, .. } = self;
        let Context { schedule, width, .. } = context;
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
            // SAFETY: passed on from the caller.
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
        let x = if copied {
            work.copies[1].wrapping_add(begin * features)
        } else {
            context.x(steps.start).cast_mut()
        };
        let h = match (halved, copied) {
            (true, _) => state(steps.start).wrapping_add(bar),
            (false, true) => work.copies[2].cast_const(),
            (false, false) => state(steps.start),
        };
        let at = |array: *mut T::Real| array.wrapping_add(begin * width);
        let inputs = Rows {
            half: self.half.index,
            of: self.half.rows.clone(),
            first: steps.start,
            rows: count(steps),
            bar: at(if context.on_input { work.input_bar } else { work.bar }),
            // where phi acts on the input part alone, the cotangent of its values is that of the states
            value_bar: at(if work.value_bar.is_null() { work.bar } else { work.value_bar }),
            x,
            from: if context.on_input { Source::Argument } else { Source::Value },
            y: if context.on_input { at(work.z) } else { h },
            apart: if halved && !context.on_input { context.stride() } else { 0 },
        };
        let before = if copied {
            work.copies[0].wrapping_add((self.before(rest.start) + self.half.rows.start) * width).cast_const()
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
        // SAFETY: passed on from the caller.
        unsafe { self.gatherer.gather(&inputs, steps, scratch, first, member) }
    }
}

/// Copies rows of a step to rows of a chunk, zeros where there is no source.
unsafe fn put<R: Copy>(source: *const R, copy: *mut R, width: usize, before: usize, rows: &Range<usize>) {
    let (to, count) = (copy.wrapping_add((before + rows.start) * width), rows.len() * width);
    // SAFETY: passed on from the caller.
    unsafe {
        if count > 0 && source.is_null() {
            to.write_bytes(0, count);
        } else if count > 0 {
            std::ptr::copy_nonoverlapping(source.add(rows.start * width), to, count);
        }
    }
}
