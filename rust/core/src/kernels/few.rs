//! Tests of products of few rows with a matrix in place.

use crate::scalar::Real;
use isometry_kernels::pack::Operand;
use isometry_kernels::recurrence::{Affine, FEW};
use isometry_kernels::tile::Term;

#[test]
fn whole_and_partial_vectors() {
    of::<f32>();
    of::<f64>();
}

/// Arrays of just so many numbers, for tools that see each access.
fn of<R: Real>() {
    for (k, n) in [(1, 1), (15, 5), (16, 16), (17, 33), (40, 20)] {
        for rows in 1..=FEW {
            let number = |i: usize| R::of(((7 * i + 3) % 11) as f64 - 5.0);
            let [a, b, base]: [Vec<R>; 3] =
                [rows * k, n * k, rows * n].map(|len| (0..len).map(number).collect());
            let mut out = vec![R::of(f64::NAN); rows * n];
            let mut map = Affine::new(n, rows, out.as_mut_ptr());
            map.terms[1] = Term::rows(a.as_ptr(), k, k, std::ptr::null());
            map.matrices[1] = Operand::new(b.as_ptr(), k).t();
            map.in_place[1] = true;
            map.add = base.as_ptr();
            // SAFETY: the rows and columns exist.
            unsafe { map.run(0..rows, 0..n) }
            for (i, &found) in out.iter().enumerate() {
                let (row, column) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
                let expected = base[i] + row.iter().zip(column).map(|(&a, &b)| a * b).sum::<R>();
                assert_eq!(found, expected, "{k} {n} {rows}"); // small integers: no rounding
            }
        }
    }
}
