//! The memory of a backward pass: two chunks used in turn, in one allocation. (Several would be handed back to the
//! system and faulted in again by every call.)

use super::context::Context;
use super::step::Trace;
use crate::kernels::Buffer;
use crate::scalar::{Real, Scalar};

/// What a chunk keeps, row after row; null where it is not needed.
pub struct Work<R> {
    /// z_bar, what W sees.
    pub bar: *mut R,
    /// phi'^H z_bar where phi acts on the input part only.
    pub input_bar: *mut R,
    /// h_bar where the bias of the activation wants it and z_bar does not tell it.
    pub value_bar: *mut R,
    /// z where it is computed anew.
    pub z: *mut R,
    /// What the step keeps.
    pub kept: *mut R,
    /// Copies of the states before the step, of the inputs, and of the states, where rows are missing between them.
    pub copies: [*mut R; 3],
}

/// The two chunks.
pub struct Memory<R: Real> {
    data: Buffer<R>,
    /// Numbers per row of each array of a chunk.
    widths: [usize; 8],
    rows: usize,
}

impl<R: Real> Memory<R> {
    /// For chunks of up to `rows` rows; `states` says that the bias of modReLU wants the states.
    pub fn new<T: Scalar<Real = R>>(context: &Context<'_, T>, rows: usize, states: bool) -> Self {
        let (width, features) = (context.width, context.sequence.features * T::PARTS);
        let varied = context.halves > 1 || !context.schedule.full(&(0..context.schedule.steps));
        let some = |wanted: bool, width: usize| if wanted { width } else { 0 };
        let widths = [
            width,
            some(context.on_input, width),
            some(states && !context.on_input && context.law.turns(), width),
            some(context.on_input || !context.law.readable(), width),
            context.step.kept(),
            some(varied, width),
            some(varied, features),
            some(varied && states && context.halves == 1, width),
        ];
        let total: usize = widths.iter().map(|&width| Self::room(rows, width)).sum();
        Memory { data: Buffer::scratch(2 * total), widths, rows }
    }

    /// Whole cache lines, and apart from the next array by one more.
    fn room(rows: usize, width: usize) -> usize {
        if width == 0 { 0 } else { (rows * width).next_multiple_of(16) + 16 }
    }

    /// The memory of the k-th chunk.
    pub fn chunk(&self, k: usize) -> Work<R> {
        let total: usize = self.widths.iter().map(|&width| Self::room(self.rows, width)).sum();
        let mut at = self.data.ptr().wrapping_add(k % 2 * total);
        let [bar, input_bar, value_bar, z, kept, a, b, c] = self.widths.map(|width| {
            let here = at;
            at = at.wrapping_add(Self::room(self.rows, width));
            if width == 0 { std::ptr::null_mut() } else { here }
        });
        Work { bar, input_bar, value_bar, z, kept, copies: [a, b, c] }
    }
}

impl<R> Work<R> {
    /// The trace of the step whose rows begin at `row` of the chunk.
    pub fn trace(&self, row: usize, width: usize, kept: usize) -> Trace<R> {
        Trace { bar: self.bar.wrapping_add(row * width), kept: self.kept.wrapping_add(row * kept) }
    }
}
