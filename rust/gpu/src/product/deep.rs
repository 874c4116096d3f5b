//! Products of great depth, C = alpha A^T B over many rows of A and B, in which a single workgroup would add
//! all rows for its tile of C, and sums of products. C is then the sum of a batch of products over parts of the depth: parallel
//! work and less rounding.

use super::{Base, Operand, Product};
use crate::device::Record;
use crate::rows::add_up;
use crate::{Array, Field};
use isometry_core::Result;

/// Least depth of a part.
const LEAST: usize = 256;
/// The number of 64 x 64 tiles that occupies a device.
const TILES: usize = 512;

impl<'a> Product<'a> {
    /// Like [`Product::record`], in parts where that helps, for a single product whose C is its whole array.
    pub(crate) fn record_deep(&self, record: &mut Record<'_>, field: Field) -> Result<()> {
        record_sum(&[*self], record, field)
    }

    /// In how many parts, and the depth of each.
    fn parts(&self) -> (usize, usize) {
        let Product { batch, sizes: (m, n, k), c, .. } = *self;
        let parts = (TILES / (m.div_ceil(64) * n.div_ceil(64)).max(1)).min(k / LEAST);
        if batch != 1 || parts < 2 || c.array.len() != m * n || (c.row, c.column) != (n, 1) {
            return (1, k);
        }
        let each = k.div_ceil(parts);
        (k.div_ceil(each), each)
    }

    /// Its parts, as a batch that writes to matrices of C's shape.
    fn apart(&self, (count, each): (usize, usize), into: Operand<'a>) -> Self {
        let Product { sizes: (m, n, k), a, b, .. } = *self;
        let (a, b) = (Operand { batch: each * a.column, ..a }, Operand { batch: each * b.row, ..b });
        Product { batch: count, sizes: (m, n, each), a, b, c: into, split: Some(k), ..*self }
    }
}

/// C = the sum of products of one C; all but the first have no base.
pub(crate) fn record_sum(products: &[Product<'_>], record: &mut Record<'_>, field: Field) -> Result<()> {
    let Some(first) = products.first() else { return Ok(()) };
    let parts: Vec<_> = products.iter().map(Product::parts).collect();
    let all = parts.iter().map(|(count, _)| count).sum();
    if all == products.len() {
        first.record(record, field)?;
        return products[1..].iter().try_for_each(|product| product.add().record(record, field));
    }
    let (m, n, _) = first.sizes;
    let sums = Array::room(record.context(), field, &[all, m * n])?;
    let (own, mut from) = (matches!(first.base, Base::Own), 0);
    for (product, &part) in products.iter().zip(&parts) {
        let base = if matches!(product.base, Base::Own) { Base::Nothing } else { product.base };
        let into = Operand::new(&sums, m * n, n).later(from);
        product.plus(base).apart(part, into).record(record, field)?;
        from += part.0;
    }
    add_up(record, (all, m * n), &sums, first.c.array, own)
}
