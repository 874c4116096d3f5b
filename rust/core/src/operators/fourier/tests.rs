//! Against the matrix multiplied out by its definition, in double precision: values, gradients of both sides, 1, 2 and 3
//! threads, every kind of length.

use super::*;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::scalar::{Real, c32, c64};
use crate::side::Side;
use crate::testing::{Random, near, wide};
use num_traits::Zero;
use std::f64::consts::PI;

fn permutation(random: &mut Random, n: usize) -> Vec<i64> {
    let mut places: Vec<i64> = (0..n as i64).collect();
    for i in (1..n).rev() {
        places.swap(i, ((random.number() + 1.0) / 2.0 * (i + 1) as f64) as usize);
    }
    places
}

/// W x, and the arrays before R1 and before R2.
fn forward(op: &FourierProduct<'_, c64>, x: &[c64], inverse: bool) -> Vec<c64> {
    let n = x.len();
    let turn = |x: &[c64], q: usize, sign: f64| -> Vec<c64> {
        x.iter().zip(&op.phases[q * n..]).map(|(x, t)| x * c64::cis(sign * t)).collect()
    };
    let fourier = |x: &[c64], sign: f64| -> Vec<c64> {
        let root = |k: usize| c64::cis(sign * 2.0 * PI * (k % n) as f64 / n as f64) / (n as f64).sqrt();
        (0..n).map(|k| (0..n).map(|j| x[j] * root(j * k)).sum()).collect()
    };
    let reflect = |x: &[c64], q: usize| -> Vec<c64> {
        let v = &op.vectors[q * n..(q + 1) * n];
        let square: f64 = v.iter().map(|v| v.norm_sqr()).sum();
        let inner: c64 = v.iter().zip(x).map(|(v, x)| v.conj() * x).sum();
        x.iter().zip(v).map(|(x, v)| x - v * inner * 2.0 / square).collect()
    };
    if inverse {
        let y = turn(&fourier(&reflect(&turn(x, 2, -1.0), 1), -1.0), 1, -1.0);
        let mut z = vec![c64::zero(); n];
        op.permutation.iter().zip(y).for_each(|(&place, y)| z[place as usize] = y);
        return turn(&fourier(&reflect(&z, 0), 1.0), 0, -1.0);
    }
    let z = reflect(&fourier(&turn(x, 0, 1.0), -1.0), 0);
    let y: Vec<c64> = op.permutation.iter().map(|&place| z[place as usize]).collect();
    turn(&reflect(&fourier(&turn(&y, 1, 1.0), 1.0), 1), 2, 1.0)
}

/// Re sum conj(ct) W x over all rows.
fn pairing(op: &FourierProduct<'_, c64>, x: &[c64], ct: &[c64]) -> f64 {
    let n = op.n;
    let rows = x.chunks_exact(n).zip(ct.chunks_exact(n));
    rows.map(|(x, ct)| forward(op, x, false).iter().zip(ct).map(|(y, ct)| (ct.conj() * y).re).sum::<f64>())
        .sum()
}

