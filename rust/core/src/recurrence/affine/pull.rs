//! The affine cell backward: z_bar_t = phi'^H (W^H z_bar_{t+1} + h_bar_t), and the gradients gathered from it.
//!
//! The derivative is computed from h; where that loses accuracy, z is recomputed by the kernel of the forward
//! pass.

use super::super::driver::{Back, Cell, CtRows, Pull, Undo, Window};
use super::super::parts::{Bars, BiasGatherer, Inputs, Values, over};
use super::super::time::{Checkpoint, Chunk, ChunkRow, Copies, rows_apart};
use super::cell::{AffineCell, Wanted};
use super::undo::Undone;
use super::{Sequence, Setting};
use crate::activation::{Nonlinearity, Source};
use crate::recurrence::Run;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use crate::transition::{Component, Gather, Needs, On, Trace, Uses};
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::Range;

/// The arrays of a chunk, row after row; empty where not needed.
struct Rows<R> {
    /// z_bar, the cotangent of W h.
    bar: Region<R>,
    /// phi'^H z_bar where phi acts on the input part only.
    input_bar: Region<R>,
    /// h_bar, where the gradient of the activation's bias needs it and it differs from z_bar.
    value_bar: Region<R>,
    /// z, where it is recomputed.
    z: Region<R>,
    /// The output of [`Step::keep`](crate::transition::Step::keep).
    kept: Region<R>,
    /// Copies of the states before the step, inputs and states, where their rows are not contiguous.
    copies: Copies<R>,
}

impl<R: Real> Rows<R> {
    /// `states`: the gradient of modReLU's bias needs the states.
    fn carve<T: Scalar<Real = R>>(
        arena: &mut Arena,
        cell: &AffineCell<'_, T>,
        halves: usize,
        states: bool,
    ) -> Self {
        let Setting { line, phi, on_input, .. } = cell.setting;
        let rows = line.schedule.chunk_rows();
        let mut array = |wanted: bool, width: usize| rows_apart(arena, wanted, rows, width);
        Rows {
            bar: array(true, line.width),
            input_bar: array(*on_input, line.width),
            value_bar: array(states && !on_input && phi.turns(), line.width),
            z: array(*on_input || !phi.readable(), line.width),
            kept: array(true, cell.step.kept()),
            copies: Copies::carve(arena, line, halves, states && halves == 1),
        }
    }
}

/// An affine cell in a backward pass.
pub(super) struct AffinePull<'s, T: Scalar> {
    pub cell: AffineCell<'s, T>,
    /// The number of halves in which gradients are summed.
    halves: usize,
    /// Used in turn.
    chunks: [Rows<T::Real>; 2],
    ct: CtRows<'s, T::Real>,
    /// Where steps are undone.
    pub undone: Option<Undone<T>>,
    inputs: Inputs<'s, T>,
    own_bias: BiasGatherer<'s, T::Real>,
}

impl<'s, T: Scalar> AffinePull<'s, T> {
    /// For gradients that have passed their check.
    pub fn carve(
        arena: &mut Arena,
        setting: &'s Setting<'s, T>,
        checkpoint: Option<Checkpoint>,
        halves: usize,
        bars: Bars<'s, T>,
    ) -> Self {
        let Bars { ct, inputs, activation_bias, .. } = bars;
        let Setting { line, phi, sequence: Sequence { input_weight, run: Run { n, .. }, .. }, .. } = setting;
        let forward = checkpoint == Some(Checkpoint::Sqrt) || setting.recomputes();
        let uses = Uses::backward(halves, line.schedule.products());
        let cell = AffineCell::used(arena, setting, Uses { forward, ..uses });
        let undone = checkpoint == Some(Checkpoint::Reversible);
        AffinePull {
            halves,
            chunks: [(); 2].map(|()| Rows::carve(arena, &cell, halves, activation_bias.is_some())),
            ct,
            undone: undone.then(|| Undone::carve(arena, &cell)),
            inputs: Inputs::carve(arena, line, (input_weight, *n), halves, inputs),
            own_bias: BiasGatherer::carve(arena, phi, halves, activation_bias),
            cell,
        }
    }

    fn trace(&self, row: ChunkRow) -> Trace<T::Real> {
        let (work, width) = (&self.chunks[row.turn], self.cell.setting.line.width);
        let kept = work.kept.at(row.row * self.cell.step.kept());
        Trace { bar: work.bar.at(row.row * width), apart: width, kept }
    }
    /// The values or arguments of the activation in a chunk, and their cotangents.
    fn values(
        &self,
        window: &Window<*const T::Real>,
        chunk: &Chunk<'_>,
        work: &Rows<T::Real>,
    ) -> Values<T::Real> {
        let Setting { line, on_input, .. } = self.cell.setting;
        let (halved, on_input) = (chunk.halves > 1, *on_input);
        let at = |array: Region<T::Real>| array.at(chunk.begin() * line.width).cast_const();
        let state = window.states.wrapping_add(chunk.steps.start * line.stride());
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

// SAFETY: the scratch is that of the parts.
unsafe impl<T: Scalar> Component<T::Real> for AffinePull<'_, T> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<T::Real>)) {
        self.cell.each(f);
        f(&self.inputs);
        f(&self.own_bias);
    }
    /// V x once.
    fn needs(&self, rows: usize) -> Needs {
        Needs { work: self.cell.needs(rows).work, ..self.together(rows) }
    }
}

