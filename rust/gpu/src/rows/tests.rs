//! Against sums in double precision, on both sides of the parts.

use super::*;
use crate::Field;
use crate::testing::{device, fetched, near, numbers, sent};
use isometry_core::scalar::c64;

#[test]
fn sums_of_columns() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (rows, columns) in [(1, 5), (64, 1), (65, 3), (4097, 2)] {
            let data = numbers(field, rows * columns, rows as u64);
            let x = sent(&context, field, &[rows, columns], &data);
            let out = Array::room(&context, field, &[columns]).unwrap();
            let mut record = Record::new(&context).unwrap();
            sum(&mut record, (rows, columns), &x, &out).unwrap();
            record.submit().unwrap();
            let expected: Vec<c64> =
                (0..columns).map(|j| (0..rows).map(|i| data[i * columns + j]).sum()).collect();
            near(&fetched(&out), &expected, 64.0, &format!("{field:?} {rows} {columns}"));
        }
    }
}

#[test]
fn sums_are_added_to_what_is_there() {
    let Some(context) = device() else { return };
    for (rows, columns) in [(3, 2), (4097, 2)] {
        let (data, before) =
            (numbers(Field::Complex, rows * columns, 4), numbers(Field::Complex, columns, 5));
        let x = sent(&context, Field::Complex, &[rows, columns], &data);
        let out = sent(&context, Field::Complex, &[columns], &before);
        let mut record = Record::new(&context).unwrap();
        add_up(&mut record, (rows, columns), &x, &out, true).unwrap();
        record.submit().unwrap();
        let expected: Vec<c64> =
            (0..columns).map(|j| (0..rows).fold(before[j], |s, i| s + data[i * columns + j])).collect();
        near(&fetched(&out), &expected, 64.0, &format!("{rows}"));
    }
}
