//! Against two reflections multiplied out, and every degenerate pair.

use super::*;
use crate::argument::Bar;
use crate::scalar::Real;
use crate::testing::{every_type, near, numbers, rows, wide};
use crate::{Budget, Cpu, Side};

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

/// W x, and the gradients of start, end and x.
fn run<R: Real>(start: &[R], end: &[R], x: &[R], ct: &[R], side: Side) -> [Vec<R>; 4] {
    let [mut out, mut x_bar] = [x, x].map(|x| vec![R::one(); x.len()]);
    let [mut a_bar, mut b_bar] = [start, start].map(|x| vec![R::one(); x.len()]);
    let op = Rotation::<R>::new(start, end, 1, start.len()).unwrap();
    let (rows, one) = (x.len() / start.len(), Budget::of(1));
    op.apply(x, rows, side, &mut out, None, &one).unwrap();
    let bars = &mut [&mut a_bar, &mut b_bar].map(|bar| Bar::Real(&mut bar[..]));
    op.apply_vjp(None, x, ct, rows, side, bars, Some(&mut x_bar), &one).unwrap();
    [out, a_bar, b_bar, x_bar]
}

fn lengths<R: Real>() {
    let (a, b, x, ct) = (numbers::<R>(5, 1), numbers::<R>(5, 2), numbers::<R>(5, 3), numbers::<R>(5, 4));
    let scaled = |x: &[R], f: R| -> Vec<R> { x.iter().map(|x| *x * f).collect() };
    let huge = R::of(2.0).powi(if R::EPS.f64() > 1e-10 { 100 } else { 900 });
    let one = run(&a, &b, &x, &ct, Side::Forward);
    let two = run(&scaled(&a, huge), &scaled(&b, R::one() / huge), &x, &ct, Side::Forward);
    near(&two[0], &wide(&one[0]), 20.0 * R::EPS.f64(), "out");
    near(&scaled(&two[1], huge), &wide(&one[1]), 200.0 * R::EPS.f64(), "start_bar");
    near(&scaled(&two[2], R::one() / huge), &wide(&one[2]), 200.0 * R::EPS.f64(), "end_bar");
}

#[test]
fn lengths_of_the_vectors_do_not_matter() {
    lengths::<f32>();
    lengths::<f64>();
}

fn degenerate<R: Real>() {
    let (x, ct) = (numbers::<R>(4, 3), numbers::<R>(4, 4));
    let a = [2.0, -1.0, 0.5, 3.0].map(R::of);
    let back = a.map(|x| -R::of(3.0) * x);
    for (start, end) in [([R::zero(); 4], a), (a, [R::zero(); 4]), (a, back)] {
        for side in [Side::Forward, Side::Adjoint] {
            let [out, a_bar, b_bar, x_bar] = run(&start, &end, &x, &ct, side);
            assert!(a_bar.iter().chain(&b_bar).all(|x| *x == R::zero()));
            if end != back {
                assert_eq!((out, x_bar), (x.clone(), ct.clone()));
                continue;
            }
            // by pi in the plane of ah and of the third axis, where |ah| is smallest
            let ah = unit(&wide(&a));
            let e = unit(&(0..4).map(|i| f64::from(i == 2) - ah[2] * ah[i as usize]).collect::<Vec<_>>());
            for (got, x) in [(out, wide(&x)), (x_bar, wide(&ct))] {
                let (along, beside) = (2.0 * dot(&ah, &x), 2.0 * dot(&e, &x));
                let expected: Vec<f64> = (0..4).map(|i| x[i] - along * ah[i] - beside * e[i]).collect();
                near(&got, &expected, 20.0 * R::EPS.f64(), "opposite");
            }
        }
    }
    let [out, a_bar, b_bar, x_bar] = run(&[R::one()], &[-R::one()], &x[..2], &ct[..2], Side::Forward);
    assert_eq!((&out[..], &x_bar[..]), (&x[..2], &ct[..2]));
    assert_eq!((a_bar[0], b_bar[0]), (R::zero(), R::zero()));
}

#[test]
fn degenerate_pairs_have_no_gradient() {
    degenerate::<f32>();
    degenerate::<f64>();
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let refused =
        |start: &[f64], end: &[f64]| Rotation::<f64>::new(start, end, 1, 2).err().unwrap().to_string();
    assert_eq!(refused(&[1.0], &[1.0, 2.0]), "start: expected 2 elements, got 1");
    assert_eq!(refused(&[1.0, 2.0], &[]), "end: expected 2 elements, got 0");
}
