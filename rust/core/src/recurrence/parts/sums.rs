//! Sums of columns over all rows of a backward pass, those of each half of the batch apart.

use super::super::time::Chunk;
use crate::kernels::add_slots;
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::Component;
use isometry_kernels::activation::Columns;
use std::ops::Range;

/// Sums of `width` columns for each half, and the array of their total; empty where it is not wanted.
#[derive(Clone, Copy)]
pub struct ColumnSums<R> {
    all: Region<R>,
    bar: Option<Shared<R>>,
    halves: usize,
    width: usize,
}

impl<R: Real> ColumnSums<R> {
    /// Memory for them.
    pub fn carve(arena: &mut Arena, bar: Option<Shared<R>>, halves: usize, width: usize) -> Self {
        ColumnSums { all: arena.take(&[usize::from(bar.is_some()), halves, width]), bar, halves, width }
    }

    /// Whether they are not wanted.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The sums of a chunk's half.
    pub fn of(&self, chunk: &Chunk<'_>) -> *mut R {
        self.all.at(chunk.half.index * self.width)
    }

    /// Adds a member's columns of so many rows of a chunk, `pitch` numbers apart.
    ///
    /// # Safety
    /// The rows are complete; members name different columns.
    pub unsafe fn gather(
        &self,
        chunk: &Chunk<'_>,
        (bar, pitch): (*const R, usize),
        rows: usize,
        columns: Range<usize>,
    ) {
        if !self.is_empty() {
            let (sums, add) = (self.of(chunk), chunk.index > 0);
            // SAFETY: the contract above.
            unsafe { Columns { bar, along: None, rows, width: pitch, sums, add, columns }.call() }
        }
    }

    /// Those of all rows, once every chunk has been gathered by all members.
    ///
    /// # Safety
    /// The sums are complete, and nobody else uses them.
    pub unsafe fn total<'s>(&self) -> &'s [R] {
        let each = self.all.len() / self.halves;
        // SAFETY: the contract above; the sums were zeros at first.
        unsafe {
            add_slots(self.all.ptr(), self.halves, each, 0..each);
            std::slice::from_raw_parts(self.all.ptr(), each)
        }
    }
}

// SAFETY: there is no scratch.
unsafe impl<R: Real> Component<R> for ColumnSums<R> {
    unsafe fn fill(&self) {
        // SAFETY: the contract of the trait.
        unsafe { self.all.zeroed() };
    }

    unsafe fn finish(&self, _scratch: *mut R, member: &Member<'_>) {
        if let Some(bar) = self.bar.filter(|_| member.id == 0) {
            // SAFETY: the contract of the trait; the array has as many numbers as the sums columns.
            unsafe { bar.0.copy_from_nonoverlapping(self.total().as_ptr(), self.width) }
        }
    }
}
