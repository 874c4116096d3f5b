//! The affine cell backward: z_bar_t = phi'^H (W^H z_bar_{t+1} + h_bar_t), and the gradients gathered from it.
//!
//! The derivative is computed from h; where that loses accuracy, z is recomputed by the kernel of the forward
//! pass.

use super::super::cell::{Cell, Pull};
use super::super::chunk::{Chunk, Place};
use super::super::ends::CtRows;
use super::super::frame::Frame;
use super::super::inputs::Gatherer;
use super::super::modrelu::{BiasGatherer, Values};
use super::undo::AffineUndo;
use super::work::Work;
use super::{AffineCell, Setting, Wanted};
use crate::activation::{Nonlinearity, Source};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::Region;
use crate::transition::Part;
use crate::transition::{Gather, Trace};
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::Range;

/// An affine cell with the data of a backward pass: states and their cotangents, chunks, gradients.
pub(super) struct AffinePull<'a, T: Scalar> {
    pub(super) cell: &'a AffineCell<'a, T>,
    /// The number of halves in which gradients are summed.
    pub(super) halves: usize,
    /// Used in turn.
    pub(super) chunks: &'a [Work<T::Real>; 2],
    pub(super) ct: CtRows<T::Real>,
    /// Where steps are undone.
    pub(super) undo: Option<&'a AffineUndo<'a, T>>,
    pub(super) h0_bar: Option<*mut T::Real>,
    pub(super) inputs: Gatherer<'a, T>,
    pub(super) own_bias: BiasGatherer<'a, T>,
}

// SAFETY: cotangents are only read, members write disjoint rows of h0_bar.
unsafe impl<T: Scalar> Sync for AffinePull<'_, T> {}

impl<T: Scalar> Pull<T::Real> for AffinePull<'_, T> {
    fn work(&self) -> [usize; 2] {
        [self.cell.step.work(), self.cell.work()]
    }
    fn halves(&self) -> usize {
        self.halves
    }

    unsafe fn prepare(&self, scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.cell.prepare(scratch, member);
            self.inputs.pack(member);
        }
    }

    unsafe fn pull(
        &self,
        t: usize,
        frame: &Frame<T::Real>,
        above: Option<Place>,
        chunk: &Chunk<'_>,
        scratch: *mut T::Real,
    ) {
        let (cell, ct, states) = (self.cell, self.ct, frame.states.cast_const());
        let Setting { line, phi, .. } = cell.setting;
        let (schedule, width, part) = (&line.schedule, line.width, chunk.part());
        let (step, work) = (cell.step, &self.chunks[chunk.turn()]);
        let (active, at, row) = (schedule.active(t), t * line.stride(), chunk.row(t));
        let trace = self.trace(chunk.place(t));
        let rows = part.rows(0..active);
        let columns = part.columns::<T::Real>(width);
        let z = work.z.ptr().wrapping_add(row * width);
        let (h, again) = (states.wrapping_add(at), !work.z.is_empty());
        let bar = trace.bar.cast_mut();
        // h_bar, stored apart from z_bar where the gradient of the activation's bias needs it
        let value_bar = if work.value_bar.is_empty() { bar } else { work.value_bar.at(row * width) };
        let mut map = Affine::new(width, schedule.batch, value_bar);
        (map.add, map.h, map.to) = (ct.continued(t), h, bar);
        let soon =
            |rows: *const T::Real| if rows.is_null() { rows } else { line.earlier(rows, line.stride()) };
        map.soon = [map.add, h].map(soon);
        let fused = cell.fused() && !again;
        if fused && phi.kind != Nonlinearity::Identity {
            map.finish = Finish::Pull(phi.kernel());
        }
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            match self.undo.filter(|undo| undo.recorded()) {
                Some(undo) => undo.argument(t, None, z, part.rows(0..active), part),
                None if again => cell.write(t, states, z, Wanted::Argument, part, scratch),
                None => {}
            }
            let continued = schedule.continued(t);
            let late = part.rows(0..continued);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                step.backward(self.trace(above), map, late, part, scratch);
            }
            map.add = ct.ending(t);
            map.run(part.rows(continued..active), columns);
            if cell.on_input {
                let out = work.input_bar.at(row * width);
                self.activate(z, Source::Argument, bar, out, rows.clone(), part);
            } else if !fused {
                let (y, from) = if again { (z.cast_const(), Source::Argument) } else { (h, Source::Value) };
                self.activate(y, from, value_bar, bar, rows.clone(), part);
            }
            part.sync();
            step.keep(trace, rows, part);
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = self.h0_bar.filter(|_| !starting.is_empty()) {
                let map = Affine::new(width, schedule.batch, h0_bar);
                step.backward(trace, map, starting, part, scratch);
            }
            work.copies.put(line, chunk, t, states);
        }
    }

    unsafe fn gather(&self, frame: &Frame<T::Real>, chunk: &Chunk<'_>, scratch: *mut T::Real) {
        let Setting { line, .. } = self.cell.setting;
        let (width, work, half) = (line.width, &self.chunks[chunk.turn()], chunk.half);
        let gather = |steps: Range<usize>, previous: *const T::Real, first: bool| {
            let mut trace = self.trace(chunk.place(steps.start));
            trace.bar = trace.bar.wrapping_add(half.rows.start * width);
            let rows = Gather { half: half.index, rows: chunk.rows(&steps), trace, previous, first };
            // SAFETY: the contract of the trait; the rows of the chunk stand at both addresses.
            unsafe { self.cell.step.gather(&rows, scratch, &half.gatherer) }
        };
        let before = line.before(chunk, &work.copies, frame.states);
        gather(before.rest.0, before.rest.1, chunk.index == 0);
        if let Some((steps, h0)) = before.start {
            chunk.part().member.barrier();
            gather(steps, h0, false);
        }
        let at = |array: Region<T::Real>| array.at(chunk.begin() * width).cast_const();
        let bar = at(if self.cell.on_input { work.input_bar } else { work.bar });
        // SAFETY: as above.
        unsafe {
            self.inputs.gather(chunk, bar, width, line.inputs(chunk, &work.copies), scratch);
            self.own_bias.gather(chunk, &self.values(frame, chunk, work));
        }
    }

    unsafe fn finish(&self, scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.cell.step.finish(scratch, member);
            self.inputs.finish(member);
            self.own_bias.finish(member);
        }
    }
}

