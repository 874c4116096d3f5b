//! The inverse of one matrix by LU with partial pivoting, for what elimination without pivoting cannot do.

use super::Buffer;
use super::lu::Lu;
use crate::parallel::Member;
use crate::scalar::Scalar;

/// Replaces the row-major n x n matrix by its inverse, on one thread; returns log |det| of it, which is finite unless the
/// matrix is singular, holds a NaN or an infinity, or overflows: then the inverse is of no use.
pub fn invert_pivoted<T: Scalar<Real = f64>>(m: &mut [T], n: usize) -> f64 {
    assert!(n.checked_mul(n) == Some(m.len()), "{} elements are no {n} x {n} matrix", m.len());
    let inverse = n * n * T::PARTS;
    // one allocation, in numbers of f64: the inverse, as many pivots as rows, the scratch
    let memory = Buffer::<f64>::scratch(inverse + n + Lu::<T>::scratch(n));
    let pivots = memory.ptr().wrapping_add(inverse);
    let lu = Lu { a: m.as_mut_ptr(), ld: n, n, pivots: pivots.cast::<usize>() };
    // SAFETY: the matrix has n n elements, and a pivot needs no more room than an f64.
    Member::alone(|member| unsafe { lu.invert(member, memory.ptr().cast(), pivots.wrapping_add(n)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::c64;

    /// M of scattered numbers with small leading minors, times its inverse, is I.
    fn check<W: Scalar<Real = f64>>() {
        for n in [1, 2, 3, 5, 8, 17, 40, 100] {
            let number = |e: usize| ((e * e * 7 + e * 13 + 5) % 101) as f64 / 50.0 - 1.0;
            let m: Vec<W> = (0..n * n)
                .map(|e| if e == 0 { W::real(1e-9) } else { W::new(number(e), number(3 * e + 1)) })
                .collect();
            let mut s = m.clone();
            let log = invert_pivoted(&mut s, n);
            let again = invert_pivoted(&mut s.clone(), n);
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
