//! Sizes beside the ordinary, the inverse of triangles, and what a call keeps for its gradient; results are compared in `hosted/tests.rs`.

use super::*;
use crate::testing::{M, device, fetched, near, never, numbers, sent};
use isometry_core::Side;
use isometry_core::scalar::c64;

#[test]
fn more_matrices_than_a_dispatch_has() {
    let Some(context) = device() else { return };
    let (batch, n) = (65535 + 2, 2);
    let u: Vec<c64> = numbers(Field::Real, batch * n, 5);
    let vectors = sent(&context, Field::Real, &[batch, n, 1], &u);
    let expected: Vec<c64> = u
        .chunks(2)
        .flat_map(|u| {
            let (a, b) = (u[0].re, u[1].re);
            let by = a * a + b * b;
            [(b * b - a * a) / by, -2.0 * a * b / by, -2.0 * a * b / by, (a * a - b * b) / by].map(c64::from)
        })
        .collect();
    let w = Householder::new(&vectors, None).unwrap().matrix(&never).unwrap();
    near(&fetched(&w), &expected, 8.0, "reflections");
}

#[test]
fn inverses_of_triangles_of_all_sizes() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (batch, m) in [(1, 31), (3, 33), (2, 100), (1, 165), (2, 300), (1, 530)] {
            // far from singular: the diagonal outweighs the rows
            let grams: Vec<M> = (0..batch)
                .map(|b| {
                    let data = numbers(field, m * m, 9 + b as u64);
                    M::new(m, m, |i, j| if i == j { c64::from(2.0 * m as f64) } else { data[i * m + j] })
                })
                .collect();
            let all: Vec<c64> = grams.iter().flat_map(|gram| gram.data.clone()).collect();
            let gram = sent(&context, field, &[batch, m, m], &all);
            let mut record = Record::new(&context).unwrap();
            let out = inverse::inverse(&mut record, &gram).unwrap();
            record.submit().unwrap();
            for (gram, found) in grams.iter().zip(fetched(&out).chunks(m * m)) {
                let x = M { rows: m, columns: m, data: found.to_vec() };
                let zero = (0..m * m).all(|at| at / m <= at % m || x.data[at] == c64::default());
                assert!(zero, "{field:?} {m}: below the diagonal");
                let t = |i: usize, j: usize| gram.at(i, j) * if i == j { 0.5 } else { 1.0 };
                let product = M::new(m, m, |i, j| (i..=j).map(|k| t(i, k) * x.at(k, j)).sum());
                near(&product.data, &M::eye(m).data, 8.0, &format!("{field:?} {m}"));
            }
        }
    }
}

/// What a call keeps serves the same arrays alone, and changes no bit.
#[test]
fn gradients_from_what_was_kept() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (batch, n, m, rows) in [(2, 5, 3, 4), (1, 40, 33, 3), (1, 12, 165, 1), (1, 3, 2, 600)] {
            let draw = |shape: &[usize], field, seed| {
                sent(&context, field, shape, &numbers(field, shape.iter().product(), seed))
            };
            let held = || {
                let sign = draw(&[batch], Field::Real, 4);
                (draw(&[batch, n, m], field, 3), Some(Last::sign(field, &sign, n).unwrap()))
            };
            let [x, ct, others] = [7, 70, 8].map(|seed| draw(&[batch, rows, n], field, seed));
            let pulled = |arrays: &(Array, Option<Last>), side| {
                let own = Householder::new(&arrays.0, arrays.1.clone()).unwrap();
                let pulled = own.apply_vjp(&x, &ct, side, &[true; 3], true, &never).unwrap();
                let all: Vec<_> = pulled.arguments.into_iter().flatten().chain(pulled.x).collect();
                all.iter().map(|array| array.download().unwrap()).collect::<Vec<_>>()
            };
            for side in [Side::Forward, Side::Adjoint] {
                let (fresh, again) = (held(), held());
                let expected = pulled(&fresh, side);
                let own = Householder::new(&again.0, again.1.clone()).unwrap();
                for kept in [&x, &others] {
                    own.apply(kept, side, &never).unwrap();
                    assert!(own.kept_rows(kept, side).is_some());
                    assert!(own.kept_rows(&ct, side).is_none());
                    assert!(pulled(&again, side) == expected, "{field:?} {side:?}");
                }
            }
        }
    }
}
