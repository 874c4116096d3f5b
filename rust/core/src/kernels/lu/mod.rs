//! The inverse of one matrix by elimination with partial pivoting, on one thread, for matrices that elimination without
//! pivoting does not handle: P A = L U, L unit lower triangular, U upper triangular, and A^-1 = U^-1 L^-1 P.
//!
//! Columns are halved, so that nearly all work is in deep products:
//!
//! ```text
//! P1 [A11]   [L11]
//!    [A21] = [L21] U11,  [A12; A22] <- P1 [A12; A22],  U12 = L11^-1 A12,  A22 <- A22 - L21 U12,  P2 A22 = L22 U22,  L21 <- P2 L21
//! ```
//!
//! [`BLOCK`] columns are factored in a compact copy, and are halved further; [`LEAF`] columns are eliminated one by one.
//! Triangular systems are halved likewise.
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
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use elimination::Elimination;
use substitution::Triangular;

/// Columns that are factored in a copy.
const BLOCK: usize = 32;
/// Columns of a block that are eliminated one by one; rows of a triangle in a substitution.
const LEAF: usize = 8;
/// Row stride of the copy of a block: whole leaves, and not a power of two.
const PITCH: usize = BLOCK + LEAF;
/// Elements of a row that a substitution keeps in registers.
const STRIP: usize = 8;

/// Workspace of the inverse of a matrix.
#[derive(Clone, Copy)]
pub struct Pivoted {
    inverse: Region<f64>,
    /// Row i was exchanged with row `pivots[i]`, i = 0, 1, ...
    pivots: Region<usize>,
    places: Region<usize>,
    panel: Region<f64>,
    scratch: Region<f64>,
}

impl Pivoted {
    /// For n x n matrices of T, or of real numbers.
    pub fn carve<T: Scalar<Real = f64>>(arena: &mut Arena, n: usize) -> Self {
        Pivoted {
            inverse: arena.take(&[n, n, T::PARTS]),
            pivots: arena.take(&[n]),
            places: arena.take(&[n]),
            panel: arena.take(&[n, PITCH, T::PARTS]),
            scratch: arena.take(&[Product::<T>::scratch(n, n)]),
        }
    }

    /// Replaces the row-major n x n matrix by its inverse; returns log |det|, which is finite unless the matrix is singular,
    /// contains NaN or infinity, or overflows: then the inverse is meaningless.
    ///
    /// # Safety
    /// The memory of the room is alive, and not otherwise in use.
    pub unsafe fn invert<T: Scalar<Real = f64>>(self, m: &mut [T], n: usize) -> f64 {
        assert!(
            n * n == m.len() && m.len() * T::PARTS <= self.inverse.len() && n <= self.pivots.len(),
            "{} elements of {n} x {n}",
            m.len()
        );
        assert!(Product::<T>::scratch(n, n) <= self.scratch.len());
        let (a, x, pivots) = (m.as_mut_ptr(), self.inverse.ptr().cast::<T>(), self.pivots.ptr());
        let (places, panel, scratch) = (self.places.ptr(), self.panel.ptr().cast(), self.scratch.ptr());
        // SAFETY: the matrix has n n elements; the room was checked to be large enough.
        Member::alone(|member| unsafe {
            Elimination { member, a, ld: n, rows: n, pivots, panel, scratch }.columns(0, n);
            std::ptr::write_bytes(x, 0, n * n);
            (0..n).for_each(|i| *x.add(i * n + i) = T::one());
            let t = Operand::new(a.cast_const(), n);
            let l = Triangular { member, t, unit: true, b: x, ld: n, columns: n, identity: true, scratch };
            l.lower(0, n);
            Triangular { unit: false, identity: false, ..l }.upper(0, n);
            let size = |i: usize| (*a.add(i * n + i)).modulus();
            // the logarithm of a denormal number is unreliable while denormals are flushed
            let log = |size: f64| if size == 0.0 { f64::NEG_INFINITY } else { size.ln() };
            let log = (0..n).map(size).map(log).sum();
            // column j of X is column places[j] of X P
            (0..n).for_each(|j| *places.add(j) = j);
            (0..n).for_each(|j| std::ptr::swap(places.add(j), places.add(*pivots.add(j))));
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                *a.add(i * n + *places.add(j)) = *x.add(i * n + j);
            }
            log
        })
    }
}

/// Where a length is halved: a multiple of `unit`.
fn cut(length: usize, unit: usize) -> usize {
    (length / 2).div_ceil(unit) * unit
}
