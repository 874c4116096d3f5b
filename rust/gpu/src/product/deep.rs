//! Products of great depth, C = alpha A^T B over many rows of A and B, in which a single workgroup would add
//! all rows for its tile of C. Instead C is the sum of a batch of products over parts of the depth: parallel
//! work and less rounding.

use super::{Operand, Product};
use crate::device::Record;
use crate::rows::add_up;
use crate::{Array, Field};
use isometry_core::error::Result;

/// Least depth of a part.
const LEAST: usize = 256;
/// The number of 64 x 64 tiles that occupies a device.
const TILES: usize = 512;

impl Product<'_> {
    /// Like [`Product::record`], in parts where that helps, for a single product whose C is its whole array.
    pub(crate) fn record_deep(&self, record: &mut Record, field: Field) -> Result<()> {
        let Product { batch, sizes: (m, n, k), a, b, c, alpha, beta } = *self;
        let parts = (TILES / (m.div_ceil(64) * n.div_ceil(64)).max(1)).min(k / LEAST);
        if batch != 1 || parts < 2 || c.array.len() != m * n || (c.row, c.column) != (n, 1) {
            return self.record(record, field);
        }
        let (each, rest) = (k / parts, k % parts);
        let all = parts + usize::from(rest > 0);
        let sums = Array::room(record.context(), field, &[all, m * n])?;
        let part = |from: usize, depth: usize, count: usize| {
            let a = Operand { batch: each * a.column, ..a.from(0, from * each) };
            let b = Operand { batch: each * b.row, ..b.from(from * each, 0) };
            let into = Operand::new(&sums, m * n, n).later(from);
            Product::new(count, (m, n, depth), a, b, into).alpha(alpha)
        };
        part(0, each, parts).record(record, field)?;
        if rest > 0 {
            part(parts, rest, 1).record(record, field)?;
        }
        add_up(record, (all, m * n), &sums, c.array, beta)
    }
}
