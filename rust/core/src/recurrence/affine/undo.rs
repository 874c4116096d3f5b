//! Steps of the affine cell undone: h_{t-1} = W^H (z_t - V x_t - b) with a unitary W, or W^H (h_t - phi(V x_t + b)).
//!
//! z is read off h for the identity. OPLU keeps the pairs but not their order, so a segment is computed forward once
//! more to record the order, one bit per pair, before its steps are undone.

use super::super::driver::{Cell, Undo, Window};
use super::super::time::{Checkpoint, Segments};
use super::cell::{AffineCell, Wanted};
use super::pull::AffinePull;
use super::{Sequence, Setting};
use crate::activation::{Activation, Nonlinearity};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::transition::{On, Part, Trace};
use isometry_kernels::recurrence::Affine;
use num_traits::{One, Zero};
use std::ops::Range;

/// The memory of undone steps.
pub(super) struct Undone<T: Scalar> {
    /// z of one step, then z - V x - b.
    rest: Region<T::Real>,
    /// The output of [`Step::keep`] for it.
    kept: Region<T::Real>,
    /// A bit per pair for each row and step of a segment; empty where z can be read off h.
    order: Region<u8>,
    segments: Segments,
}

impl<T: Scalar> Undone<T> {
    pub fn carve(arena: &mut Arena, cell: &AffineCell<'_, T>) -> Self {
        let (schedule, width) = (&cell.setting.line.schedule, cell.setting.line.width);
        let (batch, recorded) = (schedule.batch, usize::from(cell.setting.recomputes()));
        let segments = Checkpoint::Reversible.segments(schedule.steps, batch, [0, 1]);
        Undone {
            rest: arena.take(&[batch, width]),
            kept: arena.take(&[batch, cell.step.kept()]),
            order: arena.take(&[recorded, segments.length(), batch, bytes(width)]),
            segments,
        }
    }

    /// Whether the order of pairs is recorded.
    pub fn recorded(&self) -> bool {
        !self.order.is_empty()
    }

    /// The order of the pairs in a row of step t.
    fn order(&self, setting: &Setting<'_, T>, t: usize, row: usize) -> *mut u8 {
        let line = &setting.line;
        let k = line.schedule.step(t);
        let step = k - self.segments.of(k).start;
        self.order.at((step * line.schedule.batch + row) * bytes(line.width))
    }

    /// z of these rows of step t from its states, or without them 1 and 0 in the order of z: rounding may have turned a
    /// pair of undone states that are nearly equal, and the gradient of OPLU needs their order only.
    ///
    /// # Safety
    /// As [`Undo::undo`]; nobody else writes the rows at `out`.
    pub unsafe fn argument(
        &self,
        setting: &Setting<'_, T>,
        t: usize,
        h: Option<*const T::Real>,
        out: *mut T::Real,
        rows: Range<usize>,
        part: &Part<'_>,
    ) {
        let (width, kind) = (setting.line.width, setting.phi.kind);
        part.sync();
        for row in if part.leads() { rows } else { 0..0 } {
            let order = self.order(setting, t, row);
            // SAFETY: the contract above; a row has a bit for each pair.
            unsafe {
                let (h, out) = (h.map(|h| h.add(row * width)), out.add(row * width));
                for i in 0..width / 2 {
                    let [a, b] = pair(kind, width, i);
                    let turned = *order.add(i / 8) >> (i % 8) & 1 == 1;
                    let (high, low) = h.map_or((T::Real::one(), T::Real::zero()), |h| (*h.add(a), *h.add(b)));
                    (*out.add(a), *out.add(b)) = if turned { (low, high) } else { (high, low) };
                }
            }
        }
        part.sync();
    }
}

/// Whether steps of a sequence can be undone with a unitary W.
pub(super) fn undoable<T: Scalar>(sequence: &Sequence<'_, T>) -> bool {
    let kinds = [Activation::Identity, Activation::Oplu, Activation::OpluHalves];
    sequence.on_input || kinds.contains(&sequence.run.activation)
}

