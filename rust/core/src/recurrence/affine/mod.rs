//! The affine cell h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b): a step forward.
//!
//! The transition W is a [`Step`]: packed operands, its product forward and backward, gradients.

mod calls;
pub(super) mod dense;
mod gradients;
mod pull;
pub(super) mod rows_step;
mod sequence;
mod undo;
mod work;

pub(super) use calls::transition;
pub use calls::{backward, forward};
pub use gradients::Gradients;
pub use sequence::Sequence;

use super::cell::Cell;
use super::frame::Frame;
use super::padded::{or_null, padded};
use super::plan::Checkpoint;
use super::schedule::Schedule;
use super::timeline::Timeline;
use crate::activation::{Nonlinearity, RowActivation};
use crate::error::Result;
use crate::kernels::{Buffer, Operand};
use crate::parallel::Member;
use crate::scalar::{Scalar, parts};
use crate::scratch::Arena;
use crate::sizes::work;
use crate::transition::Packed;
use crate::transition::Part;
use crate::transition::Step;
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::{Deref, Range};

/// What a step writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// h
    State,
    /// The argument z of the activation.
    Argument,
}

/// A checked sequence, prepared: the rows of each step, the activation, the biases.
struct Setting<'a, T: Scalar> {
    sequence: Sequence<'a, T>,
    line: Timeline<'a, T::Real>,
    phi: RowActivation<T::Real>,
    /// phi acts on the input part only, and is not the identity.
    on_input: bool,
    /// b for whole vectors; empty without.
    bias: Buffer<T::Real>,
}

impl<'a, T: Scalar> Setting<'a, T> {
    fn new(sequence: &Sequence<'a, T>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let Sequence { steps, batch, features, lengths, reverse, .. } = *sequence;
        let width = sequence.n * T::PARTS;
        let bias = padded(sequence.bias.map(parts))?;
        let phi = RowActivation::new::<T>(sequence.activation, sequence.n, sequence.activation_bias)?;
        let line = Timeline {
            schedule: Schedule::new(steps, batch, lengths, reverse)?.under(checkpoint),
            x: parts(sequence.x),
            features: features * T::PARTS,
            h0: sequence.h0.map(parts),
            width,
        };
        let on_input = sequence.on_input && phi.kind != Nonlinearity::Identity;
        Ok(Setting { sequence: *sequence, line, on_input, phi, bias })
    }

    /// Whether backward recomputes z with W.
    fn recomputes(&self) -> bool {
        !self.sequence.on_input && !self.phi.readable()
    }

    /// V packed, or room for it.
    fn input(&self, arena: &mut Arena) -> Packed<T> {
        let Sequence { features, n, .. } = self.sequence;
        let [given, _] = self.sequence.packed();
        given.map_or_else(|| Packed::new(arena, features, n), |given| Packed::given(features, n, given))
    }

    /// V
    fn weight(&self) -> Operand<T> {
        Operand::new(self.sequence.input_weight.as_ptr(), self.sequence.features)
    }

    /// Multiply-adds of V x per row.
    fn work(&self) -> usize {
        let Sequence { n, features, .. } = self.sequence;
        work(&[n, features, T::PARTS, T::PARTS])
    }
}

/// A setting with its transition.
struct AffineCell<'a, T: Scalar> {
    setting: &'a Setting<'a, T>,
    step: &'a dyn Step<T>,
    /// In the room of [`Setting::input`].
    input: &'a Packed<T>,
}

impl<'a, T: Scalar> Deref for AffineCell<'a, T> {
    type Target = Setting<'a, T>;
    fn deref(&self) -> &Setting<'a, T> {
        self.setting
    }
}

impl<T: Scalar> AffineCell<'_, T> {
    /// The activation is an epilogue on the columns of a step; otherwise it is a pass over whole rows.
    fn fused(&self) -> bool {
        !self.phi.kind.by_rows()
    }

    /// The map V x_t + b to row 0 of the step at `out`, with the activation if it is fused and wanted.
    fn drive(&self, t: usize, out: *mut T::Real, wanted: Wanted) -> Affine<T::Real> {
        let Setting { phi, line, .. } = self.setting;
        let mut map = Affine::new(line.width, line.schedule.batch, out);
        map.terms[0] = self.input.times(line.x(t));
        map.bias = or_null(&self.bias);
        if wanted == Wanted::State && self.fused() && phi.kind != Nonlinearity::Identity {
            map.finish = Finish::Value(phi.kernel());
        }
        map
    }

    /// One step for this part's rows and columns, to row 0 of the step at `out`.
    ///
    /// # Safety
    /// The states of the previous step are complete for these rows; `out` has B rows, and only this part
    /// writes its own.
    unsafe fn write(
        &self,
        t: usize,
        states: *const T::Real,
        out: *mut T::Real,
        wanted: Wanted,
        part: &Part<'_>,
        scratch: *mut T::Real,
    ) {
        let Setting { line, .. } = self.setting;
        let (width, batch) = (line.width, line.schedule.batch);
        let mut map = self.drive(t, out, wanted);
        let rows = part.rows(0..line.schedule.active(t));
        // SAFETY: the contract above; x_t, h0 and the packed V have the rows and columns of the sequence.
        unsafe {
            if self.on_input {
                map.run(rows.clone(), part.columns::<T::Real>(width));
                if wanted == Wanted::Argument {
                    return;
                }
                self.activate(out, rows, part);
                map = Affine::new(width, batch, out);
                map.add = out;
            }
            for (rows, previous) in line.sources(t, states) {
                let rows = part.rows(rows);
                if rows.is_empty() {
                    continue;
                }
                if previous.is_null() {
                    map.run(rows, part.columns::<T::Real>(width));
                } else {
                    self.step.forward(previous, map, rows, part, scratch);
                }
            }
            if wanted == Wanted::State && !self.on_input {
                self.activate(out, part.rows(0..line.schedule.active(t)), part);
            }
        }
    }

    /// The pass of an activation that is not fused, over whole rows.
    ///
    /// # Safety
    /// The rows exist, and this part's rows are written by no other member.
    unsafe fn activate(&self, rows_at: *mut T::Real, rows: Range<usize>, part: &Part<'_>) {
        if self.fused() {
            return;
        }
        part.sync();
        if part.leads() {
            // SAFETY: the rows exist with the columns of all members, and only this part writes them.
            unsafe { self.phi.value(rows_at, rows_at, rows, 0..self.line.width) }
        }
        part.sync();
    }
}

impl<T: Scalar> Cell<T::Real> for AffineCell<'_, T> {
    fn width(&self) -> usize {
        self.line.width
    }
    fn work(&self) -> usize {
        self.step.work().saturating_add(self.setting.work())
    }

    unsafe fn prepare(&self, scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: V has n rows and d columns; all members pack it, and a barrier follows.
        unsafe {
            self.input.fill(self.weight().t(), member);
            self.step.prepare(scratch, member);
        }
    }

    unsafe fn advance(&self, t: usize, frame: &Frame<T::Real>, part: &Part<'_>, scratch: *mut T::Real) {
        let out = frame.states.wrapping_add(t * self.line.stride());
        // SAFETY: the contract of the trait.
        unsafe { self.write(t, frame.states, out, Wanted::State, part, scratch) }
    }
}
