//! P A = L U by elimination with partial pivoting, and its uses: A^-1 and log |det A|. L is unit lower triangular, U upper
//! triangular; both overwrite A.
//!
//! Columns are halved, so that nearly all work is in deep products:
//!
//! ```text
//! P1 [A11]   [L11]
//!    [A21] = [L21] U11,  [A12; A22] <- P1 [A12; A22],  U12 = L11^-1 A12,  A22 <- A22 - L21 U12,  P2 A22 = L22 U22,  L21 <- P2 L21
//! ```
//!
//! [`BLOCK`] columns are factored by one member, in a compact copy, and are halved further; [`LEAF`] columns are
//! eliminated one by one. Triangular systems are halved likewise. Members share the columns right of a block, and those
//! of right-hand sides, as in a product; between two barriers a member reads only what it wrote itself.
//!
//! The pivot of a column is the first entry whose |re| + |im| is largest: |L_ij| <= 1, or sqrt 2 for a complex type. A
//! column without a pivot leaves zeros in L and a zero on the diagonal of U; P A = L U still holds, log |det| is -inf,
//! and the inverse contains infinities or NaN. So do the factors of a matrix with NaN or infinity, and its log |det| is not
//! finite. There is no scaling: if A or an intermediate result overflows, so does the result.

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
/// Columns of a block that are eliminated one by one; rows of a triangle in a substitution.
const LEAF: usize = 8;
/// Row stride of the copy of a block: whole leaves, and not a power of two.
const PITCH: usize = BLOCK + LEAF;
/// Elements of a row that a substitution keeps in registers.
const STRIP: usize = 8;

/// An n x n matrix in memory (row stride `ld`) with n pivots: row i was exchanged with row `pivots[i]`, i = 0, 1, ...
#[derive(Clone, Copy)]
pub struct Lu<T> {
    /// A, later its factors.
    pub a: *mut T,
    /// Row stride.
    pub ld: usize,
    /// Rows and columns.
    pub n: usize,
    /// Rows of the pivots.
    pub pivots: *mut usize,
}

impl<T: Scalar> Lu<T> {
    /// Real numbers of scratch per member.
    pub fn scratch(n: usize) -> usize {
        n * PITCH * T::PARTS + Product::<T>::scratch(n, n)
    }

    /// Replaces A by L and U. Ends with a barrier; the caller must place one before.
    ///
    /// # Safety
    /// The matrix, the pivots (both common to all members) and [`Lu::scratch`] numbers at `scratch` (separate for each
    /// member) exist; all members of the call run this.
    pub unsafe fn factor(&self, member: &Member<'_>, scratch: *mut T::Real) {
        let Lu { a, ld, n, pivots } = *self;
        let (panel, scratch) = (scratch.cast::<T>(), scratch.wrapping_add(n * PITCH * T::PARTS));
        // SAFETY: the contract above; the panel has n rows of PITCH elements.
        unsafe { Elimination { member, a, ld, rows: n, pivots, panel, scratch }.columns(0, n) };
    }

    /// log |det A| of the factors.
    ///
    /// # Safety
    /// [`Lu::factor`] has run, and the factors are not being written.
    pub unsafe fn log_abs_det(&self) -> f64 {
        // SAFETY: the diagonal lies in the matrix.
        let size = |i: usize| unsafe { *self.a.add(i * self.ld + i) }.modulus().f64();
        // the logarithm of a denormal number is unreliable while denormals are flushed
        (0..self.n).map(size).map(|size| if size == 0.0 { f64::NEG_INFINITY } else { size.ln() }).sum()
    }

    /// Replaces A by A^-1 = U^-1 L^-1 P; returns log |det A|. Ends with a barrier; the caller must place one before.
    ///
    /// # Safety
    /// x has n n elements, common to all members; otherwise as for [`Lu::factor`].
    pub unsafe fn invert(&self, member: &Member<'_>, x: *mut T, scratch: *mut T::Real) -> f64 {
        let Lu { a, ld, n, pivots } = *self;
        let t = Operand::new(a.cast_const(), ld);
        let l = Triangular { member, t, unit: true, b: x, ld: n, columns: n, identity: true, scratch };
        // SAFETY: members write their own columns of X; after the barrier X is only read, and each member writes its
        // rows of A. Each member's scratch holds n places: PITCH numbers of at least four bytes per row.
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

/// Joins adjacent ranges.
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

/// Exchanges pairs of rows, one after another, in this member's columns of a matrix with `columns` columns.
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
            // SAFETY: two different rows of the matrix.
            unsafe { std::ptr::swap_nonoverlapping(row(i), row(j), own.len()) };
        }
    }
}

/// Where a length is halved: a multiple of `unit`.
fn cut(length: usize, unit: usize) -> usize {
    (length / 2).div_ceil(unit) * unit
}
