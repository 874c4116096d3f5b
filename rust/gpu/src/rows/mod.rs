//! Sums of the columns of many rows.

#[cfg(test)]
mod tests;

use crate::Array;
use crate::device::Record;
use crate::shader::shaders;
use isometry_core::Result;

shaders! {
    SUM "sum" "sum.wgsl" &[&[("EACH", EACH as u32)]],
}

/// Rows that are summed by one thread.
const EACH: usize = 64;

/// The sums of the columns of x, (rows, columns).
pub fn sum(record: &mut Record<'_>, sizes: (usize, usize), x: &Array, out: &Array) -> Result<()> {
    add_up(record, sizes, x, out, false)
}

/// The sums of the columns of x, (rows, columns), added to out or written to it.
pub fn add_up(
    record: &mut Record<'_>,
    (rows, columns): (usize, usize),
    x: &Array,
    out: &Array,
    add: bool,
) -> Result<()> {
    let field = x.field();
    let (mut from, mut rows) = (x.clone(), rows);
    loop {
        let left = rows.div_ceil(EACH).max(1);
        let into =
            if left <= 1 { out.clone() } else { Array::room(record.context(), field, &[left, columns])? };
        let add = u32::from(add && left <= 1);
        let sizes = [(left * columns) as u32, rows as u32, columns as u32, add];
        record.elements(SUM.of(field), &[("x", &from), ("out", &into)], &sizes, left * columns)?;
        if left <= 1 {
            return Ok(());
        }
        (from, rows) = (into, left);
    }
}
