//! T^-1 of the triangles T = striu(U^H U) + diag(U^H U) / 2: diagonal blocks first, then pairs of neighbours,
//!
//! ```text
//! (T_1 T_12; 0 T_2)^-1 = (X_1, -X_1 T_12 X_2; 0, X_2),
//! ```
//!
//! until one block is left.

use crate::Array;
use crate::device::Record;
use crate::product::{Operand, Product};
use crate::shader::{Shader, Variant, groups};
use isometry_core::error::Result;

/// Rows of a diagonal block, as in triangle.wgsl.
const SIDE: usize = 32;

/// triangle.wgsl
pub(crate) static TRIANGLE: Shader =
    Shader { name: "triangle", source: include_str!("triangle.wgsl"), variants: &[&[]] };

/// T^-1 from gram = U^H U, (batch, m, m), zeros below the diagonal.
///
/// A dispatch must not read memory that it writes, so two copies are kept, each computed from the other.
pub(super) fn inverse(record: &mut Record, gram: &Array) -> Result<Array> {
    let (field, batch, m) = (gram.field(), gram.shape()[0], gram.shape()[1]);
    let room = |record: &Record| Array::room(record.context(), field, gram.shape());
    let (out, twin, between) = (room(record)?, room(record)?, room(record)?);
    let copies = if m > SIDE { &[&out, &twin][..] } else { &[&out][..] };
    for copy in copies {
        let (arrays, blocks) = ([("gram", gram), ("out", *copy)], batch * m.div_ceil(SIDE));
        let variant = Variant { shader: &TRIANGLE, field, constants: &[] };
        record.dispatch(variant, &arrays, &[blocks as u32, m as u32], groups(blocks))?;
    }
    let mut size = SIDE;
    while size < m {
        for Pairs { count, apart, top, right } in level(batch, m, size) {
            let part = |array, i, j| Operand::new(array, apart, m).from(i, j);
            let low = top + size;
            let (t, x) = (part(gram, top, low), part(&out, low, low));
            Product::new(count, (size, right, right), t, x, part(&between, top, low))
                .record(record, field)?;
            for (from, to) in [(&out, &twin), (&twin, &out)] {
                let (x, c) = (part(from, top, top), part(to, top, low));
                let product = Product::new(count, (size, right, size), x, part(&between, top, low), c);
                product.alpha(-1.0).record(record, field)?;
            }
        }
        size *= 2;
    }
    Ok(out)
}

/// Pairs of neighbouring blocks of one size, `apart` numbers from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pairs {
    count: usize,
    apart: usize,
    /// The first row of the first pair.
    top: usize,
    /// The size of the second block.
    right: usize,
}

/// The pairs of a level, all with a first block of this size. Those of a single matrix are a batch; of many matrices, the matrices.
fn level(batch: usize, m: usize, size: usize) -> Vec<Pairs> {
    let tops = (0..m - size).step_by(2 * size);
    let pair = |count, apart, top| Pairs { count, apart, top, right: size.min(m - top - size) };
    if batch != 1 {
        return tops.map(|top| pair(batch, m * m, top)).collect();
    }
    let whole = m / (2 * size);
    let first = (whole > 0).then(|| pair(whole, 2 * size * (m + 1), 0));
    first.into_iter().chain(tops.skip(whole).map(|top| pair(1, 0, top))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_pairs_of_one_matrix_are_a_batch() {
        let all = [64, 100, 130, 512].map(|m| level(1, m, 32));
        let pairs = |count, apart, top, right| Pairs { count, apart, top, right };
        assert_eq!(all[0], [pairs(1, 64 * 65, 0, 32)]);
        assert_eq!(all[1], [pairs(1, 64 * 101, 0, 32), pairs(1, 0, 64, 4)]);
        assert_eq!(all[2], [pairs(2, 64 * 131, 0, 32)]);
        assert_eq!(all[3], [pairs(8, 64 * 513, 0, 32)]);
        assert_eq!(level(3, 100, 32), [pairs(3, 10000, 0, 32), pairs(3, 10000, 64, 4)]);
    }
}
