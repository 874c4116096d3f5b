//! Against sums in double precision, on both sides of the parts, written or added to what is there.

use super::*;
use crate::Field;
use crate::testing::{device, fetched, near, numbers, sent};
use isometry_core::scalar::c64;

#[test]
fn sums_of_columns() {
    let Some(context) = device() else { return };
    for (field, add) in
        [Field::Real, Field::Complex].into_iter().flat_map(|field| [(field, false), (field, true)])
    {
        for (rows, columns) in [(1, 5), (64, 1), (65, 3), (4097, 2)] {
            let (data, before) = (numbers(field, rows * columns, rows as u64), numbers(field, columns, 5));
            let x = sent(&context, field, &[rows, columns], &data);
            let out = sent(&context, field, &[columns], &before);
            let mut record = Record::new(&context).unwrap();
            add_up(&mut record, (rows, columns), &x, &out, add).unwrap();
            record.submit().unwrap();
            let start = |j: usize| if add { before[j] } else { c64::default() };
            let sum = |j: usize| (0..rows).fold(start(j), |sum, i| sum + data[i * columns + j]);
            let expected: Vec<c64> = (0..columns).map(sum).collect();
            near(&fetched(&out), &expected, 64.0, &format!("{field:?} {rows} {columns} {add}"));
        }
    }
}
