//! Many rows at once: products with one matrix, A^T conj(B) summed over the rows, sums of columns, one row in all places.

#[cfg(test)]
mod tests;

use crate::Array;
use crate::device::Record;
use crate::product::{Operand, Product};
use crate::shader::{Shader, Variant};
use isometry_core::error::Result;

/// sum.wgsl
pub static SUM: Shader =
    Shader { name: "sum", source: include_str!("sum.wgsl"), variants: &[&[("EACH", EACH as u32)]] };
/// spread.wgsl
pub static SPREAD: Shader = Shader { name: "spread", source: include_str!("spread.wgsl"), variants: &[&[]] };

/// Rows that are summed by one thread.
const EACH: usize = 64;
/// Rows of a product: a dispatch has at most 65535 tiles of 16 rows along an axis.
const MOST: usize = 1 << 19;
/// Fewest rows of a part of a sum of products.
const LEAST: usize = 256;
/// Tiles of 64 x 64 that occupy a device.
const TILES: usize = 512;

/// C = A op(B), or C += A op(B), for A with `count` rows of k numbers, which are all of its array, and C with rows of n.
pub fn times(
    record: &mut Record,
    (count, n, k): (usize, usize, usize),
    a: &Array,
    b: Operand<'_>,
    c: &Array,
    add: bool,
) -> Result<()> {
    for first in (0..count).step_by(MOST) {
        let (from, into) = (Operand::new(a, 0, k).from(first, 0), Operand::new(c, 0, n).from(first, 0));
        let product = Product::new(1, (MOST.min(count - first), n, k), from, b, into);
        let product = if add { product.add() } else { product };
        product.record(record, a.kind())?;
    }
    Ok(())
}

/// C = A^T conj(B), C p x q, for `count` rows of A and B, from the rows `from` on. Many rows are summed in parts, for parallel
/// work and less rounding.
pub fn gathered(
    record: &mut Record,
    count: usize,
    (p, q): (usize, usize),
    (a, b): (&Array, &Array),
    from: (usize, usize),
    c: &Array,
) -> Result<()> {
    let tiles = p.div_ceil(64) * q.div_ceil(64);
    let parts = (TILES / tiles.max(1)).min(count / LEAST).max(1);
    let (each, rest) = (count / parts, count % parts);
    let product = |batch: usize, rows: usize, after: usize, part: usize, c: &Array, record: &mut Record| {
        let left = Operand::new(a, each * p, p).from(from.0 + after, 0).t();
        let right = Operand::new(b, each * q, q).from(from.1 + after, 0).conj();
        let into = Operand::new(c, p * q, q).from(part * p, 0);
        Product::new(batch, (p, q, rows), left, right, into).record(record, a.kind())
    };
    if parts == 1 {
        return product(1, count, 0, 0, c, record);
    }
    let all = parts + usize::from(rest > 0);
    let sums = Array::room(record.context(), a.kind(), &[all, p * q])?;
    product(parts, each, 0, 0, &sums, record)?;
    if rest > 0 {
        product(1, rest, parts * each, parts, &sums, record)?;
    }
    sum(record, (all, p * q), &sums, c)
}

/// The sums of the columns of x, (rows, columns).
pub fn sum(record: &mut Record, (rows, columns): (usize, usize), x: &Array, out: &Array) -> Result<()> {
    let kind = x.kind();
    let (mut from, mut rows) = (x.clone(), rows);
    loop {
        let left = rows.div_ceil(EACH).max(1);
        let into =
            if left <= 1 { out.clone() } else { Array::room(record.context(), kind, &[left, columns])? };
        let sizes = [(left * columns) as u32, rows as u32, columns as u32];
        let variant = Variant { shader: &SUM, kind, constants: SUM.variants[0] };
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
    let variant = Variant { shader: &SPREAD, kind: x.kind(), constants: &[] };
    record.elements(variant, &[("x", x), ("out", out)], &[count as u32, columns as u32], count)
}
