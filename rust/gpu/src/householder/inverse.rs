//! T^-1 of the triangles T = striu(U^H U) + diag(U^H U) / 2: diagonal blocks first, then pairs of neighbours,
//!
//! ```text
//! (T_1 T_12; 0 T_2)^-1 = (X_1, -X_1 T_12 X_2; 0, X_2),
//! ```
//!
//! until one block is left.

use crate::Array;
use crate::device::Record;
use crate::shader::{groups, shaders};
use isometry_core::Result;

/// Rows of a diagonal block, as in triangle.wgsl.
const SIDE: usize = 32;
/// Columns and rows of a workgroup of pairs.wgsl.
const WIDTH: usize = 16;
const HEIGHT: usize = 64;
/// The most rows of a block whose pair takes a single dispatch.
const WHOLE: usize = 128;

shaders! {
    TRIANGLE "triangle" "triangle.wgsl",
    PAIRS "pairs" "pairs.wgsl",
}

/// T^-1 from gram = U^H U, (batch, m, m), zeros below the diagonal.
pub(super) fn inverse(record: &mut Record<'_>, gram: &Array) -> Result<Array> {
    let [out, between] = [(); 2].map(|()| Array::room(record.context(), gram.field(), gram.shape()));
    let out = out?;
    inverse_into(record, gram.shape()[0], gram, &out, &between?)?;
    Ok(out)
}

/// Those of the first matrices, to `out`; `between` is room for products.
pub(crate) fn inverse_into(
    record: &mut Record<'_>,
    batch: usize,
    gram: &Array,
    out: &Array,
    between: &Array,
) -> Result<()> {
    let (field, m) = (gram.field(), gram.shape()[1]);
    let blocks = batch * m.div_ceil(SIDE);
    let arrays = [("gram", gram), ("out", out)];
    record.dispatch(TRIANGLE.of(field), &arrays, &[blocks as u32, m as u32], groups(blocks))?;
    let arrays = [("gram", gram), ("x", out), ("between", between)];
    let mut size = SIDE;
    while size < m {
        let pairs = (m - size).div_ceil(2 * size);
        let (high, products) =
            if size <= WHOLE { (1, &[(0, 1)][..]) } else { (size.div_ceil(HEIGHT), &[(0, 0), (1, 1)][..]) };
        let count = batch * pairs * (size / WIDTH) * high;
        let [count32, m32, size32, pairs, high] = [count, m, size, pairs, high].map(|size| size as u32);
        for &(first, last) in products {
            let sizes = [count32, m32, size32, pairs, high, first, last];
            record.dispatch(PAIRS.of(field), &arrays, &sizes, groups(count))?;
        }
        size *= 2;
    }
    Ok(())
}
