//! Against the definition in double precision, through the factors and through W.

use super::*;
use crate::testing::{every_type, fill, numbers, rows};

/// W = U diag(1 + margin tanh(logits / 2)) V^H.
fn dense<W: Scalar<Real = f64>>(
    numbers: &rows::Numbers,
    margins: &[f64],
    (n, k, r): (usize, usize, usize),
) -> Vec<W> {
    let complex = |x: &[f64], at: usize| W::new(x[at * W::PARTS], x[(at + 1) * W::PARTS - 1]);
    let entry = |at: usize| {
        let (b, i, j) = (at / (n * k), at / k % n, at % k);
        let term = |q: usize| {
            let sigma = 1.0 + margins[b] * (numbers[1][b * r + q] / 2.0).tanh();
            let (u, v) =
                (complex(&numbers[0], (b * n + i) * r + q), complex(&numbers[2], (b * k + j) * r + q));
            (u * v.conj()).scale(sigma)
        };
        (0..r).map(term).sum()
    };
    (0..margins.len() * n * k).map(entry).collect()
}

fn check<T: Scalar>(batch: usize, (n, k, r): (usize, usize, usize), rows: usize) {
    let (u, v): (Vec<T>, Vec<T>) = (numbers(batch * n * r, 1), numbers(batch * k * r, 2));
    let logits: Vec<T::Real> = fill(batch * r, 4.0, 3);
    let margins: Vec<f64> = (0..batch).map(|b| 0.25 * ((b + 1) % 4) as f64).collect();
    let margin: Vec<T::Real> = margins.iter().map(|margin| T::Real::of(*margin)).collect();
    let given = [
        Given { shape: &[batch, n, r], array: Array::Own(&u) },
        Given { shape: &[batch, r], array: Array::Real(&logits) },
        Given { shape: &[batch, k, r], array: Array::Own(&v) },
        Given { shape: &[batch], array: Array::Real(&margin) },
    ];
    let op = BoundedSvd::<T>::of(&given).unwrap();
    rows::check(&op, rows, true, &|numbers| dense::<T::Wide>(numbers, &margins, (n, k, r)));
}

#[test]
fn factors_and_matrix_equal_the_definition() {
    fn all<T: Scalar>() {
        for (batch, sizes, rows) in [
            (1, (5, 5, 5), 2),
            (2, (6, 4, 3), 1),
            (1, (4, 7, 2), 40),
            (3, (5, 5, 5), 30),
            (2, (1, 1, 1), 2),
            (1, (3, 2, 2), 0),
            (1, (9, 40, 300), 2),
        ] {
            check::<T>(batch, sizes, rows);
        }
    }
    every_type!(all());
}
