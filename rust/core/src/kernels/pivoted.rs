//! The inverse of one matrix by LU with partial pivoting, for matrices that elimination without pivoting does not
//! handle.

use super::lu::Lu;
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};

/// Workspace of the inverse of a matrix.
#[derive(Clone, Copy)]
pub struct Pivoted {
    inverse: Region<f64>,
    pivots: Region<usize>,
    scratch: Region<f64>,
}

impl Pivoted {
    /// For n x n matrices of T, or of real numbers.
    pub fn carve<T: Scalar<Real = f64>>(arena: &mut Arena, n: usize) -> Self {
        Pivoted {
            inverse: arena.take(&[n, n, T::PARTS]),
            pivots: arena.take(&[n]),
            scratch: arena.take(&[Lu::<T>::scratch(n)]),
        }
    }

    /// Replaces the row-major n x n matrix by its inverse, on one thread; returns log |det|, which is finite unless the
    /// matrix is singular, contains NaN or infinity, or overflows: then the inverse is meaningless.
    ///
    /// # Safety
    /// The memory of the room is alive, and not otherwise in use.
    pub unsafe fn invert<T: Scalar<Real = f64>>(self, m: &mut [T], n: usize) -> f64 {
        let size = n * n;
        assert!(
            size == m.len() && size * T::PARTS <= self.inverse.len(),
            "{} elements of {n} x {n}",
            m.len()
        );
        assert!(Lu::<T>::scratch(n) <= self.scratch.len() && n <= self.pivots.len());
        let lu = Lu { a: m.as_mut_ptr(), ld: n, n, pivots: self.pivots.ptr() };
        // SAFETY: the matrix has n n elements; the room was checked to be large enough.
        Member::alone(|member| unsafe { lu.invert(member, self.inverse.ptr().cast(), self.scratch.ptr()) })
    }
}
