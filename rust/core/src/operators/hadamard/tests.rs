//! Against the definition in double precision: every order, field and side, short and long rows, stacks and threads.

use super::*;
use crate::testing::{Guarded, every_type, near, numbers, rows, wide, within_work};

/// H_n by its entries +-1.
fn entries(n: usize) -> Vec<f64> {
    let order = Order::of(n).unwrap();
    let p = order.p;
    let negative = order.negative().unwrap();
    let sign = |i: usize, j: usize| {
        let odd = ((i / p) & (j / p)).count_ones() % 2 == 1;
        if odd != (p > 1 && negative(i % p, j % p)) { -1.0 } else { 1.0 }
    };
    (0..n * n).map(|at| sign(at / n, at % n)).collect()
}

/// W = scale^r H S_r ... H S_1 of every matrix, from the diagonals S.
fn dense<W: Scalar<Real = f64>>(
    h: &[f64],
    signs: &[f64],
    (batch, rounds, n): (usize, usize, usize),
) -> Vec<W> {
    let scale = 1.0 / (n as f64).sqrt();
    let matrix = |k: usize| {
        let mut w: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at % (n + 1) == 0))).collect();
        for signs in signs[k * rounds * n..].chunks_exact(n).take(rounds) {
            let mut next = vec![0.0; n * n];
            for (row, h) in next.chunks_exact_mut(n).zip(h.chunks_exact(n)) {
                for ((h, s), w) in h.iter().zip(signs).zip(w.chunks_exact(n)) {
                    row.iter_mut().zip(w).for_each(|(x, w)| *x += scale * h * s * w);
                }
            }
            w = next;
        }
        w
    };
    (0..batch).flat_map(matrix).map(W::real).collect()
}

fn check<T: Scalar>(sizes: (usize, usize, usize), rows: usize) {
    let (batch, rounds, n) = sizes;
    let (h, signs) = (entries(n), numbers::<T::Real>(batch * rounds * n, 1));
    let op = Hadamard::<T>::new(&signs, sizes).unwrap();
    rows::check(&op, rows, n <= 64, &|given| dense::<T::Wide>(&h, &given[0], sizes));
}

fn for_each_type(sizes: (usize, usize, usize), rows: usize) {
    if within_work(&[8, sizes.0, sizes.1, sizes.2, sizes.2, rows]) {
        every_type!(check(sizes, rows));
    }
}

#[test]
fn products_and_gradients_are_those_of_the_definition() {
    for n in [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 64, 96, 128, 160, 256, 512] {
        for rounds in [1, 2, 3] {
            for_each_type((1, rounds, n), if n < 20 { 5 } else { 2 });
        }
    }
}

#[test]
fn stacks_no_rounds_and_no_rows() {
    for (sizes, rows) in
        [((3, 2, 8), 3), ((5, 1, 12), 1), ((4, 0, 4), 3), ((0, 2, 4), 2), ((2, 1, 20), 0), ((17, 1, 2), 7)]
    {
        for_each_type(sizes, rows);
    }
}

#[test]
fn the_transform_is_that_of_long_rows_too() {
    fn check<T: Scalar>(n: usize, rows: usize) {
        let x = numbers::<T>(rows * n, 4);
        let (mut y, mut back) = (Guarded::<T>::new(x.len()), Guarded::<T>::new(x.len()));
        transform(&x, n, 0.5, Side::Forward, y.inner(), 2).unwrap();
        transform(y.read(), n, 2.0 / n as f64, Side::Adjoint, back.inner(), 1).unwrap();
        near(back.read(), &wide(&x), 60.0 * T::Real::EPS.f64(), format!("H^T H x, n = {n}"));
        // the first rows of H, and those whose indices have one bit
        let order = Order::of(n).unwrap();
        for bit in 0..order.levels {
            let sum: T::Wide = (0..n)
                .map(|j| {
                    let odd = ((j / order.p) >> bit) & 1 == 1;
                    let own = x[j].widen();
                    if order.p > 1 && order.negative().unwrap()(0, j % order.p) != odd || order.p == 1 && odd
                    {
                        -own
                    } else {
                        own
                    }
                })
                .sum();
            let got = y.read()[order.p << bit];
            near(&[got], &[sum.scale(0.5)], 1e4 * T::Real::EPS.f64(), format!("row of bit {bit}, n = {n}"));
        }
    }
    for (n, rows) in [(1, 3), (4, 5), (2048, 2), (4096, 1), (1 << 13, 1), (1 << 15, 1), (20 << 8, 2)] {
        if within_work(&[n, rows]) {
            every_type!(check(n, rows));
        }
    }
}

#[test]
fn streamed_results_have_the_same_bits() {
    fn check<T: Scalar>(n: usize, rows: usize, scale: f64) {
        let (x, len) = (numbers::<T>(rows * n, 5), rows * n);
        // Beside other numbers, from every place within a cache line.
        let line = 64 / size_of::<T>();
        let apply = |streamed: bool, first: usize| {
            let mut out = vec![T::one(); len + 2 * line];
            let operator = Hadamard { streamed, ..Hadamard::plain("x", n, scale).unwrap() };
            let own = &mut out[first..first + len];
            shared::apply(&operator, &x, rows, Side::Forward, own, &Budget::of(2)).unwrap();
            assert!(out[..first].iter().chain(&out[first + len..]).all(|&y| y == T::one()), "written beside");
            out[first..first + len].to_vec()
        };
        let expected = apply(false, 0);
        for first in 0..line {
            assert!(apply(true, first) == expected, "n = {n}, {rows} rows, {first} behind");
        }
    }
    for (n, rows) in [
        (8, 5),
        (16, 7),
        (64, 3),
        (256, 5),
        (512, 3),
        (1024, 3),
        (4096, 2),
        (1 << 13, 2),
        (1 << 15, 1),
        (40, 3),
    ] {
        if within_work(&[n, rows]) {
            for scale in [1.0, 0.5] {
                every_type!(check(n, rows, scale));
            }
        }
    }
}