/// Bytes with a bit for each pair of so many numbers.
fn bytes(width: usize) -> usize {
    width.div_ceil(16)
}

/// The i-th pair of numbers that OPLU orders, of a row of `width`.
fn pair(kind: Nonlinearity, width: usize, i: usize) -> [usize; 2] {
    match kind {
        Nonlinearity::OpluHalves => [i, i + width / 2],
        // real parts of two elements, then imaginary parts
        Nonlinearity::OpluComplex => [i / 2 * 4 + i % 2, i / 2 * 4 + i % 2 + 2],
        _ => [2 * i, 2 * i + 1],
    }
}

// SAFETY: a step undone needs the scratch of W^H, which that of the cell backward covers.
unsafe impl<T: Scalar> Undo<T::Real> for AffinePull<'_, T> {
    fn records(&self) -> bool {
        self.undone.as_ref().is_some_and(Undone::recorded)
    }

    unsafe fn record(&self, t: usize, window: &Window<*mut T::Real>, part: &Part<'_>, scratch: *mut T::Real) {
        let Some(undone) = self.undone.as_ref().filter(|undone| undone.recorded()) else {
            // SAFETY: the contract of the trait.
            return unsafe { self.cell.advance(t, window, part, scratch) };
        };
        let (setting, z) = (self.cell.setting, undone.rest.ptr());
        let Setting { line, phi, .. } = setting;
        let (width, kind) = (line.width, phi.kind);
        let state = window.states.wrapping_add(t * line.stride());
        // SAFETY: the contract of the trait; a row has a bit for each pair, and bytes of its own.
        unsafe {
            self.cell.write(t, window.states, z, Wanted::Argument, part, scratch);
            part.sync();
            let rows = part.rows(0..line.schedule.active(t));
            for row in if part.leads() { rows.clone() } else { 0..0 } {
                let (z, order) = (z.add(row * width), undone.order(setting, t, row));
                order.write_bytes(0, bytes(width));
                for i in 0..width / 2 {
                    let [a, b] = pair(kind, width, i);
                    *order.add(i / 8) |= u8::from(*z.add(a) < *z.add(b)) << (i % 8);
                }
            }
            if part.leads() {
                phi.value(z, state, rows, 0..width);
            }
            part.sync();
        }
    }

    unsafe fn undo(&self, t: usize, window: &Window<*mut T::Real>, part: &Part<'_>, scratch: *mut T::Real) {
        let AffineCell { setting, step, .. } = &self.cell;
        let (line, width) = (&setting.line, setting.line.width);
        let schedule = &line.schedule;
        let (Some(before), Some(undone)) = (schedule.previous(t), &self.undone) else { return };
        let (rest, stride) = (undone.rest.ptr(), line.stride());
        let rows = part.rows(0..schedule.continuing(t));
        let (h, out) = (window.states.wrapping_add(t * stride), window.states.wrapping_add(before * stride));
        let trace = Trace { bar: rest.cast_const(), apart: width, kept: undone.kept.ptr() };
        // SAFETY: the contract of the trait; the rows exist, and members write disjoint parts of them.
        unsafe {
            if undone.recorded() {
                // z takes the place of h, for the product needs both z and V x + b
                undone.argument(setting, t, Some(h), out, rows.clone(), part);
            }
            let z = if undone.recorded() { out.cast_const() } else { h.cast_const() };
            let wanted = if setting.on_input { Wanted::State } else { Wanted::Argument };
            let drive = self.cell.activated(self.cell.drive.alone(t, rest), wanted);
            drive.run(rows.clone(), part.columns::<T::Real>(width));
            if setting.on_input {
                self.cell.activate(rest, rows.clone(), part);
            }
            for row in rows.clone() {
                for at in part.columns::<T::Real>(width).map(|column| row * width + column) {
                    *rest.add(at) = *z.add(at) - *rest.add(at);
                }
            }
            part.sync();
            step.keep(trace, rows.clone(), part);
            if !rows.is_empty() {
                let map = Affine::new(width, schedule.batch, out);
                step.backward(trace, map, On { rows, part, scratch });
            }
        }
    }
}
