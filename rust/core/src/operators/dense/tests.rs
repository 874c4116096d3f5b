//! Against sums in double precision.

use super::*;
use crate::testing::{every_type, numbers, rows};

/// W itself.
fn given<W: Scalar<Real = f64>>(numbers: &rows::Numbers) -> Vec<W> {
    numbers[0].chunks_exact(W::PARTS).map(|z| W::new(z[0], z[W::PARTS - 1])).collect()
}

#[test]
fn products_and_gradients() {
    fn all<T: Scalar>() {
        for (batch, p, q, rows) in
            [(1, 5, 3, 4), (3, 16, 33, 7), (1, 1, 1, 0), (2, 40, 7, 1), (0, 3, 3, 3), (1, 150, 130, 90)]
        {
            let weight: Vec<T> = numbers(batch * p * q, 1);
            rows::check(&Dense::new(&weight, batch, p, q).unwrap(), rows, true, &given::<T::Wide>);
        }
    }
    every_type!(all());
}

#[test]
fn sizes_are_checked() {
    assert!(Dense::new(&[0f32; 5], 1, 2, 3).is_err());
    let weight = [0f32; 6];
    let op = Dense::new(&weight, 1, 2, 3).unwrap();
    let one = Budget::of(1);
    assert!(op.apply(&[0.0; 2], 1, Side::Forward, &mut [0.0; 2], None, &one).is_err());
    assert!(op.apply(&[0.0; 2], 1, Side::Adjoint, &mut [0.0; 3], None, &one).is_ok());
    let short = &mut [Bar::Own(&mut [0.0; 5])];
    let bad = op.apply_vjp(None, &[0.0; 3], &[0.0; 2], 1, Side::Forward, short, None, &one);
    assert!(bad.unwrap_err().to_string().starts_with("weight_bar: expected 6"));
}
