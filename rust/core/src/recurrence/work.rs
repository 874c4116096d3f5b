//! The memory of a backward pass: what its members need, and two chunks that are used in turn.

use super::context::Setting;
use super::gradients::{Gathered, Wants};
use super::packed::Packed;
use super::sequence::Sequence;
use super::step::{Step, Trace};
use super::team::layout;
use crate::kernels::Product;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region, Regions};

/// Rows of a chunk, if a step has fewer. Tests have many chunks.
const ROWS: usize = if cfg!(test) { 16 } else { 512 };

/// Steps of a chunk.
pub fn span(batch: usize) -> usize {
    (ROWS / batch).max(1)
}

/// Most rows that a chunk of this sequence can have.
pub fn chunk_rows<T: Scalar>(sequence: &Sequence<'_, T>) -> usize {
    span(sequence.batch).min(sequence.steps) * sequence.batch
}

/// The members of a backward pass and their memory.
pub struct Room<T: Scalar> {
    pub input: Packed<T>,
    pub gathered: Gathered<T>,
    /// Used in turn.
    pub chunks: [Work<T::Real>; 2],
    /// Scratch of each member.
    pub own: Regions<T::Real>,
    pub threads: usize,
    /// They share columns instead of rows.
    pub columns: bool,
}

impl<T: Scalar> Room<T> {
    /// For up to `threads` members and the gradients that are wanted.
    pub fn carve(
        arena: &mut Arena,
        setting: &Setting<'_, T>,
        step: &dyn Step<T>,
        wants: Wants,
        threads: usize,
    ) -> Self {
        let Sequence { steps, batch, features, .. } = setting.sequence;
        let rows = chunk_rows(&setting.sequence);
        let (threads, columns) = layout(step.work(), step.divisible(), batch, steps, threads);
        let own = step.scratch(rows).max(Product::<T::Real>::scratch(features * T::PARTS, rows));
        Room {
            input: setting.input(arena),
            gathered: Gathered::carve(arena, setting, setting.halves(step), wants),
            chunks: [(); 2].map(|()| Work::carve(arena, setting, step, rows, wants[3])),
            own: arena.regions(threads, &[own]),
            threads,
            columns,
        }
    }
}

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
