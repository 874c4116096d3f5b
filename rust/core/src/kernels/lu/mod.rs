//! P A = L U by elimination with partial pivoting, and what it serves: A^-1 B, A^-H B, A^-1, log |det A|. L is unit lower
//! triangular, U upper triangular; both take the place of A.
//!
//! Columns are halved, so that nearly all work is in deep products:
//!
//! ```text
//! P1 [A11]   [L11]
//!    [A21] = [L21] U11,  [A12; A22] <- P1 [A12; A22],  U12 = L11^-1 A12,  A22 <- A22 - L21 U12,  P2 A22 = L22 U22,  L21 <- P2 L21
//! ```
//!
//! [`BLOCK`] columns are factored by one member, in a copy whose rows stand close together, and are halved on; [`LEAF`] columns
//! are eliminated one by one. Triangular systems are halved likewise. The members share the columns right of a block, and
//! those of right-hand sides, as a product deals them; what a member writes between two barriers it reads again itself.
//!
//! The pivot of a column is the first entry whose |re| + |im| is largest: |L_ij| <= 1, or sqrt 2 for a complex type. A column
//! without a pivot leaves its zeros in L and a zero on the diagonal of U; then P A = L U still, log |det| is -inf, and
//! solutions hold infinities or NaN. So do the factors of a matrix with a NaN or an infinity, whose log |det| is not finite
//! either. Nothing is scaled: where A or what grows out of it overflows, so does the result.

mod elimination;
mod substitution;
#[cfg(test)]
mod tests;

use super::{Operand, Product};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use elimination::Elimination;
use std::iter::from_fn;
use std::ops::Range;
use substitution::Triangular;

/// Columns that one member factors alone.
const BLOCK: usize = 32;
/// Columns of a block that are eliminated one by one; rows of a triangle that are substituted one by one.
const LEAF: usize = 8;
/// Distance of the rows of the copy of a block: whole leaves, and no power of two.
const PITCH: usize = BLOCK + LEAF;
/// Elements of a row that a substitution keeps in registers.
const STRIP: usize = 8;

/// An n x n matrix in memory (rows `ld` apart) with n numbers for the pivots: row i was exchanged with row `pivots[i]`, for
/// i = 0, 1, ...
#[derive(Clone, Copy)]
pub struct Lu<T> {
    /// A, later its factors.
    pub a: *mut T,
    /// Distance of rows.
    pub ld: usize,
    /// Rows and columns.
    pub n: usize,
    /// The rows that the pivots came from.
    pub pivots: *mut usize,
}

impl<T: Scalar> Lu<T> {
    /// Real numbers of scratch of each member.
    pub fn scratch(n: usize) -> usize {
        n * PITCH * T::PARTS + Product::<T>::scratch(n, n)
    }

    /// Replaces A by L and U. Ends with a barrier; the caller puts one before.
    ///
    /// # Safety
    /// The matrix, the pivots (the same for all members) and [`Lu::scratch`] numbers at `scratch` (each member its own)
    /// exist; all members of the call come here.
    pub unsafe fn factor(&self, member: &Member<'_>, scratch: *mut T::Real) {
        let Lu { a, ld, n, pivots } = *self;
        let (panel, scratch) = (scratch.cast::<T>(), scratch.wrapping_add(n * PITCH * T::PARTS));
        // SAFETY: the caller vouches for the memory; the panel has n rows of PITCH elements.
        unsafe { Elimination { member, a, ld, rows: n, pivots, panel, scratch }.columns(0, n) };
    }

    /// log |det A| of the factors.
    ///
    /// # Safety
    /// [`Lu::factor`] has run, and nobody writes.
    pub unsafe fn log_abs_det(&self) -> f64 {
        // SAFETY: the diagonal lies in the matrix.
        let size = |i: usize| unsafe { *self.a.add(i * self.ld + i) }.modulus().f64();
        // the logarithm of a denormal number is anything where these are flushed
        (0..self.n).map(size).map(|size| if size == 0.0 { f64::NEG_INFINITY } else { size.ln() }).sum()
    }

