//! The gradient of the factorisation against finite differences; that Q R is the matrix, tests/test_linalg.py says.

use super::super::{geqrf, geqrf_vjp};
use super::{agrees, dot, moved};
use crate::scalar::{Scalar, c32, c64};
use crate::testing::{Guarded, numbers, within_work};

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
    for sizes @ (batch, m, n) in SIZES.into_iter().filter(|&(batch, m, n)| within_work(&[batch, m, n])) {
        gradient::<f64>(sizes);
        gradient::<c64>(sizes);
        // those of single precision stay within their arrays
        factored::<f32>(&numbers(batch * m * n, 3), sizes, 3);
        factored::<c32>(&numbers(batch * m * n, 5), sizes, 3);
    }
}
