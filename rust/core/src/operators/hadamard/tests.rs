//! Against the definition in double precision: every order, field and side, short and long rows, stacks and threads.

use super::*;
use crate::argument::Bar;
use crate::cpu::Cpu;
use crate::testing::{every_type, Guarded, near, numbers, wide, within_work};

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

/// scale H x, or H^T x.
fn product<W: Scalar<Real = f64>>(h: &[f64], x: &[W], side: Side, scale: f64) -> Vec<W> {
    let n = x.len();
    let entry = |i: usize, j: usize| if side == Side::Forward { h[i * n + j] } else { h[j * n + i] };
    (0..n).map(|i| (0..n).map(|j| x[j].scale(scale * entry(i, j))).sum()).collect()
}

fn check<T: Scalar>((batch, rounds, n): (usize, usize, usize), rows: usize) {
    let (h, scale) = (entries(n), 1.0 / (n as f64).sqrt());
    let signs: Vec<T::Real> = numbers(batch * rounds * n, 1);
    let op = Hadamard::<T>::new(&signs, (batch, rounds, n)).unwrap();
    let (x, ct) = (numbers::<T>(batch * rows * n, 2), numbers::<T>(batch * rows * n, 3));
    let tolerance = 200.0 * T::Real::EPS.f64();
    for side in [Side::Forward, Side::Adjoint] {
        let all = |threads: usize| {
            let budget = Budget::of(threads);
            let (mut out, mut x_bar) = (Guarded::<T>::new(x.len()), Guarded::<T>::new(x.len()));
            let mut bar = Guarded::<T::Real>::new(signs.len());
            op.apply(&x, rows, side, out.inner(), None, &budget).unwrap();
            let bars = &mut [Bar::Real(bar.inner())];
            op.apply_vjp(None, &x, &ct, rows, side, bars, Some(x_bar.inner()), &budget).unwrap();
            (out.take(), bar.take(), x_bar.take())
        };
        let (out, bar, x_bar) = all(1);
        assert!(all(2) == (out.clone(), bar.clone(), x_bar.clone()), "threads differ");
        let mut expected_bar = vec![0.0; signs.len()];
        let (mut expected, mut expected_x_bar) = (vec![], vec![]);
        for row in 0..batch * rows {
            let k = row / rows;
            let own = |x: &[T]| wide(&x[row * n..(row + 1) * n]);
            let signs = |j: usize| wide(&signs[(k * rounds + j) * n..][..n]);
            let turned = |x: &[T::Wide], j: usize| -> Vec<T::Wide> {
                x.iter().zip(signs(j)).map(|(x, s)| x.scale(s)).collect()
            };
            let (forward, mut g) =
                if side == Side::Forward { (own(&x), own(&ct)) } else { (own(&ct), own(&x)) };
            let mut states = vec![forward];
            for j in 0..rounds {
                states.push(product(&h, &turned(&states[j], j), Side::Forward, scale));
            }
            for j in (0..rounds).rev() {
                let u = product(&h, &g, Side::Adjoint, scale);
                let terms = u.iter().zip(&states[j]).map(|(u, z)| (*u * z.conj()).re());
                expected_bar[(k * rounds + j) * n..][..n]
                    .iter_mut()
                    .zip(terms)
                    .for_each(|(bar, term)| *bar += term);
                g = turned(&u, j);
            }
            let (y, back) = (states.pop().unwrap(), g);
            let (y, back) = if side == Side::Forward { (y, back) } else { (back, y) };
            expected.extend(y);
            expected_x_bar.extend(back);
        }
        let what = format!("n = {n}, {rounds} rounds, {side:?}");
        near(&out, &expected, tolerance, format!("out, {what}"));
        near(&bar, &expected_bar, tolerance, format!("signs_bar, {what}"));
        near(&x_bar, &expected_x_bar, tolerance, format!("x_bar, {what}"));
    }
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

#[test]
fn blocks_are_hadamard_matrices() {
    for n in [12, 20, 28, 36, 44, 52, 60, 76, 100, 124, 244] {
        let h = entries(n);
        for i in 0..n {
            for j in 0..n {
                let dot: f64 = (0..n).map(|k| h[i * n + k] * h[j * n + k]).sum();
                assert_eq!(dot, if i == j { n as f64 } else { 0.0 }, "n = {n}, rows {i} and {j}");
            }
        }
    }
}

#[test]
fn orders_are_products_with_the_smallest_block() {
    let block = |n: usize| Order::of(n).map(|order| order.p);
    let found = [1, 2, 12, 24, 40, 36, 56, 1024, 72, 104, 100].map(block);
    assert_eq!(found, [1, 1, 12, 12, 20, 36, 28, 1, 36, 52, 100].map(Some));
    for n in [0, 3, 6, 22, 50, 92, 116, 7 << 3 | 2] {
        assert_eq!(block(n), None, "{n}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let refused = |signs: &[f64], sizes| Hadamard::<f64>::new(signs, sizes).err().unwrap().to_string();
    assert_eq!(refused(&[1.0], (1, 1, 2)), "signs: expected 2 elements, got 1");
    assert_eq!(refused(&[1.0; 6], (1, 1, 6)), "signs must have an order of Hadamard matrices, not 6");
    let outcome = transform(&[1.0; 3], 3, 1.0, Side::Forward, &mut [0.0; 3], 1);
    assert_eq!(outcome.unwrap_err().to_string(), "x must have an order of Hadamard matrices, not 3");
}
