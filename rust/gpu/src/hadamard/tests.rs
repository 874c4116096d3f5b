//! Against the transform of the core.

use super::*;
use crate::testing::{device, fetched, near, numbers, sent};
use isometry_core::operators::hadamard::transform as of_the_core;
use isometry_core::scalar::c64;

#[test]
fn transforms_of_all_orders() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (rows, n) in [(1, 1), (3, 2), (700, 4), (2, 12), (3, 96), (1, 1024), (2, 4096), (1, 12 << 11)] {
            let data = numbers(field, rows * n, n as u64);
            let x = sent(&context, field, &[rows, n], &data);
            for side in [Side::Forward, Side::Adjoint] {
                let part = |get: fn(&c64) -> f64| {
                    let (given, mut out) = (data.iter().map(get).collect::<Vec<_>>(), vec![0.0; rows * n]);
                    of_the_core(&given, n, 0.25, side, &mut out, 1).unwrap();
                    out
                };
                let (re, im) = (part(|x| x.re), part(|x| x.im));
                let expected: Vec<c64> = re.into_iter().zip(im).map(|(a, b)| c64::new(a, b)).collect();
                let found = transform(&x, 0.25, side).unwrap();
                near(&fetched(&found), &expected, 32.0, &format!("{field:?} {rows} {n} {side:?}"));
            }
        }
    }
    let x = sent(&context, Field::Real, &[2, 6], &numbers(Field::Real, 12, 1));
    assert!(transform(&x, 1.0, Side::Forward).is_err());
}