    /// B <- A^-1 B by the factors, for n rows of `columns` numbers at b (rows `ldb` apart). Ends with a barrier; the caller
    /// puts one before.
    ///
    /// # Safety
    /// [`Lu::factor`] has run; the rest as there.
    pub unsafe fn solve(
        &self,
        member: &Member<'_>,
        (b, ldb, columns): (*mut T, usize, usize),
        scratch: *mut T::Real,
    ) {
        let t = Operand::new(self.a.cast_const(), self.ld);
        let l = Triangular { member, t, unit: true, b, ld: ldb, columns, identity: false, scratch };
        // SAFETY: the caller vouches for the memory; every member works on its own columns.
        unsafe {
            exchange(member, b, ldb, columns, (0..self.n).map(|i| (i, *self.pivots.add(i))));
            l.lower(0, self.n);
            Triangular { unit: false, ..l }.upper(0, self.n);
        }
        member.barrier();
    }

    /// B <- A^-H B = P^T L^-H U^-H B, as [`Lu::solve`].
    ///
    /// # Safety
    /// As for [`Lu::solve`].
    pub unsafe fn solve_adjoint(
        &self,
        member: &Member<'_>,
        (b, ldb, columns): (*mut T, usize, usize),
        scratch: *mut T::Real,
    ) {
        let t = Operand::new(self.a.cast_const(), self.ld).h();
        let u = Triangular { member, t, unit: false, b, ld: ldb, columns, identity: false, scratch };
        // SAFETY: as in `solve`.
        unsafe {
            u.lower(0, self.n);
            Triangular { unit: true, ..u }.upper(0, self.n);
            exchange(member, b, ldb, columns, (0..self.n).rev().map(|i| (i, *self.pivots.add(i))));
        }
        member.barrier();
    }

    /// Replaces A by A^-1 = U^-1 L^-1 P; returns log |det A|. Ends with a barrier; the caller puts one before.
    ///
    /// # Safety
    /// n n elements exist at x, the same for all members; the rest as for [`Lu::factor`].
    pub unsafe fn invert(&self, member: &Member<'_>, x: *mut T, scratch: *mut T::Real) -> f64 {
        let Lu { a, ld, n, pivots } = *self;
        let t = Operand::new(a.cast_const(), ld);
        let l = Triangular { member, t, unit: true, b: x, ld: n, columns: n, identity: true, scratch };
        // SAFETY: members write their own columns of X; its rows and A are written behind the barrier. Every member has its
        // scratch, which holds n places: PITCH numbers of four bytes at least for each.
        unsafe {
            self.factor(member, scratch);
            for own in runs(Product::<T>::own(member, n, (0, n))) {
                for i in 0..n {
                    std::ptr::write_bytes(x.add(i * n + own.start), 0, own.len());
                }
                for j in own {
                    *x.add(j * n + j) = T::one();
                }
            }
            l.lower(0, n);
            Triangular { unit: false, identity: false, ..l }.upper(0, n);
            let log = self.log_abs_det();
            member.barrier();
            // column j of X P^T is column places[j] of X P
            let places = scratch.cast::<u32>();
            (0..n).for_each(|j| *places.add(j) = j as u32);
            (0..n).for_each(|j| std::ptr::swap(places.add(j), places.add(*pivots.add(j))));
            for i in member.share(n, 1) {
                for j in 0..n {
                    *a.add(i * ld + *places.add(j) as usize) = *x.add(i * n + j);
                }
            }
            member.barrier();
            log
        }
    }
}

/// Neighbouring ranges joined.
fn runs(ranges: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = Range<usize>> {
    let mut ranges = ranges.peekable();
    from_fn(move || {
        let mut run = ranges.next()?;
        while let Some(next) = ranges.next_if(|next| next.start == run.end) {
            run.end = next.end;
        }
        Some(run)
    })
}

/// Exchanges pairs of rows, one after the other, in this member's columns of a matrix of that many.
unsafe fn exchange<T: Scalar>(
    member: &Member<'_>,
    b: *mut T,
    ld: usize,
    columns: usize,
    pairs: impl Iterator<Item = (usize, usize)> + Clone,
) {
    for own in runs(Product::<T>::own(member, columns, (0, columns))) {
        for (i, j) in pairs.clone().filter(|(i, j)| i != j) {
            let row = |i: usize| b.wrapping_add(i * ld + own.start);
            // SAFETY: two different rows of the matrix that the caller vouches for.
            unsafe { std::ptr::swap_nonoverlapping(row(i), row(j), own.len()) };
        }
    }
}

/// Where a length is halved: at a multiple of `unit`.
fn cut(length: usize, unit: usize) -> usize {
    (length / 2).div_ceil(unit) * unit
}
