//! The memory of a backward pass: scratch of its members, and two chunks used in turn.

use super::context::Setting;
use super::gradients::{Gathered, Wants};
use super::packed::Packed;
use super::sequence::Sequence;
use super::step::{Step, Trace};
use super::team::layout;
use crate::kernels::Product;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region, Regions};

/// Most rows of a chunk, unless one step has more. Small in tests, so that there are many chunks.
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
    /// Whether members share columns instead of rows.
    pub columns: bool,
}

impl<T: Scalar> Room<T> {
    /// For up to `threads` members and the requested gradients.
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

/// The data of a chunk, row by row; empty where not needed.
pub struct Work<R> {
    /// z_bar, the cotangent that W^H is applied to.
    pub bar: Region<R>,
    /// phi'^H z_bar if phi acts on the input term only.
    pub input_bar: Region<R>,
    /// h_bar if the gradient of the activation's bias needs it and it cannot be recovered from z_bar.
    pub value_bar: Region<R>,
    /// z if it is recomputed.
    pub z: Region<R>,
    /// The output of [`super::step::Step::keep`].
    pub kept: Region<R>,
    /// Copies of the previous states, the inputs, and the states, where their rows are not contiguous.
    pub copies: [Region<R>; 3],
}

impl<R: Real> Work<R> {
    /// For chunks of up to `rows` rows; `states` says that the gradient of modReLU's bias needs the states.
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
            // padding of 16 numbers before the next array
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
