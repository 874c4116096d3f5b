//! What a backward pass of the affine cell keeps of a chunk, row after row.

use super::super::chunk::chunk_rows;
use super::super::timeline::{Copies, rows_apart};
use super::Setting;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use crate::transition::{Step, Trace};

/// What a chunk keeps, row after row; empty where it is not needed.
pub(super) struct Work<R> {
    /// z_bar, what W sees.
    pub bar: Region<R>,
    /// phi'^H z_bar where phi acts on the input part only.
    pub input_bar: Region<R>,
    /// h_bar where the bias of the activation wants it and z_bar does not tell it.
    pub value_bar: Region<R>,
    /// z where it is computed anew.
    pub z: Region<R>,
    /// What the step keeps.
    pub kept: Region<R>,
    /// States before the step, inputs and states, where rows are missing between them.
    pub copies: Copies<R>,
}

impl<R: Real> Work<R> {
    /// `states` says that the bias of modReLU wants the states.
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
