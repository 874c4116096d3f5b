//! The gradient of modReLU's own bias, summed over chunks: sum Re(conj(e) h_bar) with the cotangents h_bar of its values.

use super::chunk::Chunk;
use super::inputs::halves_added;
use crate::activation::{RowActivation, Source};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use isometry_kernels::activation::{Along, Columns, units};

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
pub struct BiasGatherer<'a, T: Scalar> {
    phi: &'a RowActivation<T::Real>,
    halves: usize,
    /// The sums of each half; empty where the gradient is not wanted.
    sums: Region<T::Real>,
    bar: Option<(Shared<T::Real>, usize)>,
}

impl<'a, T: Scalar> BiasGatherer<'a, T> {
    /// Room for the sums.
    pub fn carve(
        arena: &mut Arena,
        phi: &RowActivation<T::Real>,
        halves: usize,
        wanted: bool,
    ) -> Region<T::Real> {
        arena.take(&[usize::from(wanted), halves, phi.width])
    }

    /// In that memory.
    ///
    /// # Safety
    /// The memory lives, was cut for this gradient, and nobody else uses it.
    pub unsafe fn new(
        phi: &'a RowActivation<T::Real>,
        halves: usize,
        sums: Region<T::Real>,
        bar: Option<&'a mut [T::Real]>,
    ) -> Self {
        // SAFETY: the contract above.
        unsafe { sums.zeroed() };
        let bar = bar.map(|bar| (Shared(bar.as_mut_ptr()), bar.len()));
        BiasGatherer { phi, halves, sums, bar }
    }

    /// Adds a chunk: this member's columns.
    ///
    /// # Safety
    /// The rows are complete; all members gather together.
    pub unsafe fn gather(&self, chunk: &Chunk<'_>, values: &Values<T::Real>) {
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
                sums: self.sums.at(chunk.half.index * width),
                add: chunk.index > 0 || i > 0,
                columns: self.phi.bias_columns(member),
            };
            // SAFETY: the contract above; members write different columns of the sums.
            unsafe { sum.call() }
        }
    }

    /// Writes the gathered gradient.
    ///
    /// # Safety
    /// Every chunk has been gathered by all members.
    pub unsafe fn finish(&self, member: &Member<'_>) {
        let Some((bar, count)) = self.bar.filter(|_| member.id == 0) else { return };
        // SAFETY: the sizes were checked, the sums were zeros at first; the other members are through with all of it.
        unsafe {
            halves_added(self.sums, self.halves);
            let bar = std::slice::from_raw_parts_mut(bar.0, count);
            units(self.phi.kind, std::slice::from_raw_parts(self.sums.ptr(), self.phi.width), bar);
        }
    }
}