// SAFETY: the cell is the one of the forward pass.
unsafe impl<T: Scalar> Pull<T::Real> for AffinePull<'_, T> {
    fn halves(&self) -> usize {
        self.halves
    }
    fn again(&self) -> Option<&dyn Cell<T::Real>> {
        Some(&self.cell)
    }
    fn undo(&self) -> Option<&dyn Undo<T::Real>> {
        self.undone.as_ref().map(|_| self as &dyn Undo<T::Real>)
    }

    unsafe fn pull(&self, at: Back<'_, T::Real>) {
        let Back { t, window, above, chunk, scratch } = at;
        let (cell, ct, states) = (&self.cell, self.ct, window.states);
        let Setting { line, phi, on_input, .. } = cell.setting;
        let (schedule, width, part) = (&line.schedule, line.width, chunk.part());
        let (step, work) = (&cell.step, &self.chunks[chunk.turn()]);
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
        (map.add, map.h, map.to) = (ct.continued(t, window), h, bar);
        let soon =
            |rows: *const T::Real| if rows.is_null() { rows } else { line.earlier(rows, line.stride()) };
        map.soon = [map.add, h].map(soon);
        let fused = cell.fused() && !again;
        if fused && phi.kind != Nonlinearity::Identity {
            map.finish = Finish::Pull(phi.kernel());
        }
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            line.renew(t, states, part);
            match self.undone.as_ref().filter(|undone| undone.recorded()) {
                Some(undone) => undone.argument(cell.setting, t, None, z, part.rows(0..active), part),
                None if again => {
                    let k = schedule.step(t);
                    cell.drive.ahead(k, &(k..k + 1), part);
                    cell.write(t, states, z, Wanted::Argument, part, scratch);
                }
                None => {}
            }
            let continued = schedule.continued(t);
            let late = part.rows(0..continued);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                step.backward(self.trace(above), map, On { rows: late.clone(), part, scratch });
                // What follows a reset does not depend on this step.
                for row in schedule.next(t).into_iter().flat_map(|after| line.reset(after, &late)) {
                    map.run(row..row + 1, columns.clone());
                }
            }
            map.add = ct.ending(t, window);
            map.run(part.rows(continued..active), columns.clone());
            if *on_input {
                let (z, out) = (z.cast_const(), work.input_bar.at(row * width));
                let pass = |columns| phi.pull(z, Source::Argument, bar, out, rows.clone(), columns);
                over(phi, part, pass);
            } else if !fused {
                let (y, from) = if again { (z.cast_const(), Source::Argument) } else { (h, Source::Value) };
                over(phi, part, |columns| phi.pull(y, from, value_bar, bar, rows.clone(), columns));
            }
            part.sync();
            step.keep(trace, rows, part);
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = ct.starting(&starting) {
                let map = Affine::new(width, schedule.batch, h0_bar);
                step.backward(trace, map, On { rows: starting.clone(), part, scratch });
                for row in line.reset(t, &starting) {
                    h0_bar.add(row * width + columns.start).write_bytes(0, columns.len());
                }
            }
            if let Some(fresh) = ct.fresh(line, t) {
                let mut map = Affine::new(width, schedule.batch, fresh);
                map.add = fresh;
                for row in line.reset(t, &part.rows(0..active)) {
                    step.backward(trace, map, On { rows: row..row + 1, part, scratch });
                }
            }
            work.copies.put(line, chunk, t, states);
        }
    }

    unsafe fn gather(&self, window: &Window<*const T::Real>, chunk: &Chunk<'_>, scratch: *mut T::Real) {
        let Setting { line, on_input, .. } = self.cell.setting;
        let (width, work, half) = (line.width, &self.chunks[chunk.turn()], chunk.half);
        let gather = |steps: Range<usize>, previous: *const T::Real, first: bool| {
            let mut trace = self.trace(chunk.place(steps.start));
            trace.bar = trace.bar.wrapping_add(half.rows.start * width);
            let rows = Gather { half: half.index, rows: chunk.rows(&steps), trace, previous, first };
            // SAFETY: the contract of the trait; the rows of the chunk stand at both addresses.
            unsafe { self.cell.step.gather(&rows, scratch, &half.gatherer) }
        };
        let before = line.before(chunk, &work.copies, window.states);
        gather(before.rest.0, before.rest.1, chunk.index == 0);
        if let Some((steps, h0)) = before.start {
            chunk.part().member.barrier();
            gather(steps, h0, false);
        }
        let at = |array: Region<T::Real>| array.at(chunk.begin() * width).cast_const();
        let bar = at(if *on_input { work.input_bar } else { work.bar });
        let free = scratch.wrapping_add(self.cell.step.held());
        // SAFETY: as above.
        unsafe {
            self.inputs.gather(chunk, bar, width, line.inputs(chunk, &work.copies), free);
            self.own_bias.gather(chunk, &self.values(window, chunk, work));
        }
    }
}
