//! Against two reflections multiplied out.

use super::*;
use crate::scalar::{c32, c64};
use crate::testing::{numbers, rows};

/// H(w) H(ah), w = ah + bh, of unit vectors ah and bh.
fn turned<W: Scalar<Real = f64>>(start: &[f64], end: &[f64]) -> Vec<W> {
    let n = start.len();
    let unit = |x: &[f64]| -> Vec<f64> {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter().map(|x| x / length).collect()
    };
    let (ah, bh) = (unit(start), unit(end));
    let wh = unit(&ah.iter().zip(&bh).map(|(a, b)| a + b).collect::<Vec<_>>());
    let reflection = |u: &[f64], i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * u[i] * u[j];
    let entry = |i: usize, j: usize| (0..n).map(|k| reflection(&wh, i, k) * reflection(&ah, k, j)).sum();
    (0..n * n).map(|at| W::real(entry(at / n, at % n))).collect()
}

#[test]
fn rows_equal_two_reflections() {
    fn all<T: Scalar>() {
        for (n, rows) in [(2, 1), (5, 0), (5, 1), (7, 11), (17, 5)] {
            let (start, end): (Vec<T::Real>, Vec<T::Real>) = (numbers(n, 1), numbers(n, 2));
            let op = Rotation::<T>::new(&start, &end, 1, n).unwrap();
            rows::check(&op, rows, true, &|given| turned::<T::Wide>(&given[0], &given[1]));
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let refused =
        |start: &[f64], end: &[f64]| Rotation::<f64>::new(start, end, 1, 2).err().unwrap().to_string();
    assert_eq!(refused(&[1.0], &[1.0, 2.0]), "start: expected 2 elements, got 1");
    assert_eq!(refused(&[1.0, 2.0], &[]), "end: expected 2 elements, got 0");
}
