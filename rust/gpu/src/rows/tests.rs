//! Against sums in double precision, on both sides of the parts.

use super::*;
use crate::Kind;
use crate::testing::{C, M, device, fetched, near, numbers, sent};

#[test]
fn sums_of_columns() {
    let Some(context) = device() else { return };
    for kind in [Kind::Real, Kind::Complex] {
        for (rows, columns) in [(1, 5), (64, 1), (65, 3), (4097, 2)] {
            let data = numbers(kind, rows * columns, rows as u64);
            let x = sent(&context, kind, &[rows, columns], &data);
            let out = Array::room(&context, kind, &[columns]).unwrap();
            let mut record = Record::new(&context).unwrap();
            sum(&mut record, (rows, columns), &x, &out).unwrap();
            record.submit().unwrap();
            let expected: Vec<C> = (0..columns)
                .map(|j| (0..rows).fold(C::default(), |s, i| s.plus(data[i * columns + j])))
                .collect();
            near(&fetched(&out), &expected, 64.0, &format!("{kind:?} {rows} {columns}"));
        }
    }
}

#[test]
fn gathered_products_of_few_and_many_rows() {
    let Some(context) = device() else { return };
    for kind in [Kind::Real, Kind::Complex] {
        for (count, p, q) in [(0, 2, 3), (5, 3, 4), (511, 2, 2), (515, 5, 3), (1030, 17, 2)] {
            let (more, after) = (3, 2);
            let a = M { rows: count + more, columns: p, data: numbers(kind, (count + more) * p, 1) };
            let b = M { rows: count + after, columns: q, data: numbers(kind, (count + after) * q, 2) };
            let da = sent(&context, kind, &[a.rows, p], &a.data);
            let db = sent(&context, kind, &[b.rows, q], &b.data);
            let c = Array::room(&context, kind, &[p, q]).unwrap();
            let mut record = Record::new(&context).unwrap();
            gathered(&mut record, count, (p, q), (&da, &db), (more, after), &c).unwrap();
            record.submit().unwrap();
            let part = |x: &M, from: usize| M::new(count, x.columns, |i, j| x.at(i + from, j));
            let expected = part(&a, more).t().times(&part(&b, after).conj());
            near(&fetched(&c), &expected.data, 32.0, &format!("{kind:?} {count} {p} {q}"));
        }
    }
}

#[test]
fn products_of_rows_and_a_row_in_all_places() {
    let Some(context) = device() else { return };
    let kind = Kind::Complex;
    let a = M { rows: 9, columns: 4, data: numbers(kind, 36, 3) };
    let b = M { rows: 3, columns: 4, data: numbers(kind, 12, 4) };
    let row = numbers(kind, 3, 5);
    let da = sent(&context, kind, &[9, 4], &a.data);
    let db = sent(&context, kind, &[3, 4], &b.data);
    let dr = sent(&context, kind, &[3], &row);
    let c = Array::room(&context, kind, &[9, 3]).unwrap();
    let mut record = Record::new(&context).unwrap();
    spread(&mut record, &dr, 9, &c).unwrap();
    times(&mut record, (9, 3, 4), &da, Operand::new(&db, 0, 4).t(), &c, true).unwrap();
    record.submit().unwrap();
    let expected = a.times(&b.t()).plus(&M::new(9, 3, |_, j| row[j]), 1.0);
    near(&fetched(&c), &expected.data, 8.0, "times");
}
