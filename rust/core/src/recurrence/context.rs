//! What forward and backward share: the packed input weight, the activation, and one step from previous states to z or h.

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

/// What a step is to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// h
    State,
    /// The argument z of the activation.
    Argument,
}

/// A checked sequence made ready: which rows take part when, the activation, the biases.
pub struct Setting<'a, T: Scalar> {
    pub sequence: Sequence<'a, T>,
    pub schedule: Schedule,
    pub law: Law<T::Real>,
    /// Real numbers per state.
    pub width: usize,
    /// phi acts on the input part only, and is not the identity.
    pub on_input: bool,
    /// b for whole vectors; empty without.
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

    /// Whether a backward pass computes z anew with W.
    pub fn recomputes(&self) -> bool {
        !self.sequence.on_input && !self.law.readable()
    }

    /// Room for V, packed.
    pub fn input(&self, arena: &mut Arena) -> Packed<T> {
        Packed::new(arena, self.sequence.features, self.sequence.n)
    }

    /// In how many halves gradients are gathered: 2 or 1.
    pub fn halves(&self, step: &dyn Step<T>) -> usize {
        if step.halved() { halves(&self.sequence) } else { 1 }
    }
}

/// A setting with its transition.
pub struct Context<'a, T: Scalar> {
    pub setting: &'a Setting<'a, T>,
    pub step: &'a dyn Step<T>,
    /// In how many halves gradients are gathered: 2 or 1.
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
    /// With the room of [`Setting::input`].
    pub fn new(setting: &'a Setting<'a, T>, step: &'a dyn Step<T>, input: &'a Packed<T>) -> Self {
        Context { setting, step, halves: setting.halves(step), input }
    }

    /// Numbers of one time step of states.
    pub fn stride(&self) -> usize {
        self.sequence.batch * self.width
    }

    /// The activation finishes the columns of a step; otherwise it is a pass over whole rows.
    pub fn fused(&self) -> bool {
        !self.law.kind.by_rows()
    }

    /// Packs V; a barrier has to follow.
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

    /// The rows of step t that continue from states and those that start, each with its previous states at row 0.
    pub fn sources(&self, t: usize, states: *const T::Real) -> [(Range<usize>, *const T::Real); 2] {
        let (continuing, active) = (self.schedule.continuing(t), self.schedule.active(t));
        let previous =
            self.schedule.previous(t).map_or(std::ptr::null(), |s| states.wrapping_add(s * self.stride()));
        let start = self.sequence.h0.map_or(std::ptr::null(), |h0| parts(h0).as_ptr());
        [(0..continuing, previous), (continuing..active, start)]
    }

    /// One step for this part's rows and columns, to row 0 of the step at `out`.
    ///
    /// # Safety
    /// The states of the previous step are complete for these rows; `out` has B rows, and only this part writes those that are its.
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
        // SAFETY: the contract above; x_t, h0 and the packed V have the rows and columns of the sequence.
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
    /// The rows exist, and only this part writes those that are its.
    unsafe fn activate(&self, rows_at: *mut T::Real, rows: Range<usize>, part: &Part<'_>) {
        if self.fused() {
            return;
        }
        let Setting { law, width, .. } = self.setting;
        part.sync();
        if part.leads() {
            // SAFETY: the rows exist with the columns of all members, and only this part writes them.
            unsafe { law.value(rows_at, rows_at, rows, 0..*width) }
        }
        part.sync();
    }
}
