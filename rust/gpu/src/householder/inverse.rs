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
use crate::shader::{Shader, Variant};
use isometry_core::error::Result;

/// Rows of a diagonal block, as in triangle.wgsl.
const SIDE: usize = 32;

/// triangle.wgsl
pub static TRIANGLE: Shader =
    Shader { name: "triangle", source: include_str!("triangle.wgsl"), variants: &[&[]] };

/// T^-1 from gram = U^H U, (batch, m, m), zeros below the diagonal.
///
/// A dispatch does not read the memory that it writes, so that two copies are kept, each written from the other.
pub(super) fn inverse(record: &mut Record, gram: &Array) -> Result<Array> {
    let (kind, batch, m) = (gram.kind(), gram.shape()[0], gram.shape()[1]);
    let room = |record: &Record| Array::room(record.context(), kind, gram.shape());
    let (out, twin, between) = (room(record)?, room(record)?, room(record)?);
    let part = |array, i, j| Operand::new(array, m * m, m).from(i, j);
    let copies = if m > SIDE { &[&out, &twin][..] } else { &[&out][..] };
    for copy in copies {
        let arrays = [("gram", gram), ("out", *copy)];
        let groups = [m.div_ceil(SIDE), 1, batch];
        record.dispatch(Variant { shader: &TRIANGLE, kind, constants: &[] }, &arrays, &[m as u32], groups)?;
    }
    let mut size = SIDE;
    while size < m {
        for top in (0..m - size).step_by(2 * size) {
            let (low, right) = (top + size, size.min(m - top - size));
            let (t, x) = (part(gram, top, low), part(&out, low, low));
            Product::new(batch, (size, right, right), t, x, part(&between, top, low)).record(record, kind)?;
            for (from, to) in [(&out, &twin), (&twin, &out)] {
                let (x, c) = (part(from, top, top), part(to, top, low));
                let product = Product::new(batch, (size, right, size), x, part(&between, top, low), c);
                product.alpha(-1.0).record(record, kind)?;
            }
        }
        size *= 2;
    }
    Ok(out)
}
