//! Against the matrix of its definition, for every kind of length.

use super::*;
use crate::scalar::{c32, c64};
use crate::testing::{numbers, rows};
use std::f64::consts::PI;

/// W by its entries, w_jk = sum over l of d_l e^{2 pi i l (j - k) / n} / n.
fn dense(phases: &[f64]) -> Vec<c64> {
    let n = phases.len();
    let entry = |lag: usize| {
        let angle = |l: usize| phases[l] + 2.0 * PI * (l * lag % n) as f64 / n as f64;
        let sum = |part: fn(f64) -> f64| (0..n).map(|l| part(angle(l))).sum::<f64>() / n as f64;
        c64::new(sum(f64::cos), sum(f64::sin))
    };
    let column: Vec<c64> = (0..n).map(entry).collect();
    (0..n * n).map(|at| column[(at / n + n - at % n) % n]).collect()
}

#[test]
fn rows_equal_the_definition() {
    fn all<T: Scalar<Wide = c64>>() {
        for n in [1, 2, 3, 4, 5, 6, 7, 8, 12, 17, 31, 37, 62, 64, 97] {
            for rows in [0, 1, 5, 19] {
                let phases: Vec<T::Real> = numbers(n, 1);
                let given = Given { shape: &[n], array: Array::Real(&phases) };
                let op = Circulant::<T>::of(&[given]).unwrap();
                rows::check(&op, rows, n < 20 && rows < 9, &|given| dense(&given[0]));
            }
        }
    }
    all::<c32>();
    all::<c64>();
}