fn check<T: Scalar<Wide = c64>>(n: usize, rows: usize) {
    let mut random = Random::new(n as u64 * 7919 + 1);
    let phases: Vec<T::Real> = (0..3 * n).map(|_| T::Real::of(3.0 * random.number())).collect();
    let (vectors, permutation) = (random.array::<T>(2 * n, 1.0), permutation(&mut random, n));
    let op = FourierProduct::new(&phases, &vectors, &permutation, 1, n).unwrap();
    let (angles, exact) = (phases.iter().map(|x| x.f64()).collect::<Vec<_>>(), wide(&vectors));
    let textbook = FourierProduct::new(&angles, &exact, &permutation, 1, n).unwrap();
    let (x, ct): (Vec<T>, Vec<T>) = (random.array(rows * n, 1.0), random.array(rows * n, 1.0));
    for side in [Side::Forward, Side::Adjoint] {
        let inverse = side == Side::Adjoint;
        let all = |x: &[T], inverse: bool| -> Vec<c64> {
            wide(x).chunks_exact(n).flat_map(|x| forward(&textbook, x, inverse)).collect()
        };
        let mut first = None;
        for threads in [1, 2, 3] {
            let budget = Budget::of(threads);
            let (mut out, mut x_bar) = (vec![T::one(); x.len()], vec![T::one(); x.len()]);
            let (mut phases_bar, mut vectors_bar) = (vec![T::Real::zero(); 3 * n], vec![T::one(); 2 * n]);
            op.apply(&x, rows, side, &mut out, None, &budget).unwrap();
            let bars = &mut [Bar::Real(&mut phases_bar), Bar::Own(&mut vectors_bar)];
            op.apply_vjp(None, &x, &ct, rows, side, bars, Some(&mut x_bar), &budget).unwrap();
            near(&out, &all(&x, inverse), 60.0 * T::Real::EPS.f64(), "out");
            near(&x_bar, &all(&ct, !inverse), 60.0 * T::Real::EPS.f64(), "x_bar");
            let got = (out, x_bar, phases_bar, vectors_bar);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{threads} threads differ");
        }
        // one direction of each argument against differences of the definition
        let Some((_, _, phases_bar, vectors_bar)) = first else { continue };
        let (x, ct) = if inverse { (wide(&ct), wide(&x)) } else { (wide(&x), wide(&ct)) };
        let directions: Vec<f64> = (0..3 * n).map(|_| random.number()).collect();
        let complex: Vec<c64> = random.array(2 * n, 1.0);
        let step = 1e-5;
        let along = |by: f64| {
            let phases: Vec<f64> = angles.iter().zip(&directions).map(|(a, d)| a + by * d).collect();
            pairing(&FourierProduct::new(&phases, &exact, &permutation, 1, n).unwrap(), &x, &ct)
        };
        let bent = |by: f64| {
            let vectors: Vec<c64> = exact.iter().zip(&complex).map(|(a, d)| a + d * by).collect();
            pairing(&FourierProduct::new(&angles, &vectors, &permutation, 1, n).unwrap(), &x, &ct)
        };
        let pairs = [
            (
                (along(step) - along(-step)) / (2.0 * step),
                phases_bar.iter().zip(&directions).map(|(a, d)| a.f64() * d).sum::<f64>(),
            ),
            (
                (bent(step) - bent(-step)) / (2.0 * step),
                wide(&vectors_bar).iter().zip(&complex).map(|(a, d)| (a.conj() * d).re).sum(),
            ),
        ];
        for (expected, got) in pairs {
            let size = ((rows * n) as f64).sqrt();
            assert!(
                (expected - got).abs() <= 2e-7 * size.max(1.0) + 1e3 * T::Real::EPS.f64() * size,
                "{expected} {got}"
            );
        }
    }
    if rows == 1 {
        let mut w = vec![T::one(); n * n];
        op.matrix(&mut w, None, &Budget::of(2)).unwrap();
        let columns: Vec<c64> = (0..n)
            .flat_map(|j| {
                forward(
                    &textbook,
                    &(0..n).map(|i| c64::from((i == j) as u8 as f64)).collect::<Vec<_>>(),
                    false,
                )
            })
            .collect();
        let turned: Vec<c64> = (0..n * n).map(|at| columns[at % n * n + at / n]).collect();
        near(&w, &turned, 60.0 * T::Real::EPS.f64(), "matrix");
    }
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

#[test]
fn the_gradient_of_the_matrix_is_that_of_its_columns() {
    let (n, mut random) = (12, Random::new(5));
    let (phases, vectors) = (vec![0.3f64; 3 * n], random.array::<c64>(2 * n, 1.0));
    let (permutation, ct) = (permutation(&mut random, n), random.array::<c64>(n * n, 1.0));
    let op = FourierProduct::new(&phases, &vectors, &permutation, 1, n).unwrap();
    let columns: Vec<c64> = (0..n * n).map(|at| ct[at % n * n + at / n]).collect();
    let (mut a, mut b) =
        ((vec![0.0; 3 * n], vec![c64::zero(); 2 * n]), (vec![0.0; 3 * n], vec![c64::zero(); 2 * n]));
    let budget = Budget::of(1);
    op.matrix_vjp(None, &ct, &mut [Bar::Real(&mut a.0), Bar::Own(&mut a.1)], &budget).unwrap();
    let identity: Vec<c64> =
        (0..n * n).map(|at| c64::from(if at % (n + 1) == 0 { 1.0 } else { 0.0 })).collect();
    let bars = &mut [Bar::Real(&mut b.0), Bar::Own(&mut b.1)];
    op.apply_vjp(None, &identity, &columns, n, Side::Forward, bars, None, &budget).unwrap();
    near(&a.1, &b.1, 60.0 * f64::EPS, "vectors");
    near(&a.0, &b.0, 60.0 * f64::EPS, "phases");
}

#[test]
fn bad_arguments_are_refused() {
    let refused = |permutation: &[i64]| {
        FourierProduct::<c32>::new(&[0.0; 9], &[c32::new(1.0, 0.0); 6], permutation, 1, permutation.len())
            .err()
            .unwrap()
            .to_string()
    };
    for bad in [[0, 1, 1], [1, 2, 3], [-1, 0, 1]] {
        assert!(refused(&bad).starts_with("permutation must hold each of 0..2 once"), "{bad:?}");
    }
    assert!(refused(&[]).starts_with("permutation: expected at least one element"));
    assert!(refused(&[0, 1]).starts_with("phases: expected 6 elements"));
    assert_eq!(
        FourierProduct::<f32>::new(&[0.0; 3], &[1.0; 2], &[0], 1, 1).err().unwrap().to_string(),
        "vectors must be complex"
    );
}
