//! The factorisation against its definition, its gradient against finite differences.

use super::super::{Order, Reflectors, apply, geqrf, geqrf_vjp};
use super::{agrees, dot, moved};
use crate::scalar::{Real, Scalar, c32, c64};
use crate::testing::{Guarded, fill, near, numbers, wide};

type Sizes = (usize, usize, usize);

const SIZES: [Sizes; 12] = [
    (1, 1, 1),
    (2, 5, 5),
    (3, 7, 3),
    (2, 3, 6),
    (1, 4, 0),
    (0, 3, 2),
    (2, 33, 20),
    (1, 40, 70),
    (1, 17, 9),
    (2, 16, 16),
    (1, 8, 30),
    (5, 12, 8),
];

fn factored<T: Scalar>(x: &[T], (batch, m, n): Sizes, threads: usize) -> (Vec<T>, Vec<T>) {
    let (mut a, mut tau) = (Guarded::new(x.len()), Guarded::new(batch * m.min(n)));
    geqrf(x, (batch, m, n), a.inner(), tau.inner(), threads).unwrap();
    (a.take(), tau.take())
}

/// Q R is the matrix, R has a real diagonal of LAPACK's sign, tau that of unitary reflections.
fn definition<T: Scalar>(x: &[T], sizes: Sizes, threads: usize) {
    let (batch, m, n) = sizes;
    let k = m.min(n);
    let (a, tau) = factored(x, sizes, threads);
    let mut vectors = Vec::new();
    let mut r = vec![T::default(); a.len()];
    for b in 0..batch {
        for i in 0..m {
            vectors.extend_from_slice(&a[(b * m + i) * n..][..k]);
            for j in i..n {
                r[(b * m + i) * n + j] = a[(b * m + i) * n + j];
            }
        }
    }
    let q = Reflectors::new(&vectors, &tau, batch, m, k).unwrap();
    let mut back = vec![T::default(); a.len()];
    apply(&q, &r, Order { left: true, adjoint: false, columns: n }, &mut back, 1).unwrap();
    let tolerance = 30.0 * (m as f64).sqrt() * T::Real::EPS.f64();
    near(&back, &wide(x), tolerance, format!("{sizes:?} on {threads}"));
    for b in 0..batch {
        for j in 0..k {
            let (t, d) = (tau[b * k + j].widen(), a[(b * m + j) * n + j]);
            let norm2: f64 = 1.0 + (j + 1..m).map(|i| a[(b * m + i) * n + j].abs2().f64()).sum::<f64>();
            assert!((2.0 * t.re() - t.abs2() * norm2).abs() <= tolerance, "{sizes:?} column {j}: tau {t:?}");
            assert!(d.im().f64() == 0.0 || t.abs2() == 0.0);
        }
    }
}

#[test]
fn factors_multiply_to_the_matrix() {
    for sizes @ (batch, m, n) in SIZES {
        for threads in [1, 3] {
            definition::<f32>(&numbers(batch * m * n, 3), sizes, threads);
            definition::<f64>(&numbers(batch * m * n, 4), sizes, threads);
            definition::<c32>(&numbers(batch * m * n, 5), sizes, threads);
            definition::<c64>(&numbers(batch * m * n, 6), sizes, threads);
        }
    }
}

#[test]
fn columns_of_any_size_are_factored() {
    fn check<T: Scalar>(tiny: f64, huge: f64) {
        for sizes @ (_, m, n) in [(1, 6, 4), (1, 20, 12)] {
            let mut x: Vec<T> = fill(m * n, 1.0, 9);
            for i in 0..m {
                let row = &mut x[i * n..(i + 1) * n];
                row[1] = T::zero();
                if i > 0 {
                    row[0] = T::zero();
                }
                row[2] = row[2].scale(T::Real::of(tiny));
                row[3] = row[3].scale(T::Real::of(huge));
            }
            let (a, tau) = factored(&x, sizes, 1);
            assert!(a.iter().chain(&tau).all(|x| x.finite()));
            // each column by itself, in units of its size
            let size = |j: usize| (0..m).map(|i| x[i * n + j].modulus()).map(Real::f64).fold(0.0, f64::max);
            for j in 0..n {
                let norm = |a: &[T], rows: usize| {
                    let own = size(j).max(1e-300);
                    (0..rows.min(m)).map(|i| (a[i * n + j].modulus().f64() / own).powi(2)).sum::<f64>().sqrt()
                };
                let (before, after) = (norm(&x, m), norm(&a, j + 1));
                assert!(
                    (before - after).abs() <= 1e3 * T::Real::EPS.f64(),
                    "{sizes:?} {j}: {before} {after}"
                );
            }
        }
    }
    check::<f32>(1e-30, 1e30);
    check::<c32>(1e-30, 1e30);
    check::<f64>(1e-160, 1e150);
    check::<c64>(1e-160, 1e150);
}

/// Along a random direction.
fn gradient<T: Scalar>(sizes: Sizes) {
    let (batch, m, n) = sizes;
    let x: Vec<T> = numbers(batch * m * n, 11);
    let (ct, dx): (Vec<T>, Vec<T>) = (numbers(x.len(), 12), numbers(x.len(), 13));
    let tau_ct: Vec<T> = numbers(batch * m.min(n), 14);
    let (a, tau) = factored(&x, sizes, 1);
    let [bar, others @ ..] = [1, 2, 3, 8, 16, 64].map(|threads| {
        let mut bar = Guarded::new(x.len());
        geqrf_vjp((&a, &tau), (&ct, &tau_ct), sizes, bar.inner(), threads).unwrap();
        bar.take()
    });
    assert!(others.iter().all(|other| *other == bar), "{sizes:?} on other threads");
    let value = |h: f64| {
        let (a, tau) = factored(&moved(&x, &dx, h), sizes, 1);
        dot(&ct, &a) + dot(&tau_ct, &tau)
    };
    agrees(dot(&bar, &dx), value, 1e-6, 1e-4, &format!("{sizes:?}"));
}

#[test]
fn the_gradient_is_the_difference() {
    for sizes in SIZES {
        gradient::<f64>(sizes);
        gradient::<c64>(sizes);
    }
}

#[test]
fn nothing_is_infinite_where_a_column_is_zero() {
    let sizes @ (_, m, n) = (1, 5, 3);
    let mut x: Vec<f64> = numbers(m * n, 3);
    (0..m).for_each(|i| x[i * n + 1] = 0.0);
    let (a, tau) = factored(&x, sizes, 1);
    let mut bar = vec![0.0; m * n];
    geqrf_vjp((&a, &tau), (&numbers(m * n, 4), &numbers(n, 5)), sizes, &mut bar, 1).unwrap();
    assert!(bar.iter().all(|x| x.is_finite()));
}
