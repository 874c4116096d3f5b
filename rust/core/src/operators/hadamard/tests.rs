//! The transform of long rows, and results that go past the cache.

use super::*;
use crate::testing::{Guarded, every_type, members, near, numbers, wide, within_work};

#[test]
fn the_transform_is_that_of_long_rows_too() {
    fn check<T: Scalar>(n: usize, rows: usize) {
        let x = numbers::<T>(rows * n, 4);
        let (mut y, mut back) = (Guarded::<T>::new(x.len()), Guarded::<T>::new(x.len()));
        transform(&x, n, 0.5, Side::Forward, y.inner(), 2).unwrap();
        transform(y.read(), n, 2.0 / n as f64, Side::Adjoint, back.inner(), 1).unwrap();
        near(back.read(), &wide(&x), 60.0 * T::Real::EPS.f64(), format!("H^T H x, n = {n}"));
        // rows of H whose indices have one bit of the levels, and 1 in the block
        let order = Order::of(n).unwrap();
        let (block, negative) = (1 % order.p, order.negative());
        for bit in 0..order.levels {
            let odd = |j: usize| ((j / order.p) >> bit) & 1 == 1;
            let other = |j: usize| order.p > 1 && negative.as_ref().unwrap()(block, j % order.p);
            let entry = |j: usize| if odd(j) == other(j) { x[j].widen() } else { -x[j].widen() };
            let sum: T::Wide = (0..n).map(entry).sum();
            let got = y.read()[(order.p << bit) + block];
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
            shared::apply(&operator, &x, rows, Side::Forward, own, &Budget::of(members(2))).unwrap();
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
