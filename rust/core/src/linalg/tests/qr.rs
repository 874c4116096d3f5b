//! The factorisation against its definition, its gradient against finite differences.

use super::super::{Order, Reflectors, apply, geqrf, geqrf_vjp};
use super::{agrees, dot, moved};
use crate::scalar::{Real, Scalar, c32, c64};
use crate::testing::{Guarded, near, numbers, wide, within_work};

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

fn tried() -> impl Iterator<Item = Sizes> {
    SIZES.into_iter().filter(|&(batch, m, n)| within_work(&[batch, m, n]))
}

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
    for sizes @ (batch, m, n) in tried() {
        for threads in [1, 3] {
            definition::<f32>(&numbers(batch * m * n, 3), sizes, threads);
            definition::<f64>(&numbers(batch * m * n, 4), sizes, threads);
            definition::<c32>(&numbers(batch * m * n, 5), sizes, threads);
            definition::<c64>(&numbers(batch * m * n, 6), sizes, threads);
        }
    }
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
    for sizes in tried() {
        gradient::<f64>(sizes);
        gradient::<c64>(sizes);
    }
}
