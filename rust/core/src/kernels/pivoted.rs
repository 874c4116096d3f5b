//! The inverse of one matrix in double precision by LU with partial pivoting, for what elimination without pivoting
//! cannot do. Denormal numbers are let through: faer keeps the index of a pivot in the bits of a float while it searches,
//! and where denormals are flushed every complex pivot is the first row.

use crate::parallel;
use crate::scalar::{Scalar, c64};
use faer::MatRef;
use faer::linalg::solvers::{DenseSolveCore, PartialPivLu};
use faer::traits::ComplexField;

/// Replaces the row-major n x n matrix by its inverse, on one thread; returns log |det| of it. Not for NaN or infinite
/// entries.
pub fn invert_pivoted<W: Scalar<Real = f64>>(m: &mut [W], n: usize) -> f64 {
    let data = m.as_mut_ptr();
    // SAFETY: W is f64 or c64, told apart by the number of its parts; both have these layouts.
    unsafe {
        if W::PARTS == 1 {
            invert(std::slice::from_raw_parts_mut(data.cast::<f64>(), m.len()), n, |x| x.abs())
        } else {
            invert(std::slice::from_raw_parts_mut(data.cast::<c64>(), m.len()), n, |x| x.modulus())
        }
    }
}

fn invert<E: ComplexField + Copy>(m: &mut [E], n: usize, modulus: impl Fn(E) -> f64) -> f64 {
    let (inverse, log) = parallel::with_denormals(|| {
        let lu = PartialPivLu::new(MatRef::from_row_major_slice(m, n, n));
        let log = (0..n).map(|i| modulus(lu.U()[(i, i)]).ln()).sum();
        (lu.inverse(), log)
    });
    for i in 0..n {
        for j in 0..n {
            m[i * n + j] = inverse[(i, j)];
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M of scattered numbers with small leading minors, times its inverse, is I.
    fn check<W: Scalar<Real = f64>>() {
        for n in [1, 2, 3, 5, 8, 17, 40, 100] {
            let number = |e: usize| ((e * e * 7 + e * 13 + 5) % 101) as f64 / 50.0 - 1.0;
            let m: Vec<W> = (0..n * n)
                .map(|e| if e == 0 { W::real(1e-9) } else { W::new(number(e), number(3 * e + 1)) })
                .collect();
            let mut s = m.clone();
            let log = parallel::Member::alone(|_| invert_pivoted(&mut s, n));
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
