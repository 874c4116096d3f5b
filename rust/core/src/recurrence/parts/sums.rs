//! Sums of columns over all rows of a backward pass, those of each half of the batch apart.

use super::super::time::chunk::Chunk;
use crate::kernels::add_slots;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use isometry_kernels::activation::Columns;
use std::ops::Range;

/// Sums of `width` columns for each half; empty where they are not wanted.
#[derive(Clone, Copy)]
pub struct ColumnSums<R> {
    all: Region<R>,
    halves: usize,
    width: usize,
}

impl<R: Real> ColumnSums<R> {
    /// Memory for them.
    pub fn carve(arena: &mut Arena, wanted: bool, halves: usize, width: usize) -> Self {
        ColumnSums { all: arena.take(&[usize::from(wanted), halves, width]), halves, width }
    }

    /// Whether they are not wanted.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Zeros.
    ///
    /// # Safety
    /// The memory lives, and nobody else uses it.
    pub unsafe fn fill(&self) {
        // SAFETY: the contract above.
        unsafe { self.all.zeroed() };
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
    pub unsafe fn finish<'s>(&self) -> &'s [R] {
        let each = self.all.len() / self.halves;
        // SAFETY: the contract above; the sums were zeros at first.
        unsafe {
            add_slots(self.all.ptr(), self.halves, each, 0..each);
            std::slice::from_raw_parts(self.all.ptr(), each)
        }
    }
}
