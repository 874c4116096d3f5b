//! The rows of a chunk that a backward pass of the affine cell keeps.

use super::super::chunk::chunk_rows;
use super::super::timeline::{Copies, rows_apart};
use super::Setting;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use crate::transition::{Step, Trace};

/// The arrays of a chunk, row after row; empty where not needed.
pub(super) struct Work<R> {
    /// z_bar, the cotangent of W h.
    pub bar: Region<R>,
    /// phi'^H z_bar where phi acts on the input part only.
    pub input_bar: Region<R>,
    /// h_bar, where the gradient of the activation's bias needs it and it differs from z_bar.
    pub value_bar: Region<R>,
    /// z, where it is recomputed.
    pub z: Region<R>,
    /// The output of [`Step::keep`].
    pub kept: Region<R>,
    /// Copies of the states before the step, inputs and states, where their rows are not contiguous.
    pub copies: Copies<R>,
}

impl<R: Real> Work<R> {
    /// `states`: the gradient of modReLU's bias needs the states.
    pub fn carve<T: Scalar<Real = R>>(
        arena: &mut Arena,
        setting: &Setting<'_, T>,
        step: &dyn Step<T>,
        halves: usize,
        states: bool,
    ) -> Self {
        let Setting { line, phi, on_input, .. } = setting;
        let rows = chunk_rows(&line.schedule);
        let mut array = |wanted: bool, width: usize| rows_apart(arena, wanted, rows, width);
        Work {
            bar: array(true, line.width),
            input_bar: array(*on_input, line.width),
            value_bar: array(states && !on_input && phi.turns(), line.width),
            z: array(*on_input || !phi.readable(), line.width),
            kept: array(true, step.kept()),
            copies: Copies::carve(arena, line, halves, states && halves == 1),
        }
    }

    /// The trace of the step whose rows begin at `row` of the chunk.
    pub fn trace(&self, row: usize, width: usize, kept: usize) -> Trace<R> {
        Trace { bar: self.bar.at(row * width), apart: width, kept: self.kept.at(row * kept) }
    }
}
