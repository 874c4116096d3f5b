//! Any operator that acts on rows as a transition, step by step: W h forward, W^H z_bar backward.
//!
//! The gradient is gathered per chunk in blocks of rows. Which rows make a block depends on the sizes alone, each block adds to a
//! slot of sums of its own, and the slots are added in order at the end, so that the result does not depend on the threads.

use super::super::chunk::chunk_rows;
use super::super::schedule::Schedule;
use super::super::team::Part;
use super::step::{Gather, Step, Trace};
use crate::operator::Side;
use crate::parallel::{Member, Shared};
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use isometry_kernels::recurrence::Affine;
use num_traits::Zero;
use std::ops::Range;

/// Slots at most.
const SLOTS: usize = 16;
/// The rows of a block are a multiple of this, since operators may take so many at a time. Tests have many blocks.
const BLOCK: usize = if cfg!(test) { 2 } else { 16 };

/// [`Rows`] inside a recurrence.
pub struct RowsStep<'a, T: Scalar> {
    of: &'a dyn Rows<T>,
    /// Rows of the batch.
    batch: usize,
    /// W h or W^H z_bar of one step.
    turned: Region<T::Real>,
    /// Rows of a block.
    block: usize,
    sums: Option<Sums<T::Real>>,
}

struct Sums<R> {
    /// Of every slot, those of one half of the batch after those of the other.
    slots: Region<R>,
    /// Slots of a half.
    each: usize,
    bar: Shared<R>,
}

impl<'a, T: Scalar> RowsStep<'a, T> {
    /// For a forward pass, or for a backward pass that fills `bar` from so many halves.
    pub fn carve(
        arena: &mut Arena,
        of: &'a dyn Rows<T>,
        schedule: &Schedule,
        (bar, halves): (Option<Shared<T::Real>>, usize),
    ) -> Self {
        let (rows, n) = (chunk_rows(schedule), of.size().0);
        let block = rows.div_ceil(SLOTS).max(1).next_multiple_of(BLOCK);
        let each = rows.div_ceil(block);
        let sums = bar.map(|bar| Sums { slots: arena.take(&[halves, each, of.sums()]), each, bar });
        RowsStep {
            of,
            batch: schedule.batch,
            turned: arena.take(&[schedule.batch, n, T::PARTS]),
            block,
            sums,
        }
    }

    /// Real numbers of a row.
    fn width(&self) -> usize {
        self.of.size().0 * T::PARTS
    }

    /// These rows one after the other: where they are, or copied behind the operator's scratch.
    ///
    /// # Safety
    /// The rows exist; the scratch is this member's.
    unsafe fn together(
        &self,
        x: *const T::Real,
        apart: usize,
        rows: usize,
        scratch: *mut T::Real,
    ) -> *const T {
        let width = self.width();
        if apart == width {
            return x.cast();
        }
        let copy = scratch.wrapping_add(self.of.scratch(rows));
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
            self.of.apply_rows(x, rows.len(), side, out.cast(), scratch);
            map.run(rows, 0..map.width);
        }
    }
}

impl<T: Scalar> Step<T> for RowsStep<'_, T> {
    fn work(&self) -> usize {
        self.of.work()
    }
    fn divisible(&self) -> bool {
        false
    }
    fn scratch(&self, rows: usize) -> usize {
        let rows = self.batch.max(rows.min(self.block));
        self.of.scratch(rows).saturating_add(rows * self.width())
    }

    unsafe fn fill(&self) {
        if let Some(sums) = &self.sums {
            // SAFETY: nobody else uses the memory yet.
            unsafe { sums.slots.zeroed() };
        }
    }

    unsafe fn prepare(&self, _scratch: *mut T::Real, _member: &Member<'_>) {}

    unsafe fn forward(
        &self,
        previous: *const T::Real,
        map: Affine<T::Real>,
        rows: Range<usize>,
        _part: &Part<'_>,
        scratch: *mut T::Real,
    ) {
        // SAFETY: the contract of the trait; steps are not shared by columns.
        unsafe { self.turn((previous, map.width), Side::Forward, map, rows, scratch) }
    }

    unsafe fn backward(
        &self,
        trace: Trace<T::Real>,
        map: Affine<T::Real>,
        rows: Range<usize>,
        _part: &Part<'_>,
        scratch: *mut T::Real,
    ) {
        // SAFETY: the contract of the trait; steps are not shared by columns.
        unsafe { self.turn((trace.bar, trace.apart), Side::Adjoint, map, rows, scratch) }
    }

    unsafe fn gather(&self, chunk: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        let Some(sums) = &self.sums else { return };
        let (width, each, trace) = (self.width(), self.of.sums(), chunk.trace);
        for slot in member.share(chunk.rows.div_ceil(self.block), 1) {
            let first = slot * self.block;
            let rows = self.block.min(chunk.rows - first);
            let x = chunk.previous.wrapping_add(first * width).cast();
            let own = sums.slots.at((chunk.half * sums.each + slot) * each);
            // SAFETY: the rows of the chunk are complete; members write different slots.
            unsafe {
                let bar = trace.bar.wrapping_add(first * trace.apart);
                let ct = self.together(bar, trace.apart, rows, scratch);
                self.of.pull_rows(x, ct, rows, Side::Forward, own, None, scratch);
            }
        }
    }

    unsafe fn finish(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        let Some(sums) = &self.sums else { return };
        let each = self.of.sums();
        for at in member.share(each, 64) {
            let mut sum = T::Real::zero();
            for slot in 0..sums.slots.len() / each {
                // SAFETY: the slots are complete.
                sum += unsafe { *sums.slots.at(slot * each + at) };
            }
            // SAFETY: the gradient has so many numbers; members write different ones.
            unsafe { *sums.bar.at(at) = sum };
        }
    }
}
