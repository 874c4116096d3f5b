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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::c64;
    use crate::scratch::Scratch;

    /// M of pseudo-random numbers with small leading minors, times its inverse, is I.
    fn check<W: Scalar<Real = f64>>() {
        for n in [1, 2, 3, 5, 8, 17, 40, 100] {
            let number = |e: usize| ((e * e * 7 + e * 13 + 5) % 101) as f64 / 50.0 - 1.0;
            let m: Vec<W> = (0..n * n)
                .map(|e| if e == 0 { W::real(1e-9) } else { W::new(number(e), number(3 * e + 1)) })
                .collect();
            let mut s = m.clone();
            let room = Scratch::new(|arena| Pivoted::carve::<W>(arena, n)).unwrap();
            // SAFETY: the room is not otherwise in use.
            let (log, again) = unsafe {
                let log = room.invert(&mut s, n);
                (log, room.invert(&mut s.clone(), n))
            };
            assert!((log + again).abs() < 1e-6, "n {n}: log |det| {log}, of the inverse {again}");
            for i in 0..n {
                for j in 0..n {
                    let sum: W = (0..n).map(|p| m[i * n + p] * s[p * n + j]).sum();
                    let error = (sum - W::real(f64::from(u8::from(i == j)))).modulus();
                    assert!(error < 1e-9, "n {n} at ({i}, {j}): {error:e}");
                }
            }
        }
    }

    #[test]
    fn inverts_with_small_leading_minors() {
        check::<f64>();
        check::<c64>();
    }
}
