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
