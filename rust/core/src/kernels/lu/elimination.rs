//! The elimination: columns are halved down to blocks, a block's copy down to leaves, a leaf goes column by column.

use super::substitution::{Divisor, Triangular};
use super::{BLOCK, LEAF, PITCH, cut};
use crate::kernels::{Operand, Product};
use crate::parallel::Member;
use crate::scalar::Scalar;
use isometry_kernels::stop::poll;
use num_traits::{Float, Zero};
use std::ops::Range;

/// The elimination of the columns of a matrix with at least as many rows.
pub(super) struct Elimination<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub a: *mut T,
    pub ld: usize,
    pub rows: usize,
    pub pivots: *mut usize,
    /// Room for the copy of a block; null inside that copy, where the recursion ends with a leaf.
    pub panel: *mut T,
    pub scratch: *mut T::Real,
}

impl<T: Scalar> Elimination<'_, T> {
    fn at(&self, i: usize, j: usize) -> *mut T {
        self.a.wrapping_add(i * self.ld + j)
    }

    /// Factors columns j0..j1 below row j0; row exchanges apply to these columns only.
    pub unsafe fn columns(&self, j0: usize, j1: usize) {
        let unit = if self.panel.is_null() { LEAF } else { BLOCK };
        // SAFETY: every block lies in the matrix.
        unsafe {
            if j1 - j0 <= unit {
                return if self.panel.is_null() { self.leaf(j0, j1) } else { self.block(j0, j1) };
            }
            let mid = j0 + cut(j1 - j0, unit);
            self.columns(j0, mid);
            self.right(j0, mid, j1);
            self.columns(mid, j1);
            self.exchange(mid..j1, j0..mid);
        }
    }

    /// Exchanges rows of `columns` by the pivots `range`, one after another.
    unsafe fn exchange(&self, range: Range<usize>, columns: Range<usize>) {
        for i in range {
            // SAFETY: the pivots are rows of the matrix; two different ones do not overlap.
            unsafe {
                let other = *self.pivots.add(i);
                if i != other {
                    let row = |i| self.at(i, columns.start);
                    std::ptr::swap_nonoverlapping(row(i), row(other), columns.len());
                }
            }
        }
    }

    /// Updates columns mid..j1 with the factored columns j0..mid.
    unsafe fn right(&self, j0: usize, mid: usize, j1: usize) {
        let Elimination { member, ld, scratch, .. } = *self;
        let (columns, b) = (j1 - mid, self.at(j0, mid));
        let t = |i: usize| Operand::new(self.at(i, j0).cast_const(), ld);
        // SAFETY: the blocks lie in the matrix and are disjoint.
        unsafe {
            self.exchange(j0..mid, mid..j1);
            let l = Triangular { member, t: t(j0), unit: true, b, ld, columns, identity: false, scratch };
            l.lower(0, mid - j0);
            let size = (self.rows - mid, columns, mid - j0);
            let u = Operand::new(b.cast_const(), ld);
            let product = Product::new(size, t(mid), u, self.at(mid, mid), ld).alpha(-1.0).add();
            product.columns((0, columns)).run(member, scratch);
        }
    }

    /// At most [`BLOCK`] columns, in a copy, padded with zeros to whole leaves.
    unsafe fn block(&self, j0: usize, j1: usize) {
        let (rows, width) = (self.rows - j0, j1 - j0);
        let (pivots, panel) = (self.pivots.wrapping_add(j0), std::ptr::null_mut());
        let copy = Elimination { a: self.panel, ld: PITCH, rows, pivots, panel, ..*self };
        // SAFETY: the panel has room for all rows; matrix and copy are disjoint.
        unsafe {
            for i in 0..rows {
                std::ptr::copy_nonoverlapping(self.at(j0 + i, j0), copy.at(i, 0), width);
                std::ptr::write_bytes(copy.at(i, width), 0, width.next_multiple_of(LEAF) - width);
            }
            copy.columns(0, width);
            for i in 0..rows {
                std::ptr::copy_nonoverlapping(copy.at(i, 0), self.at(j0 + i, j0), width);
            }
            (j0..j1).for_each(|i| *self.pivots.add(i) += j0);
        }
    }

    /// At most [`LEAF`] columns, one by one; missing ones are zero and stay zero.
    unsafe fn leaf(&self, j0: usize, j1: usize) {
        let row = |i: usize| self.at(i, j0).cast::<[T; LEAF]>();
        poll(LEAF * LEAF * T::PARTS * (self.rows - j0));
        for j in 0..j1 - j0 {
            let top = j0 + j;
            // SAFETY: the rows lie in the matrix, LEAF columns wide; the rows below exclude the pivot row.
            unsafe {
                let pivot = self.largest(top, top);
                *self.pivots.add(top) = pivot;
                std::ptr::swap(row(top), row(pivot));
                let mut u = *row(top);
                if size(u[j]) == T::Real::zero() {
                    continue;
                }
                let divisor = Divisor::new(u[j]);
                u[..=j].fill(T::default());
                for i in top + 1..self.rows {
                    let x = &mut *row(i);
                    let l = divisor.divide(x[j]);
                    for c in 0..LEAF {
                        x[c] -= l * u[c];
                    }
                    x[j] = l;
                }
            }
        }
    }

    /// The row of the largest entry of column j from row `top` on, the first of equal ones.
    unsafe fn largest(&self, top: usize, j: usize) -> usize {
        // SAFETY: the entries lie in the matrix.
        let size = |i: usize| unsafe { size(*self.at(i, j)) };
        let (mut at, mut most) = (top, size(top));
        for i in top + 1..self.rows {
            let size = size(i);
            if size > most {
                (at, most) = (i, size);
            }
        }
        at
    }
}

/// |re| + |im|
fn size<T: Scalar>(z: T) -> T::Real {
    Float::abs(z.re()) + Float::abs(z.im())
}
