//! Against double precision.

use super::*;
use crate::testing::{C, device, fetched, near, numbers, sent};

#[test]
fn combinations() {
    let Some(context) = device() else { return };
    for kind in [Kind::Real, Kind::Complex] {
        for len in [0, 1, 255, 257, 70_000] {
            let (x, y) = (numbers(kind, len, 1), numbers(kind, len, 2));
            let (a, b) = (sent(&context, kind, &[len], &x), sent(&context, kind, &[len], &y));
            let imaginary = if kind == Kind::Real { 0.0 } else { 0.75 };
            let (alpha, beta) = ((-1.5, imaginary), (0.25, -imaginary));
            let of = |(re, im): Factor, x: C| C(re.into(), im.into()).times(x);
            let sums: Vec<C> = x.iter().zip(&y).map(|(&x, &y)| of(alpha, x).plus(of(beta, y))).collect();
            near(&fetched(&combine(&a, alpha, Some((&b, beta))).unwrap()), &sums, 4.0, "alpha a + beta b");
            let scaled: Vec<C> = x.iter().map(|&x| of(alpha, x)).collect();
            near(&fetched(&combine(&a, alpha, None).unwrap()), &scaled, 4.0, "alpha a");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let made = |kind, shape: &[usize]| Array::room(&context, kind, shape).unwrap();
    let a = made(Kind::Real, &[2, 3]);
    let one = (1.0, 0.0);
    assert!(combine(&a, one, Some((&made(Kind::Real, &[3, 2]), one))).is_err());
    assert!(combine(&a, one, Some((&made(Kind::Complex, &[2, 3]), one))).is_err());
    assert!(combine(&a, (1.0, 1.0), None).is_err());
}
