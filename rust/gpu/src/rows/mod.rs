//! Many rows at once: sums of columns, and one row copied to all.

#[cfg(test)]
mod tests;

use crate::Array;
use crate::device::Record;
use crate::shader::{Shader, Variant};
use isometry_core::error::Result;

/// sum.wgsl
pub(crate) static SUM: Shader =
    Shader { name: "sum", source: include_str!("sum.wgsl"), variants: &[&[("EACH", EACH as u32)]] };
/// spread.wgsl
pub(crate) static SPREAD: Shader =
    Shader { name: "spread", source: include_str!("spread.wgsl"), variants: &[&[]] };

/// Rows that are summed by one thread.
const EACH: usize = 64;

/// The sums of the columns of x, (rows, columns).
pub fn sum(record: &mut Record, sizes: (usize, usize), x: &Array, out: &Array) -> Result<()> {
    add_up(record, sizes, x, out, 0.0)
}

/// out = beta out + the sums of the columns of x, (rows, columns); out is not read where beta is 0.
pub fn add_up(
    record: &mut Record,
    (rows, columns): (usize, usize),
    x: &Array,
    out: &Array,
    beta: f32,
) -> Result<()> {
    let field = x.field();
    let (mut from, mut rows) = (x.clone(), rows);
    loop {
        let left = rows.div_ceil(EACH).max(1);
        let into =
            if left <= 1 { out.clone() } else { Array::room(record.context(), field, &[left, columns])? };
        let beta = if left <= 1 { beta } else { 0.0 };
        let sizes = [(left * columns) as u32, rows as u32, columns as u32, beta.to_bits()];
        let variant = Variant { shader: &SUM, field, constants: SUM.variants[0] };
        record.elements(variant, &[("x", &from), ("out", &into)], &sizes, left * columns)?;
        if left <= 1 {
            return Ok(());
        }
        (from, rows) = (into, left);
    }
}

/// Writes the row x into all `rows` rows of out.
pub fn spread(record: &mut Record, x: &Array, rows: usize, out: &Array) -> Result<()> {
    let (count, columns) = (rows * x.len(), x.len());
    let variant = Variant { shader: &SPREAD, field: x.field(), constants: &[] };
    record.elements(variant, &[("x", x), ("out", out)], &[count as u32, columns as u32], count)
}
