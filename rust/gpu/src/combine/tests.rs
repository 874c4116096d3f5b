//! Against double precision.

use super::*;
use crate::testing::{device, fetched, near, numbers, sent};
use isometry_core::scalar::c64;

#[test]
fn combinations() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for len in [0, 1, 255, 257, 70_000] {
            let (x, y) = (numbers(field, len, 1), numbers(field, len, 2));
            let (a, b) = (sent(&context, field, &[len], &x), sent(&context, field, &[len], &y));
            let imaginary = if field == Field::Real { 0.0 } else { 0.75 };
            let (alpha, beta) = ((-1.5, imaginary), (0.25, -imaginary));
            let of = |(re, im): Factor, x: c64| c64::new(re.into(), im.into()) * x;
            let sums: Vec<c64> = x.iter().zip(&y).map(|(&x, &y)| of(alpha, x) + of(beta, y)).collect();
            near(&fetched(&combine(&a, alpha, Some((&b, beta))).unwrap()), &sums, 4.0, "alpha a + beta b");
            let scaled: Vec<c64> = x.iter().map(|&x| of(alpha, x)).collect();
            near(&fetched(&combine(&a, alpha, None).unwrap()), &scaled, 4.0, "alpha a");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let made = |field, shape: &[usize]| Array::room(&context, field, shape).unwrap();
    let a = made(Field::Real, &[2, 3]);
    let one = (1.0, 0.0);
    assert!(combine(&a, one, Some((&made(Field::Real, &[3, 2]), one))).is_err());
    assert!(combine(&a, one, Some((&made(Field::Complex, &[2, 3]), one))).is_err());
    assert!(combine(&a, (1.0, 1.0), None).is_err());
}
