//! A square matrix whose columns are distributed over the members of a call, those of each in its own memory.
//!
//! With columns of a single row-major matrix two products take a tenth longer at n = 100 to 1000, even if members share
//! no cache line: presumably the prefetcher of one core fetches lines that another writes.

use std::ops::Range;

/// Columns of a slab are a multiple of this: whole cache lines, and whole panels of a product.
const COLUMNS: usize = 32;

/// n columns in `count` contiguous slabs: element (i, j) is in row i of slab j / width.
#[derive(Clone, Copy)]
pub struct Slabs<T> {
    data: *mut T,
    n: usize,
    width: usize,
}

impl<T> Slabs<T> {
    /// Columns of each of `count` slabs.
    pub fn width_of(n: usize, count: usize) -> usize {
        n.div_ceil(COLUMNS).div_ceil(count) * COLUMNS
    }

    /// Slabs of n rows of `width` elements at `data`, which has room for all of them.
    pub fn new(data: *mut T, n: usize, width: usize) -> Self {
        Slabs { data, n, width }
    }

    /// Row stride of a slab; a multiple of 32.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The columns of slab `id`; empty if there are fewer slabs.
    pub fn columns(&self, id: usize) -> Range<usize> {
        (id * self.width).min(self.n)..((id + 1) * self.width).min(self.n)
    }

    /// Pointer to element (i, j); valid for the elements after it up to the next multiple of 32.
    #[inline(always)]
    pub fn at(&self, i: usize, j: usize) -> *mut T {
        let slab = j / self.width;
        self.data.wrapping_add((slab * self.n + i) * self.width + j - slab * self.width)
    }
}
