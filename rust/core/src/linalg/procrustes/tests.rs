//! A matrix with orthonormal columns is its own nearest one, and the gradient there is a projection; threads change no bit. How near
//! values and gradients are to those of the singular values, test_procrustes.py says.

use super::*;
use crate::scalar::{Real, Scalar};
use crate::testing::{every_type, near, numbers, wide, within_work, written};

/// (batch, m, n): one per lane, more than a group, tall, wide, iterated.
const SIZES: [(usize, usize, usize); 11] = [
    (1, 1, 1),
    (3, 2, 2),
    (37, 3, 3),
    (5, 8, 8),
    (4, 9, 3),
    (4, 2, 7),
    (2, 40, 1),
    (2, 9, 9),
    (1, 70, 40),
    (2, 12, 30),
    (0, 3, 3),
];

fn nearest<T: Scalar>(a: &[T], sizes: (usize, usize, usize)) -> Vec<T> {
    written(a.len(), format!("{sizes:?}"), |out, threads| procrustes(a, sizes, false, out, threads))
}

#[test]
fn the_nearest_matrix_is_its_own_nearest() {
    fn all<T: Scalar>() {
        for sizes @ (batch, m, n) in
            SIZES.into_iter().filter(|&(batch, m, n)| within_work(&[batch, m, n, m.min(n)]))
        {
            let w = nearest(&numbers::<T>(batch * m * n, 3), sizes);
            let tolerance = 20.0 * (m + n) as f64 * T::Real::EPS.f64();
            near(&nearest(&w, sizes), &wide(&w), tolerance, format!("{sizes:?}"));
            // where W is its own nearest, the derivative is a projection
            let pull = |ct: &[T]| {
                written(w.len(), format!("{sizes:?}"), |bar, threads| {
                    procrustes_vjp((&w, &w, ct), sizes, false, bar, threads)
                })
            };
            let bar = pull(&numbers(w.len(), 7));
            near(&pull(&bar), &wide(&bar), tolerance, format!("gradient of {sizes:?}"));
        }
    }
    every_type!(all());
}
