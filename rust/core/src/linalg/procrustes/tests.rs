//! A matrix with orthonormal columns is its own nearest one, and gradients are differences; threads change no bit. How near the
//! results are to those of the singular values, test_procrustes.py says.

use super::*;
use crate::scalar::{Real, Scalar, c64};
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

fn nearest<T: Scalar>(a: &[T], sizes: (usize, usize, usize), special: bool) -> Vec<T> {
    written(a.len(), format!("{sizes:?}"), |out, threads| procrustes(a, sizes, special, out, threads))
}

#[test]
fn the_nearest_matrix_is_its_own_nearest() {
    fn all<T: Scalar>() {
        for sizes @ (batch, m, n) in
            SIZES.into_iter().filter(|&(batch, m, n)| within_work(&[batch, m, n, m.min(n)]))
        {
            let w = nearest(&numbers::<T>(batch * m * n, 3), sizes, false);
            let tolerance = 20.0 * (m + n) as f64 * T::Real::EPS.f64();
            near(&nearest(&w, sizes, false), &wide(&w), tolerance, format!("{sizes:?}"));
        }
    }
    every_type!(all());
}

/// The derivative of W along a direction, by central differences, against the gradient.
fn gradient_case<T: Scalar<Real = f64>>(sizes: (usize, usize, usize), special: bool, equal: bool) {
    let (batch, m, n) = sizes;
    let what = format!("{sizes:?} {special} {equal}");
    let mut a: Vec<T> = numbers(batch * m * n, 5);
    if equal {
        a = nearest(&a, sizes, special);
    }
    let (ct, along): (Vec<T>, Vec<T>) = (numbers(a.len(), 7), numbers(a.len(), 9));
    let w = nearest(&a, sizes, special);
    let bar =
        written(a.len(), &what, |bar, threads| procrustes_vjp((&a, &w, &ct), sizes, special, bar, threads));
    let dot = |x: &[T], y: &[T]| x.iter().zip(y).map(|(x, y)| (x.conj() * *y).re()).sum::<f64>();
    let h = 1e-5;
    let moved = |by: f64| {
        let a: Vec<T> = a.iter().zip(&along).map(|(a, d)| *a + d.scale(by)).collect();
        dot(&ct, &nearest(&a, sizes, special))
    };
    let slope = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
    let found = dot(&bar, &along);
    assert!((found - slope).abs() < 1e-7 * slope.abs().max(1.0), "{what}: {found} and {slope}");
}

#[test]
fn gradients_are_those_of_differences() {
    for equal in [false, true] {
        for sizes in
            [(1, 1, 1), (2, 3, 3), (11, 4, 4), (2, 6, 3), (2, 2, 5), (2, 9, 9), (1, 31, 12), (2, 10, 14)]
        {
            gradient_case::<f64>(sizes, false, equal);
            gradient_case::<c64>(sizes, false, equal);
        }
        gradient_case::<f64>((11, 3, 3), true, equal);
        gradient_case::<f64>((2, 2, 2), true, equal);
        gradient_case::<f64>((4, 12, 12), true, equal);
    }
    gradient_case::<f64>((1, 70, 70), false, true);
}
