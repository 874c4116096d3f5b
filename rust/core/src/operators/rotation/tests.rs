//! Against two reflections multiplied out, and every degenerate pair.

use super::*;
use crate::scalar::Real;
use crate::testing::{every_type, numbers, rows};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(x: &[f64]) -> Vec<f64> {
    x.iter().map(|a| a / dot(x, x).sqrt()).collect()
}

/// H(w) H(ah), w = ah + bh, of unit vectors ah and bh.
fn turned<W: Scalar<Real = f64>>(start: &[f64], end: &[f64]) -> Vec<W> {
    let (n, ah, bh) = (start.len(), unit(start), unit(end));
    let wh = unit(&ah.iter().zip(&bh).map(|(a, b)| a + b).collect::<Vec<_>>());
    let reflected = |u: &[f64], x: &[f64]| -> Vec<f64> {
        let along = 2.0 * dot(u, x);
        x.iter().zip(u).map(|(x, u)| x - along * u).collect()
    };
    let column = |j: usize| {
        let e: Vec<f64> = (0..n).map(|i| f64::from(i == j)).collect();
        reflected(&wh, &reflected(&ah, &e))
    };
    let columns: Vec<_> = (0..n).map(column).collect();
    (0..n * n).map(|at| W::real(columns[at % n][at / n])).collect()
}

fn check<T: Scalar>(start: &[T::Real], end: &[T::Real], rows: usize) {
    let op = Rotation::<T>::new(start, end, 1, start.len()).unwrap();
    rows::check(&op, rows, true, &|given| turned::<T::Wide>(&given[0], &given[1]));
}

#[test]
fn rows_equal_two_reflections() {
    fn all<T: Scalar>() {
        let sizes = [(2, 1), (2, 3), (3, 1), (5, 0), (5, 1), (7, 11), (16, 3), (17, 5), (33, 1), (100, 3)];
        for (n, rows) in sizes {
            check::<T>(&numbers(n, 1), &numbers(n, 2), rows);
        }
        // one direction has the limit
        let start: Vec<T::Real> = numbers(9, 1);
        check::<T>(&start, &start.iter().map(|x| *x * T::Real::of(3.0)).collect::<Vec<_>>(), 2);
    }
    every_type!(all());
}
