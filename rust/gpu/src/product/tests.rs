//! Against sums in double precision: both fields, all transposes, sizes on both sides of the tiles.

use super::*;
use crate::device::Context;
use crate::testing::{M, device, fetched, near, numbers, sent};
use isometry_core::scalar::c64;
use std::sync::Arc;

/// A factor as it is or conjugate, and so transposed.
type Side = (for<'a> fn(Operand<'a>) -> Operand<'a>, fn(&M) -> M);
const SIDES: [Side; 4] = [(|x| x, M::clone), (|x| x.conj(), M::conj), (|x| x.t(), M::t), (|x| x.h(), M::h)];

/// Computes a product, a deep one in parts.
fn run(context: &Arc<Context>, product: Product<'_>, field: Field, deep: bool) {
    let mut record = Record::new(context).unwrap();
    if deep { product.record_deep(&mut record, field) } else { product.record(&mut record, field) }.unwrap();
    record.submit().unwrap();
}

#[test]
fn products_of_all_sizes_and_sides() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (batch, m, n, k) in [
            (1, 1, 1, 1),
            (2, 3, 5, 4),
            (3, 16, 16, 16),
            (1, 17, 15, 33),
            (70, 20, 18, 3),
            (1, 520, 530, 7),
            (1, 250, 270, 20),
            (2, 2, 3, 0),
        ] {
            for (i, (of_operand, of_matrix)) in SIDES.into_iter().enumerate() {
                let (rows, columns) = if i < 2 { (m, k) } else { (k, m) };
                let (a, da) = several(&context, field, batch, (rows, columns), i as u64);
                let (b, db) = several(&context, field, batch, (k, n), 100);
                let (c, dc) = several(&context, field, batch, (m, n), 200);
                let (left, right) = (of_operand(whole(&da, columns, rows)), whole(&db, n, k));
                let product = Product::new(batch, (m, n, k), left, right, whole(&dc, n, m));
                run(&context, product.alpha(-2.0).add(), field, false);
                let expected = |i: usize| c[i].plus(&of_matrix(&a[i]).times(&b[i]), -2.0).data;
                let expected: Vec<c64> = (0..batch).flat_map(expected).collect();
                near(&fetched(&dc), &expected, 8.0, &format!("{field:?} {batch} {m} {n} {k}, side {i}"));
            }
        }
    }
}

/// A batch of rows x columns.
fn whole(array: &Array, columns: usize, rows: usize) -> Operand<'_> {
    Operand::new(array, rows * columns, columns)
}

fn drawn(field: Field, rows: usize, columns: usize, seed: u64) -> M {
    M { rows, columns, data: numbers(field, rows * columns, seed + 1) }
}

/// A batch of drawn matrices, and the same on the device.
fn several(
    context: &Arc<Context>,
    field: Field,
    batch: usize,
    (rows, columns): (usize, usize),
    seed: u64,
) -> (Vec<M>, Array) {
    let all: Vec<M> = (0..batch).map(|b| drawn(field, rows, columns, seed + b as u64)).collect();
    let data: Vec<c64> = all.iter().flat_map(|x| x.data.clone()).collect();
    (all, sent(context, field, &[batch, rows, columns], &data))
}

#[test]
fn the_largest_tiles_of_which_there_are_enough() {
    let side = |batch, m, n| tiles(batch, m, n).0;
    assert_eq!([side(1, 512, 512), side(64, 17, 17), side(1, 500, 400), side(1, 256, 256)], [64, 64, 32, 32]);
    assert_eq!([side(1, 200, 200), side(1000, 16, 64), side(1, 1, 1)], [16, 16, 16]);
    assert!(choose_tiles(Some(48)).is_err());
}

#[test]
fn bases_of_products() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (batch, m, n, k) in [(1, 5, 4, 3), (2, 20, 33, 17), (1, 3, 4, 600), (1, 6, 2, 0)] {
            let (a, da) = several(&context, field, batch, (m, k), 1);
            let (b, db) = several(&context, field, batch, (k, n), 20);
            let (d, dd) = several(&context, field, batch, (m, n), 40);
            let bases = [
                Base::Array(whole(&dd, n, m)),
                Base::Array(whole(&dd, n, m).conj()),
                Base::Array(Operand::row(&dd)),
                Base::Identity(0, 0),
            ];
            for (which, base) in bases.into_iter().enumerate() {
                let dc = Array::room(&context, field, &[batch, m, n]).unwrap();
                let operands = (whole(&da, k, m), whole(&db, n, k), whole(&dc, n, m));
                let product = Product::new(batch, (m, n, k), operands.0, operands.1, operands.2);
                run(&context, product.alpha(-1.0).plus(base), field, true);
                let expected: Vec<c64> = (0..batch)
                    .flat_map(|i| {
                        let base = match which {
                            0 => d[i].clone(),
                            1 => d[i].conj(),
                            2 => M::new(m, n, |_, j| d[0].data[j]),
                            _ => M::new(m, n, |i, j| c64::from(f64::from(i == j))),
                        };
                        base.plus(&a[i].times(&b[i]), -1.0).data
                    })
                    .collect();
                near(&fetched(&dc), &expected, 32.0, &format!("{field:?} {batch} {m} {n} {k} {which}"));
            }
        }
    }
}

