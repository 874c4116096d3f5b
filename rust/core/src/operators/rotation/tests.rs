//! Stacks, threads and complex rows against single real rows through the kernels, which have tests of their own.

use super::*;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::scalar::{Real, c32, c64, parts};
use crate::side::Side;
use crate::testing::{near, numbers, wide};

/// W x, and the gradients, of one call.
type Outcome<T> = (Vec<T>, [Vec<<T as Scalar>::Real>; 2], Vec<T>);

fn outcome<T: Scalar>(
    op: &Rotation<'_, T>,
    x: &[T],
    ct: &[T],
    rows: usize,
    side: Side,
    threads: usize,
) -> Outcome<T> {
    let budget = Budget::of(threads);
    let one = <T::Real as num_traits::One>::one();
    let (mut out, mut x_bar) = (vec![T::one(); x.len()], vec![T::one(); x.len()]);
    let mut bars = [(); 2].map(|()| vec![one; op.batch * op.n]);
    op.apply(x, rows, side, &mut out, None, &budget).unwrap();
    let [start, end] = &mut bars;
    let own = &mut [Bar::Real(start), Bar::Real(end)];
    op.apply_vjp(None, x, ct, rows, side, own, Some(&mut x_bar), &budget).unwrap();
    (out, bars, x_bar)
}

fn check<T: Scalar>(batch: usize, n: usize, rows: usize) {
    let (start, end): (Vec<T::Real>, Vec<T::Real>) = (numbers(batch * n, 1), numbers(batch * n, 2));
    let op = Rotation::<T>::new(&start, &end, batch, n).unwrap();
    let (x, ct) = (numbers::<T>(batch * rows * n, 3), numbers::<T>(batch * rows * n, 4));
    for side in [Side::Forward, Side::Adjoint] {
        let all = outcome(&op, &x, &ct, rows, side, 1);
        for threads in [2, 3] {
            assert!(outcome(&op, &x, &ct, rows, side, threads) == all, "{threads} threads differ");
        }
        for b in 0..batch {
            let pair = b * n..(b + 1) * n;
            let single = Rotation::<T::Real>::new(&start[pair.clone()], &end[pair.clone()], 1, n).unwrap();
            let zero = <T::Real as num_traits::Zero>::zero();
            let mut bars = [vec![zero; n], vec![zero; n]];
            for row in b * rows..(b + 1) * rows {
                let own = row * n..(row + 1) * n;
                let part = |x: &[T], i: usize| -> Vec<T::Real> {
                    parts(&x[own.clone()]).iter().skip(i).step_by(T::PARTS).copied().collect()
                };
                for i in 0..T::PARTS {
                    let (out, more, x_bar) = outcome(&single, &part(&x, i), &part(&ct, i), 1, side, 1);
                    near(&part(&all.0, i), &wide(&out), 100.0 * T::Real::EPS.f64(), "out");
                    near(&part(&all.2, i), &wide(&x_bar), 100.0 * T::Real::EPS.f64(), "x_bar");
                    for (bar, more) in bars.iter_mut().zip(&more) {
                        bar.iter_mut().zip(more).for_each(|(bar, more)| *bar += *more);
                    }
                }
            }
            near(&all.1[0][pair.clone()], &wide(&bars[0]), 100.0 * T::Real::EPS.f64(), "start_bar");
            near(&all.1[1][pair], &wide(&bars[1]), 100.0 * T::Real::EPS.f64(), "end_bar");
        }
    }
    let (mut w, budget) = (vec![T::one(); batch * n * n], Budget::of(2));
    op.matrix(&mut w, None, &budget).unwrap();
    let mut columns = vec![T::one(); batch * n * n];
    let identity: Vec<T> = (0..batch * n * n)
        .map(|at| if (at % (n * n)).is_multiple_of(n + 1) { T::one() } else { T::zero() })
        .collect();
    let (mut bars, mut expected) = ([vec![], vec![]], [vec![], vec![]]);
    for bars in [&mut bars, &mut expected] {
        *bars = [(); 2].map(|()| vec![<T::Real as num_traits::One>::one(); batch * n]);
    }
    op.apply(&identity, n, Side::Adjoint, &mut columns, None, &budget).unwrap();
    near(&w, &wide(&columns), 100.0 * T::Real::EPS.f64(), "matrix");
    let ct = numbers::<T>(w.len(), 5);
    let [a, b] = &mut bars;
    op.matrix_vjp(None, &ct, &mut [Bar::Real(a), Bar::Real(b)], &budget).unwrap();
    let [a, b] = &mut expected;
    let own = &mut [Bar::Real(a), Bar::Real(b)];
    op.apply_vjp(None, &identity, &ct, n, Side::Adjoint, own, None, &budget).unwrap();
    assert_eq!(bars, expected);
}

#[test]
fn stacks_and_complex_rows_equal_single_rows() {
    fn all<T: Scalar>() {
        for (batch, n, rows) in [(1, 5, 1), (1, 7, 11), (3, 4, 2), (4, 17, 5), (2, 1, 3), (2, 3, 0)] {
            check::<T>(batch, n, rows);
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
