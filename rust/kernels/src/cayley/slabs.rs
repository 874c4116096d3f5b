//! A square matrix whose columns are dealt to the members of a call, those of each in memory of its own.
//!
//! In columns of one row-major matrix two products take a tenth longer at n = 100 to 1000, also where members share no
//! cache line: presumably the prefetcher of one core fetches what the other writes.

use std::ops::Range;

/// Columns of a slab come in multiples of this: whole cache lines, and whole panels of a product.
const COLUMNS: usize = 32;

/// n columns in `count` slabs, one behind the other: element (i, j) lies at row i of slab j / width.
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

    /// Slabs of n rows of `width` elements at `data`, where there is room for all of them.
    pub fn new(data: *mut T, n: usize, width: usize) -> Self {
        Slabs { data, n, width }
    }

    /// Distance of the rows of a slab; a multiple of 32.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The columns of slab `id`; none if there are fewer.
    pub fn columns(&self, id: usize) -> Range<usize> {
        (id * self.width).min(self.n)..((id + 1) * self.width).min(self.n)
    }

    /// Where element (i, j) lies; so do those behind it up to the next multiple of 32.
    #[inline(always)]
    pub fn at(&self, i: usize, j: usize) -> *mut T {
        let slab = j / self.width;
        self.data.wrapping_add((slab * self.n + i) * self.width + j - slab * self.width)
    }
}