#[test]
fn a_part_of_a_matrix_is_an_operand() {
    let Some(context) = device() else { return };
    let field = Field::Real;
    let (a, c) = (drawn(field, 6, 9, 1), drawn(field, 6, 9, 2));
    let da = sent(&context, field, &[6, 9], &a.data);
    let dc = sent(&context, field, &[6, 9], &c.data);
    let (x, y) = (Operand::new(&da, 0, 9), Operand::new(&dc, 0, 9));
    // C[2.., 3..] = A[1..4, :2] A[3.., 5..]
    let product = Product::new(1, (3, 4, 2), x.from(1, 0), x.from(3, 5), y.from(2, 3));
    run(&context, product, field, false);
    let expected = M::new(6, 9, |i, j| {
        if !(2..5).contains(&i) || !(3..7).contains(&j) {
            return c.at(i, j);
        }
        (0..2).map(|k| a.at(i - 1, k) * a.at(3 + k, j + 2)).sum()
    });
    near(&fetched(&dc), &expected.data, 8.0, "part");
}

#[test]
fn more_matrices_rows_and_columns_than_a_dispatch_has() {
    let Some(context) = device() else { return };
    let field = Field::Real;
    let tall = 16 * 65535 + 3;
    for (batch, m, n) in [(65535 + 2, 1, 2), (1, tall, 1), (1, 1, tall)] {
        let (a, b) = (numbers(field, batch * m, 1), numbers(field, batch * n, 2));
        let (da, db) = (sent(&context, field, &[batch, m, 1], &a), sent(&context, field, &[batch, 1, n], &b));
        let dc = Array::room(&context, field, &[batch, m, n]).unwrap();
        let (x, y, c) = (Operand::new(&da, m, 1), Operand::new(&db, n, n), Operand::new(&dc, m * n, n));
        run(&context, Product::new(batch, (m, n, 1), x, y, c), field, false);
        let at = |b_: usize, i: usize, j: usize| a[b_ * m + i] * b[b_ * n + j];
        let expected: Vec<c64> = (0..batch * m * n).map(|k| at(k / (m * n), k / n % m, k % n)).collect();
        near(&fetched(&dc), &expected, 2.0, &format!("{batch} {m} {n}"));
    }
}

#[test]
fn deep_products_are_sums_of_parts() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (count, p, q) in [(0, 2, 3), (5, 3, 4), (511, 2, 2), (515, 5, 3), (1030, 17, 2)] {
            let (more, after) = (3, 2);
            let (a, b) = (drawn(field, count + more, p, 1), drawn(field, count + after, q, 2));
            let c = drawn(field, p, q, 3);
            let da = sent(&context, field, &[a.rows, p], &a.data);
            let db = sent(&context, field, &[b.rows, q], &b.data);
            let dc = sent(&context, field, &[p, q], &c.data);
            let (x, y) =
                (Operand::new(&da, 0, p).from(more, 0).t(), Operand::new(&db, 0, q).from(after, 0).conj());
            let product = Product::new(1, (p, q, count), x, y, Operand::new(&dc, 0, q)).alpha(-2.0).add();
            run(&context, product, field, true);
            let part = |x: &M, from: usize| M::new(count, x.columns, |i, j| x.at(i + from, j));
            let expected = c.plus(&part(&a, more).t().times(&part(&b, after).conj()), -2.0);
            near(&fetched(&dc), &expected.data, 32.0, &format!("{field:?} {count} {p} {q}"));
        }
    }
}

#[test]
fn depth_does_not_add_up_rounding() {
    let Some(context) = device() else { return };
    // the same number throughout: in one chain of additions every rounding has the same sign
    let count = 1 << 20;
    let x = sent(&context, Field::Real, &[count, 1], &vec![c64::from(f64::from(0.3f32)); count]);
    let c = Array::room(&context, Field::Real, &[1, 1]).unwrap();
    let operand = Operand::new(&x, 0, 1);
    let product = Product::new(1, (1, 1, count), operand.t(), operand, Operand::new(&c, 0, 1));
    run(&context, product, Field::Real, true);
    let expected = f64::from(0.3f32).powi(2) * count as f64;
    near(&fetched(&c), &[c64::from(expected)], 1000.0, "depth");
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let array = sent(&context, Field::Real, &[2, 2], &numbers(Field::Real, 4, 1));
    let mut record = Record::new(&context).unwrap();
    let operand = Operand::new(&array, 0, 2);
    let long = Product::new(usize::MAX / 4, (2, 2, 2), operand, operand, operand);
    assert!(matches!(long.record(&mut record, Field::Real), Err(Error::Device(_))));
    assert!(matches!(Array::room(&context, Field::Complex, &[1 << 40]), Err(Error::Device(_))));
}
