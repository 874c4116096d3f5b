//! Against the matrix multiplied out by its definition, for every kind of length.

use super::*;
use crate::scalar::{Real, c32, c64};
use crate::testing::{Random, rows};
use std::f64::consts::PI;

fn permutation(random: &mut Random, n: usize) -> Vec<i64> {
    let mut places: Vec<i64> = (0..n as i64).collect();
    for i in (1..n).rev() {
        places.swap(i, ((random.number() + 1.0) / 2.0 * (i + 1) as f64) as usize);
    }
    places
}

/// W by its factors.
fn dense(phases: &[f64], vectors: &[f64], permutation: &[i64]) -> Vec<c64> {
    let n = permutation.len();
    let roots: Vec<_> =
        (0..n).map(|k| c64::cis(-2.0 * PI * k as f64 / n as f64) / (n as f64).sqrt()).collect();
    let turn = |x: &[c64], q: usize| -> Vec<c64> {
        x.iter().zip(&phases[q * n..]).map(|(x, t)| x * c64::cis(*t)).collect()
    };
    let fourier = |x: &[c64], inverse: bool| -> Vec<c64> {
        let root = |at: usize| if inverse { roots[at % n].conj() } else { roots[at % n] };
        (0..n).map(|k| (0..n).map(|j| x[j] * root(j * k)).sum()).collect()
    };
    let reflect = |x: &[c64], q: usize| -> Vec<c64> {
        let pairs = vectors[2 * q * n..2 * (q + 1) * n].chunks_exact(2);
        let v: Vec<c64> = pairs.map(|z| c64::new(z[0], z[1])).collect();
        let square: f64 = v.iter().map(|v| v.norm_sqr()).sum();
        let inner: c64 = v.iter().zip(x).map(|(v, x)| v.conj() * x).sum();
        x.iter().zip(v).map(|(x, v)| x - v * inner * 2.0 / square).collect()
    };
    let column = |j: usize| {
        let unit: Vec<_> = (0..n).map(|i| c64::from(f64::from(u8::from(i == j)))).collect();
        let z = reflect(&fourier(&turn(&unit, 0), false), 0);
        let y: Vec<c64> = permutation.iter().map(|&place| z[place as usize]).collect();
        turn(&reflect(&fourier(&turn(&y, 1), true), 1), 2)
    };
    let columns: Vec<_> = (0..n).map(column).collect();
    (0..n * n).map(|at| columns[at % n][at / n]).collect()
}

fn check<T: Scalar<Wide = c64>>(n: usize, rows: usize) {
    let mut random = Random::new(n as u64 * 7919 + 1);
    let phases: Vec<T::Real> = (0..3 * n).map(|_| T::Real::of(3.0 * random.number())).collect();
    let (vectors, permutation) = (random.array::<T>(2 * n, 1.0), permutation(&mut random, n));
    let op = FourierProduct::new(&phases, &vectors, &permutation, 1, n).unwrap();
    rows::check(&op, rows, n < 20 && rows < 9, &|given| dense(&given[0], &given[1], &permutation));
}

#[test]
fn factors_equal_the_definition() {
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 31, 37, 41, 62, 64, 74, 97, 128] {
        for rows in [0, 1, 5, 19] {
            check::<c32>(n, rows);
            check::<c64>(n, rows);
        }
    }
}
