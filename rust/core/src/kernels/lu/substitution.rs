//! Triangular systems with many right-hand sides: halves, coupled by a product, down to [`LEAF`] rows that are
//! substituted one by one.

use super::{BLOCK, LEAF, STRIP, cut};
use crate::kernels::{Operand, Product};
use crate::parallel::Member;
use crate::scalar::Scalar;
use num_traits::{Float, One};
use std::ops::Range;

/// X <- T^-1 X for a triangular T.
#[derive(Clone, Copy)]
pub(super) struct Triangular<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub t: Operand<T>,
    /// The diagonal is taken as ones, whatever memory holds.
    pub unit: bool,
    pub b: *mut T,
    pub ld: usize,
    pub columns: usize,
    /// X starts as the identity: row i is zero after column i.
    pub identity: bool,
    pub scratch: *mut T::Real,
}

impl<T: Scalar> Triangular<'_, T> {
    fn row(&self, i: usize) -> *mut T {
        self.b.wrapping_add(i * self.ld)
    }

    fn cut(length: usize) -> usize {
        cut(length, if length > BLOCK { BLOCK } else { LEAF })
    }

    /// The end of the columns that the rows before `row` reach, a multiple of 32.
    fn end(&self, row: usize) -> usize {
        if self.identity { row.next_multiple_of(32).min(self.columns) } else { self.columns }
    }

    /// Rows r0..r1 of a lower triangle.
    pub unsafe fn lower(&self, r0: usize, r1: usize) {
        // SAFETY: the triangle and its right-hand sides have these rows.
        unsafe {
            if r1 - r0 <= LEAF {
                return self.substitute(r0, r1, true);
            }
            let mid = r0 + Self::cut(r1 - r0);
            self.lower(r0, mid);
            self.update(mid..r1, r0..mid);
            self.lower(mid, r1);
        }
    }

    /// Rows r0..r1 of an upper triangle.
    pub unsafe fn upper(&self, r0: usize, r1: usize) {
        // SAFETY: the triangle and its right-hand sides have these rows.
        unsafe {
            if r1 - r0 <= LEAF {
                return self.substitute(r0, r1, false);
            }
            let mid = r0 + Self::cut(r1 - r0);
            self.upper(mid, r1);
            self.update(r0..mid, mid..r1);
            self.upper(r0, mid);
        }
    }

    /// X_rows <- X_rows - T X_solved
    unsafe fn update(&self, rows: Range<usize>, solved: Range<usize>) {
        let end = self.end(solved.end);
        let (t, x) =
            (self.t.at(rows.start, solved.start), Operand::new(self.row(solved.start).cast_const(), self.ld));
        let size = (rows.len(), self.columns, solved.len());
        let product = Product::new(size, t, x, self.row(rows.start), self.ld).alpha(-1.0).add();
        // SAFETY: the rows of X are disjoint, and T and X do not overlap.
        unsafe { product.columns((0, end)).run(self.member, self.scratch) };
    }

    /// At most [`LEAF`] rows, one after another.
    unsafe fn substitute(&self, r0: usize, r1: usize, lower: bool) {
        let n = r1 - r0;
        let mut t = [[T::default(); LEAF]; LEAF];
        let mut divisors = [Divisor::new(T::one()); LEAF];
        for i in 0..n {
            for k in 0..n {
                // SAFETY: the block lies in T.
                let z = unsafe { *self.t.at(r0 + i, r0 + k).data };
                t[i][k] = if self.t.conj { z.conj() } else { z };
            }
            divisors[i] = Divisor::new(t[i][i]);
        }
        let end = self.end(r1);
        for c in (0..end).step_by(STRIP) {
            // SAFETY: the columns from c on lie in X.
            unsafe {
                let x = self.row(r0).add(c);
                if end - c >= STRIP {
                    self.strip(x, n, &t, &divisors, lower, STRIP);
                } else {
                    self.strip(x, n, &t, &divisors, lower, end - c);
                }
            }
        }
    }

    /// [`Triangular::substitute`] for the first `live` of [`STRIP`] columns.
    #[inline(always)]
    unsafe fn strip(
        &self,
        x: *mut T,
        n: usize,
        t: &[[T; LEAF]; LEAF],
        divisors: &[Divisor<T>; LEAF],
        lower: bool,
        live: usize,
    ) {
        let load = |i: usize| {
            let mut row = [T::default(); STRIP];
            // SAFETY: each row has `live` columns.
            unsafe { std::ptr::copy_nonoverlapping(x.add(i * self.ld), row.as_mut_ptr(), live) };
            row
        };
        for step in 0..n {
            let i = if lower { step } else { n - 1 - step };
            let mut sum = load(i);
            for k in if lower { 0..i } else { i + 1..n } {
                let (f, row) = (t[i][k], load(k));
                for c in 0..STRIP {
                    sum[c] -= f * row[c];
                }
            }
            if !self.unit {
                sum = sum.map(|x| divisors[i].divide(x));
            }
            // SAFETY: each row has `live` columns.
            unsafe { std::ptr::copy_nonoverlapping(sum.as_ptr(), x.add(i * self.ld), live) };
        }
    }
}

/// Division by one number; of complex ones by Smith's formula, where |z|^2 neither overflows nor underflows.
#[derive(Clone, Copy)]
pub(super) struct Divisor<T: Scalar> {
    re: T::Real,
    im: T::Real,
    by: T::Real,
}

impl<T: Scalar> Divisor<T> {
    pub fn new(z: T) -> Self {
        let (x, y, one) = (z.re(), z.im(), T::Real::one());
        if T::PARTS == 1 {
            Divisor { re: one, im: y, by: x }
        } else if Float::abs(x) >= Float::abs(y) {
            Divisor { re: one, im: y / x, by: x + y * (y / x) }
        } else {
            Divisor { re: x / y, im: one, by: x * (x / y) + y }
        }
    }

    #[inline(always)]
    pub fn divide(&self, z: T) -> T {
        if T::PARTS == 1 {
            return T::real(z.re() / self.by);
        }
        let (re, im) = (z.re() * self.re + z.im() * self.im, z.im() * self.re - z.re() * self.im);
        T::new(re / self.by, im / self.by)
    }
}
