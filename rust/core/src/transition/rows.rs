//! Any operator that acts on rows as a transition, step by step: W h forward, W^H z_bar backward.
//!
//! The gradient is gathered per chunk in [`Slots`], those of the second half of the batch after those of the
//! first.

use super::{Component, Extent, Gather, Needs, On, Step, Trace};
use crate::kernels::{Slots, add_slots};
use crate::parallel::{Member, Shared};
use crate::rows::{RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::side::Side;
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// [`Rows`] inside a recurrence.
pub struct RowsStep<'a, T: Scalar> {
    of: &'a dyn Rows<T>,
    /// Rows of the batch.
    batch: usize,
    /// W h or W^H z_bar of one step.
    turned: Region<T::Real>,
    slots: Slots,
    sums: Option<Sums<T::Real>>,
}

struct Sums<R> {
    /// The sums of every slot of every half.
    all: Region<R>,
    bar: Shared<R>,
}

impl<'a, T: Scalar> RowsStep<'a, T> {
    /// For a forward pass, or for a backward pass that fills an array from so many halves.
    pub fn carve(
        arena: &mut Arena,
        of: &'a dyn Rows<T>,
        extent: Extent,
        bar: Option<(Shared<T::Real>, usize)>,
    ) -> Self {
        let slots = Slots::of(1, extent.chunk, of.sums());
        let sums = bar.map(|(bar, halves)| Sums { all: arena.take(&[halves, slots.count, of.sums()]), bar });
        RowsStep {
            of,
            batch: extent.batch,
            turned: arena.take(&[extent.batch, of.shape().0, T::PARTS]),
            slots,
            sums,
        }
    }

    /// Real numbers of a row.
    fn width(&self) -> usize {
        self.of.shape().0 * T::PARTS
    }

    /// Real numbers of scratch of the operator for so many rows.
    fn room(&self, rows: usize) -> usize {
        self.of.scratch(rows).max(self.held())
    }

    /// These rows one after the other: in place, or copied to the end of the operator's scratch.
    ///
    /// # Safety
    /// The rows exist; the scratch is this member's.
    unsafe fn together(&self, x: *const T::Real, apart: usize, rows: usize, room: *mut T::Real) -> *const T {
        let width = self.width();
        if apart == width {
            return x.cast();
        }
        let copy = room.wrapping_add(self.room(rows));
        for row in 0..rows {
            // SAFETY: the contract above; the scratch has room for the rows.
            unsafe { copy.add(row * width).copy_from_nonoverlapping(x.add(row * apart), width) }
        }
        copy.cast_const().cast()
    }

    /// Runs `map` with W x, or W^H x, added; the rows of x are `apart` numbers apart.
    ///
    /// # Safety
    /// The rows exist, and nobody else works on them.
    unsafe fn turn(
        &self,
        (x, apart): (*const T::Real, usize),
        side: Side,
        mut map: Affine<T::Real>,
        rows: Range<usize>,
        scratch: *mut T::Real,
    ) {
        let (x, out) = (x.wrapping_add(rows.start * apart), self.turned.at(rows.start * map.width));
        map.base = self.turned.ptr();
        // SAFETY: the contract above; `turned` has the rows of the batch.
        unsafe {
            let x = self.together(x, apart, rows.len(), scratch);
            self.of.apply_rows(RowPass { k: 0, rows: rows.len(), side }, x, out.cast(), scratch);
            map.run(rows, 0..map.width);
        }
    }
}

// SAFETY: the scratch is that of the operator, which holds what it has loaded, and room for copies of rows.
unsafe impl<T: Scalar> Component<T::Real> for RowsStep<'_, T> {
    fn needs(&self, rows: usize) -> Needs {
        let (held, rows) = (self.held(), self.batch.max(rows.min(self.slots.block)));
        let all = self.room(rows).saturating_add(rows * self.width());
        Needs { work: [self.of.work(), 0], divisible: false, held, free: all - held }
    }

    unsafe fn fill(&self) {
        if let Some(sums) = &self.sums {
            // SAFETY: nobody else uses the memory yet.
            unsafe { sums.all.zeroed() };
        }
    }

    unsafe fn prepare(&self, scratch: *mut T::Real, _member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.of.load(0, scratch) }
    }

    unsafe fn finish(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        let Some(sums) = &self.sums else { return };
        let (each, slots) = (self.of.sums(), sums.all.len() / self.of.sums().max(1));
        let mine = member.share(each, 64);
        // SAFETY: the slots are complete, the gradient has as many numbers; members write different ones.
        unsafe {
            add_slots(sums.all.ptr(), slots, each, mine.clone());
            sums.bar.at(mine.start).copy_from_nonoverlapping(sums.all.at(mine.start), mine.len());
        }
    }
}

// SAFETY: there is nothing to keep.
unsafe impl<T: Scalar> Step<T> for RowsStep<'_, T> {
    fn held(&self) -> usize {
        self.of.scratch(0)
    }

    unsafe fn forward(&self, previous: *const T::Real, map: Affine<T::Real>, on: On<'_, T::Real>) {
        let On { rows, scratch, .. } = on;
        // SAFETY: the contract of the trait; steps are not shared by columns.
        unsafe { self.turn((previous, map.width), Side::Forward, map, rows, scratch) }
    }

    unsafe fn backward(&self, trace: Trace<T::Real>, map: Affine<T::Real>, on: On<'_, T::Real>) {
        let On { rows, scratch, .. } = on;
        // SAFETY: the contract of the trait; steps are not shared by columns.
        unsafe { self.turn((trace.bar, trace.apart), Side::Adjoint, map, rows, scratch) }
    }

    unsafe fn gather(&self, chunk: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        let Some(sums) = &self.sums else { return };
        let (width, each, trace) = (self.width(), self.of.sums(), chunk.trace);
        let block = self.slots.block;
        for slot in member.share(chunk.rows.div_ceil(block), 1) {
            let first = slot * block;
            let rows = block.min(chunk.rows - first);
            let x = chunk.previous.wrapping_add(first * width).cast();
            let own = sums.all.at((chunk.half * self.slots.count + slot) * each);
            // SAFETY: the rows of the chunk are complete; members write different slots.
            unsafe {
                let bar = trace.bar.wrapping_add(first * trace.apart);
                let ct = self.together(bar, trace.apart, rows, scratch);
                let pull = RowPull { x, ct, sums: own, x_bar: None };
                self.of.pull_rows(RowPass { k: 0, rows, side: Side::Forward }, pull, scratch);
            }
        }
    }
}
