//! The Hadamard transform of rows, H_n = H_{2^k} (x) H_p: a product with H_p, then butterflies, up to ten levels in a dispatch.

#[cfg(test)]
mod tests;

use crate::array::zeros;
use crate::device::Record;
use crate::operator::submitted;
use crate::product::{Operand, Product};
use crate::shader::{groups, shaders};
use crate::{Array, Field};
use isometry_core::operators::hadamard::Order;
use isometry_core::{Error, Result, Side};

shaders! {
    BUTTERFLIES "butterflies" "butterflies.wgsl",
}

/// Numbers of a workgroup, as in butterflies.wgsl, and levels of a dispatch.
const MOST: usize = 1024;
const LEVELS: u32 = MOST.ilog2();

/// scale sqrt(n) H_n x of rows (..., n), or H_n^T x.
pub fn transform(x: &Array, scale: f32, side: Side) -> Result<Array> {
    let n = x.shape().last().copied().unwrap_or(0);
    let order =
        Order::of(n).ok_or_else(|| Error::value("x", format!("has rows of {n} numbers: no order")))?;
    submitted(x.context(), &|| false, |record| record_transform(record, x, scale, side, order))
}

fn record_transform(
    record: &mut Record<'_>,
    x: &Array,
    scale: f32,
    side: Side,
    order: Order,
) -> Result<Array> {
    let (field, p, len) = (x.field(), order.p, x.len());
    let room = || Array::room(x.context(), field, x.shape());
    let mut from = x.clone();
    if p > 1 {
        let block = paley(x, field, order)?;
        let (out, rows) = (room()?, len / p);
        let h = Operand::new(&block, 0, p);
        // y = x H_p^T
        let h = if side == Side::Forward { h.t() } else { h };
        let alpha = if order.levels == 0 { scale } else { 1.0 };
        Product::new(1, (rows, p, p), Operand::new(&from, 0, p), h, Operand::new(&out, 0, p))
            .alpha(alpha)
            .record(record, field)?;
        from = out;
        if order.levels == 0 {
            return Ok(from);
        }
    }
    let mut done = 0;
    loop {
        let (levels, stride, out) = ((order.levels - done).min(LEVELS), p << done, room()?);
        done += levels;
        let last = if done == order.levels { scale } else { 1.0 };
        let sizes = [len as u32, stride as u32, levels, last.to_bits()];
        record.dispatch(
            BUTTERFLIES.of(field),
            &[("x", &from), ("out", &out)],
            &sizes,
            groups(len.div_ceil(MOST)),
        )?;
        if done == order.levels {
            return Ok(out);
        }
        from = out;
    }
}

/// H_p, (p, p).
fn paley(x: &Array, field: Field, order: Order) -> Result<Array> {
    let (p, negative, parts) = (order.p, order.negative()?, field.parts());
    let mut numbers = zeros::<f32>(p * p * parts)?;
    for at in 0..p * p {
        numbers[at * parts] = if negative(at / p, at % p) { -1.0 } else { 1.0 };
    }
    Array::upload(x.context(), field, &[p, p], &numbers)
}
