//! One member's backward pass through the steps of one chunk: z_bar of each, then the chunk's part of the gradients.

use super::context::{Context, Setting, Wanted};
use super::gradients::{Gatherer, Rows};
use super::halves::Half;
use super::step::{Chunk, Trace};
use super::team::Part;
use super::work::Work;
use crate::activation::{Kind, Source};
use crate::scalar::{Scalar, parts};
use crate::scratch::Region;
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::Range;

/// One member's work on one chunk of a half of the batch.
pub(super) struct Pass<'a, T: Scalar> {
    pub(super) context: &'a Context<'a, T>,
    pub(super) gatherer: &'a Gatherer<'a, T>,
    pub(super) work: &'a Work<T::Real>,
    pub(super) steps: &'a Range<usize>,
    pub(super) copied: bool,
    pub(super) half: &'a Half<'a>,
    pub(super) part: &'a Part<'a>,
}

impl<T: Scalar> Pass<'_, T> {
    /// Offset of the half's first row in the chunk.
    fn first(&self) -> usize {
        self.steps.len() * self.half.rows.start
    }

    /// Offset at which row 0 of step t would lie in the chunk.
    fn before(&self, t: usize) -> usize {
        if self.context.halves == 1 {
            return self.context.schedule.rows(&(self.steps.start..t));
        }
        let Half { rows, .. } = self.half;
        self.first() + (t - self.steps.start) * rows.len() - rows.start
    }

    pub(super) fn trace(&self, t: usize) -> Trace<T::Real> {
        self.work.trace(self.before(t), self.context.width, self.context.step.kept())
    }

    /// z_bar of step t for this part; `above` is the trace of step t + 1.
    ///
    /// # Safety
    /// The arrays have the rows of the sequence; step t + 1 is complete for this part; this part's rows and columns of
    /// the chunk are not accessed by other members.
    pub(super) unsafe fn step(
        &self,
        t: usize,
        states: *const T::Real,
        ct: *const T::Real,
        above: Trace<T::Real>,
    ) {
        let Pass { context, part, work, .. } = self;
        let Setting { schedule, law, width, .. } = context.setting;
        let step = context.step;
        let (active, at) = (schedule.active(t), t * context.stride());
        let trace = self.trace(t);
        let rows = part.rows(0..active);
        let columns = part.columns::<T::Real>(*width);
        let z = work.z.ptr().wrapping_add(self.before(t) * width);
        let (h, again) = (states.wrapping_add(at), !work.z.is_empty());
        let bar = trace.bar.cast_mut();
        // h_bar, stored separately from z_bar if the gradient of the activation's bias needs it
        let value_bar =
            if work.value_bar.is_empty() { bar } else { work.value_bar.at(self.before(t) * width) };
        let mut map = Affine::new(*width, context.sequence.batch, value_bar);
        (map.add, map.h, map.to) = (ct.wrapping_add(at), h, bar);
        map.ahead = if schedule.reverse { context.stride() as isize } else { -(context.stride() as isize) };
        let fused = context.fused() && !again;
        if fused && law.kind != Kind::Identity {
            map.finish = Finish::Pull(law.phi());
        }
        // SAFETY: the contract above; step t + 1 and the adjacent states are complete for these rows.
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
        // SAFETY: the contract above; an activation that needs whole rows first synchronises with the other columns.
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

    /// Copies this part's rows of the arrays that the gradients read.
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
        // SAFETY: the contract above; the copies have room for the rows of the chunk.
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
    /// All rows of the chunk are complete; every member calls this, each with its own scratch.
    pub(super) unsafe fn gather(&self, states: *const T::Real, scratch: *mut T::Real, first: bool) {
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
            // SAFETY: the contract above; both pointers address the rows of the chunk.
            unsafe { context.step.gather(&Chunk { half, rows, trace, previous, first }, scratch, member) }
        };
        // The step of this chunk at which all sequences start.
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
            // if phi acts on the input term only, the cotangent of its values is that of the states
            value_bar: at(if work.value_bar.is_empty() { work.bar } else { work.value_bar }),
            x,
            from: if context.on_input { Source::Argument } else { Source::Value },
            y: if context.on_input { at(work.z) } else { h },
            apart: if halved && !context.on_input { context.stride() } else { 0 },
        };
        let before = if copied {
            work.copies[0].at((self.before(rest.start) + self.half.rows.start) * width).cast_const()
        } else {
            // Rows are in ascending t in both directions; if the rest is empty the address is unused.
            let t = if schedule.reverse { rest.start + 1 } else { rest.start.max(1) - 1 };
            state(t)
        };
        gather(rest, before, first);
        if let (Some(t), Some(h0)) = (start, context.sequence.h0) {
            part.member.barrier();
            gather(t..t + 1, parts(h0).as_ptr(), false);
        }
        // SAFETY: all rows of the chunk are complete; all members call this, each with its own scratch.
        unsafe { self.gatherer.gather(&inputs, steps, scratch, first, member) }
    }
}

/// Copies rows of a step into the chunk; without a source it writes zeros.
///
/// # Safety
/// The rows exist in the source, if there is one, and in the chunk, where no other member accesses them.
unsafe fn put<R: Copy>(source: *const R, copy: *mut R, width: usize, before: usize, rows: &Range<usize>) {
    let (to, count) = (copy.wrapping_add((before + rows.start) * width), rows.len() * width);
    // SAFETY: the rows exist in source and chunk, and no other member accesses those of the chunk.
    unsafe {
        if count > 0 && source.is_null() {
            to.write_bytes(0, count);
        } else if count > 0 {
            std::ptr::copy_nonoverlapping(source.add(rows.start * width), to, count);
        }
    }
}