impl<T: Scalar> AffinePull<'_, T> {
    fn trace(&self, place: Place) -> Trace<T::Real> {
        self.chunks[place.turn].trace(place.row, self.cell.line.width, self.cell.step.kept())
    }

    /// The pass of an activation that is not fused.
    ///
    /// # Safety
    /// As [`Pull::pull`].
    unsafe fn activate(
        &self,
        y: *const T::Real,
        from: Source,
        g: *const T::Real,
        out: *mut T::Real,
        rows: Range<usize>,
        part: &Part<'_>,
    ) {
        let phi = &self.cell.phi;
        // SAFETY: the contract above; a kind that needs whole rows waits for the columns of the others.
        unsafe {
            if !phi.kind.by_rows() {
                phi.pull(y, from, g, out, rows, part.columns::<T::Real>(phi.width));
                return;
            }
            part.sync();
            if part.leads() {
                phi.pull(y, from, g, out, rows, 0..phi.width);
            }
            part.sync();
        }
    }

    /// The values or arguments of the activation in a chunk, and their cotangents.
    fn values(&self, frame: &Frame<T::Real>, chunk: &Chunk<'_>, work: &Work<T::Real>) -> Values<T::Real> {
        let (line, halved, on_input) = (&self.cell.line, chunk.halves > 1, self.cell.on_input);
        let at = |array: Region<T::Real>| array.at(chunk.begin() * line.width).cast_const();
        let state = frame.states.cast_const().wrapping_add(chunk.steps.start * line.stride());
        let h = match (halved, chunk.copied) {
            (true, _) => state.wrapping_add(chunk.half.rows.start * line.width),
            (false, true) => work.copies.states.ptr().cast_const(),
            (false, false) => state,
        };
        Values {
            // where phi acts on the input part only, the cotangent of its values is that of the states
            bar: at(if work.value_bar.is_empty() { work.bar } else { work.value_bar }),
            y: if on_input { at(work.z) } else { h },
            from: if on_input { Source::Argument } else { Source::Value },
            apart: if halved && !on_input { line.stride() } else { 0 },
        }
    }
}
