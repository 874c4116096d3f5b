//! What a chunk of a backward pass keeps; two of them are used in turn.

use super::context::Setting;
use super::step::{Step, Trace};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};

/// What a chunk keeps, row after row; empty where it is not needed.
pub struct Work<R> {
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
    /// Copies of the states before the step, of the inputs, and of the states, where rows are missing between them.
    pub copies: [Region<R>; 3],
}

impl<R: Real> Work<R> {
    /// For chunks of up to `rows` rows; `states` says that the bias of modReLU wants the states.
    pub fn carve<T: Scalar<Real = R>>(
        arena: &mut Arena,
        setting: &Setting<'_, T>,
        step: &dyn Step<T>,
        rows: usize,
        states: bool,
    ) -> Self {
        let (width, features) = (setting.width, setting.sequence.features * T::PARTS);
        let halves = setting.halves(step);
        let varied = halves > 1 || !setting.schedule.full(&(0..setting.schedule.steps));
        let mut array = |wanted: bool, width: usize| {
            let array: Region<R> = arena.take(&[usize::from(wanted), rows, width]);
            // apart from the next by 16 numbers more
            arena.take::<R>(&[if array.is_empty() { 0 } else { 16 }]);
            array
        };
        Work {
            bar: array(true, width),
            input_bar: array(setting.on_input, width),
            value_bar: array(states && !setting.on_input && setting.law.turns(), width),
            z: array(setting.on_input || !setting.law.readable(), width),
            kept: array(true, step.kept()),
            copies: [
                array(varied, width),
                array(varied, features),
                array(varied && states && halves == 1, width),
            ],
        }
    }

    /// The trace of the step whose rows begin at `row` of the chunk.
    pub fn trace(&self, row: usize, width: usize, kept: usize) -> Trace<R> {
        Trace { bar: self.bar.at(row * width), kept: self.kept.at(row * kept) }
    }
}
