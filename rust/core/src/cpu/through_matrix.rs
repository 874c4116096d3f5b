//! Applying an operator through its matrix: W is formed, then multiplied; the gradient of W is pulled back.

use super::Cpu;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::Result;
use crate::kernels::{Buffer, Matrices};
use crate::operator::Saves;
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::size;

/// [`Cpu::apply`], which saves W.
pub fn apply<T: Scalar, O: Cpu<T> + ?Sized>(
    operator: &O,
    x: &[T],
    rows: usize,
    side: Side,
    out: &mut [T],
    saved: Option<&mut [T]>,
    budget: &Budget<'_>,
) -> Result<()> {
    if out.is_empty() && saved.is_none() {
        return Ok(());
    }
    let (batch, (p, q)) = (operator.batch(), operator.shape());
    let mut own = Buffer::zeroed(if saved.is_none() { size("matrix", &[batch, p, q])? } else { 0 })?;
    let w = saved.unwrap_or(&mut own);
    operator.matrix(w, None, budget)?;
    Matrices { data: w, batch, p, q }.apply(x, rows, side, out, budget.threads)
}

/// [`Cpu::apply_vjp`].
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
pub fn apply_vjp<T: Scalar, O: Cpu<T> + ?Sized>(
    operator: &O,
    saved: Option<&[T]>,
    x: &[T],
    ct: &[T],
    rows: usize,
    side: Side,
    bars: &mut [Bar<'_, T>],
    x_bar: Option<&mut [T]>,
    budget: &Budget<'_>,
) -> Result<()> {
    let wanted = bars.iter().any(|bar| !bar.is_empty());
    if !wanted && x_bar.as_ref().is_none_or(|x_bar| x_bar.is_empty()) {
        return Ok(());
    }
    let (batch, (p, q)) = (operator.batch(), operator.shape());
    let elements = size("matrix", &[batch, p, q])?;
    let mut own = Buffer::zeroed(if saved.is_none() { elements } else { 0 })?;
    if saved.is_none() {
        operator.matrix(&mut own, None, budget)?;
    }
    let w = saved.unwrap_or(&own);
    let mut w_bar = Buffer::zeroed(if wanted { elements } else { 0 })?;
    let room = wanted.then_some(&mut w_bar[..]);
    Matrices { data: w, batch, p, q }.apply_vjp(x, ct, rows, side, room, x_bar, budget.threads)?;
    if wanted {
        let start = (operator.matrix_saves()? == Saves::Result).then_some(w);
        operator.matrix_vjp(start, &w_bar, bars, budget)?;
    }
    Ok(())
}
