//! Shared by forward and backward: the packed input weight, the activation, and one step from previous states to z or h.

use super::halves::halves;
use super::packed::Packed;
use super::sequence::{Schedule, Sequence};
use super::step::Step;
use super::team::Part;
use crate::activation::{Kind, Law};
use crate::error::Result;
use crate::kernels::{Buffer, Operand};
use crate::parallel::Member;
use crate::scalar::{Scalar, parts};
use crate::scratch::Arena;
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::{Deref, Range};

/// What a step writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// h
    State,
    /// The argument z of the activation.
    Argument,
}

/// A checked sequence, prepared: the rows active in each step, the activation, the biases.
pub struct Setting<'a, T: Scalar> {
    pub sequence: Sequence<'a, T>,
    pub schedule: Schedule,
    pub law: Law<T::Real>,
    /// Real numbers per state.
    pub width: usize,
    /// phi acts on the input term only, and is not the identity.
    pub on_input: bool,
    /// b for whole vectors; empty if there is none.
    bias: Buffer<T::Real>,
}

impl<'a, T: Scalar> Setting<'a, T> {
    pub fn new(sequence: &Sequence<'a, T>) -> Result<Self> {
        let width = sequence.n * T::PARTS;
        let mut bias = Buffer::zeroed(if sequence.bias.is_some() { width + 64 } else { 0 })?;
        if let Some(b) = sequence.bias {
            bias[..width].copy_from_slice(parts(b));
        }
        let law = Law::new::<T>(sequence.activation, sequence.n, sequence.activation_bias)?;
        Ok(Setting {
            sequence: *sequence,
            schedule: Schedule::new(sequence)?,
            on_input: sequence.on_input && law.kind != Kind::Identity,
            law,
            width,
            bias,
        })
    }

    /// Whether a backward pass recomputes z with W.
    pub fn recomputes(&self) -> bool {
        !self.sequence.on_input && !self.law.readable()
    }

    /// Room for packed V.
    pub fn input(&self, arena: &mut Arena) -> Packed<T> {
        Packed::new(arena, self.sequence.features, self.sequence.n)
    }

    /// The number of halves in which gradients are gathered: 2 or 1.
    pub fn halves(&self, step: &dyn Step<T>) -> usize {
        if step.halved() { halves(&self.sequence) } else { 1 }
    }
}

/// A setting with its transition.
pub struct Context<'a, T: Scalar> {
    pub setting: &'a Setting<'a, T>,
    pub step: &'a dyn Step<T>,
    /// The number of halves in which gradients are gathered: 2 or 1.
    pub halves: usize,
    input: &'a Packed<T>,
}

impl<'a, T: Scalar> Deref for Context<'a, T> {
    type Target = Setting<'a, T>;
    fn deref(&self) -> &Setting<'a, T> {
        self.setting
    }
}

impl<'a, T: Scalar> Context<'a, T> {
    /// `input` comes from [`Setting::input`].
    pub fn new(setting: &'a Setting<'a, T>, step: &'a dyn Step<T>, input: &'a Packed<T>) -> Self {
        Context { setting, step, halves: setting.halves(step), input }
    }

    /// Numbers in one time step of states.
    pub fn stride(&self) -> usize {
        self.sequence.batch * self.width
    }

    /// Whether the activation is the epilogue of a step's product; otherwise it is a pass over whole rows.
    pub fn fused(&self) -> bool {
        !self.law.kind.by_rows()
    }

    /// Packs V; must be followed by a barrier.
    pub fn pack(&self, member: &Member<'_>) {
        let Sequence { features, input_weight, .. } = self.sequence;
        // SAFETY: V has n rows and d columns; all members pack it, and a barrier follows.
        unsafe { self.input.fill(Operand::new(input_weight.as_ptr(), features).t(), member) }
    }

    /// x_t as real numbers.
    pub fn x(&self, t: usize) -> *const T::Real {
        let Sequence { x, batch, features, .. } = self.sequence;
        parts(x)[t * batch * features * T::PARTS..].as_ptr()
    }

    /// The rows of step t that continue and those that start, each with row 0 of its previous states.
    pub fn sources(&self, t: usize, states: *const T::Real) -> [(Range<usize>, *const T::Real); 2] {
        let (continuing, active) = (self.schedule.continuing(t), self.schedule.active(t));
        let previous =
            self.schedule.previous(t).map_or(std::ptr::null(), |s| states.wrapping_add(s * self.stride()));
        let start = self.sequence.h0.map_or(std::ptr::null(), |h0| parts(h0).as_ptr());
        [(0..continuing, previous), (continuing..active, start)]
    }

    /// One step for this part's rows and columns; `out` is row 0 of the step.
    ///
    /// # Safety
    /// The previous states of these rows are complete; `out` has B rows, and this part's rows are written by no other
    /// member.
    pub unsafe fn advance(
        &self,
        t: usize,
        states: *const T::Real,
        out: *mut T::Real,
        wanted: Wanted,
        part: &Part<'_>,
    ) {
        let Setting { law, width, .. } = self.setting;
        let mut map = Affine::new(*width, self.sequence.batch, out);
        map.terms[0] = self.input.times(self.x(t));
        map.bias = if self.bias.is_empty() { std::ptr::null() } else { self.bias.as_ptr() };
        if wanted == Wanted::State && self.fused() && law.kind != Kind::Identity {
            map.finish = Finish::Value(law.phi());
        }
        let rows = part.rows(0..self.schedule.active(t));
        // SAFETY: the contract above; x_t, h0 and the packed V have the sequence's rows and columns.
        unsafe {
            if self.on_input {
                map.run(rows.clone(), part.columns::<T::Real>(*width));
                if wanted == Wanted::Argument {
                    return;
                }
                self.activate(out, rows, part);
                map = Affine::new(*width, self.sequence.batch, out);
                map.add = out;
            }
            for (rows, previous) in self.sources(t, states) {
                let rows = part.rows(rows);
                if rows.is_empty() {
                    continue;
                }
                if previous.is_null() {
                    map.run(rows, part.columns::<T::Real>(*width));
                } else {
                    self.step.forward(previous, map, rows, part);
                }
            }
            if wanted == Wanted::State && !self.on_input {
                self.activate(out, part.rows(0..self.schedule.active(t)), part);
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
        let Setting { law, width, .. } = self.setting;
        part.sync();
        if part.leads() {
            // SAFETY: the rows exist in full width, and no other member writes them.
            unsafe { law.value(rows_at, rows_at, rows, 0..*width) }
        }
        part.sync();
    }
}
