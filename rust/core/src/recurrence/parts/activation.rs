//! Passes of an activation over a part of a step, and the gradient of modReLU's own bias, summed over chunks:
//! sum Re(conj(e) h_bar) with the cotangents h_bar of its values.

use super::super::time::Chunk;
use super::sums::ColumnSums;
use crate::activation::{RowActivation, Source};
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{Component, Part};
use isometry_kernels::activation::{Along, Columns, units};
use std::ops::Range;

/// Runs a pass on the columns of this part; one that needs whole rows waits for the columns of the others.
pub fn over<R: Real>(phi: &RowActivation<R>, part: &Part<'_>, pass: impl FnOnce(Range<usize>)) {
    if !phi.kind.by_rows() {
        pass(part.columns::<R>(phi.width));
        return;
    }
    part.sync();
    if part.leads() {
        pass(0..phi.width);
    }
    part.sync();
}

/// What the derivative of an activation is read off: its values, or their arguments where these lose accuracy.
pub fn source<R: Real>(phi: &RowActivation<R>) -> Source {
    if phi.readable() { Source::Value } else { Source::Argument }
}

/// Rows of the activation in a chunk.
pub struct Values<R> {
    /// Cotangents of the values.
    pub bar: *const R,
    /// Values or arguments.
    pub y: *const R,
    /// Whether `y` holds values or arguments.
    pub from: Source,
    /// Distance of the y of consecutive steps, in numbers; 0 where they are contiguous like the rows.
    pub apart: usize,
}

/// Sums for the bias of modReLU, sum Re(conj(e) h_bar).
pub struct BiasGatherer<'a, R: Real> {
    phi: &'a RowActivation<R>,
    sums: ColumnSums<R>,
    /// One number per feature.
    bar: Option<(Shared<R>, usize)>,
}

impl<'a, R: Real> BiasGatherer<'a, R> {
    /// For the gradient of so many numbers, if it is wanted.
    pub fn carve(
        arena: &mut Arena,
        phi: &'a RowActivation<R>,
        halves: usize,
        bar: Option<(Shared<R>, usize)>,
    ) -> Self {
        BiasGatherer { phi, sums: ColumnSums::carve(arena, bar.map(|(bar, _)| bar), halves, phi.width), bar }
    }

    /// Adds a chunk: this member's columns.
    ///
    /// # Safety
    /// The rows are complete; all members gather together.
    pub unsafe fn gather(&self, chunk: &Chunk<'_>, values: &Values<R>) {
        if self.sums.is_empty() {
            return;
        }
        let (width, member, rows) = (self.phi.width, &chunk.half.gatherer, chunk.rows(chunk.steps));
        let each = if values.apart == 0 { rows } else { chunk.half.rows.len() };
        for i in 0..rows / each.max(1) {
            let y = values.y.wrapping_add(i * values.apart);
            let sum = Columns {
                bar: values.bar.wrapping_add(i * each * width),
                along: Some(Along { phi: self.phi.kernel(), y, from: values.from }),
                rows: each,
                width,
                sums: self.sums.of(chunk),
                add: chunk.index > 0 || i > 0,
                columns: self.phi.bias_columns(member),
            };
            // SAFETY: the contract above; members write different columns of the sums.
            unsafe { sum.call() }
        }
    }
}

// SAFETY: there is no scratch.
unsafe impl<R: Real> Component<R> for BiasGatherer<'_, R> {
    unsafe fn fill(&self) {
        // SAFETY: the contract of the trait.
        unsafe { self.sums.fill() };
    }

    unsafe fn finish(&self, _scratch: *mut R, member: &Member<'_>) {
        let Some((bar, count)) = self.bar.filter(|_| member.id == 0) else { return };
        // SAFETY: the sizes were checked, the sums were zeros at first; the other members are through with all of it.
        unsafe {
            let bar = std::slice::from_raw_parts_mut(bar.0, count);
            units(self.phi.kind, self.sums.total(), bar);
        }
    }
}
