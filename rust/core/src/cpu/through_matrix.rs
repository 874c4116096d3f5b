//! Applying an operator through its matrix: W is formed, then multiplied; its gradient is that of W, pulled back.
//!
//! A long stack of small matrices is served part by part, so that matrices are multiplied while they are in the cache, and no
//! array of all of them is written where none is saved.

use super::{Act, ActVjp, Cpu};
use crate::argument::part;
use crate::batch::by_lanes;
use crate::error::Result;
use crate::kernels::{Buffer, Matrices, collected, lanes};
use crate::operator::Saves;
use crate::scalar::Scalar;
use crate::scratch::most;
use crate::sizes::size;
use std::ops::Range;

/// Bytes of the matrices of a part, for each thread.
const PART: usize = 1 << 18;

/// Calls `f` with the operators and their indices, part by part; returns false, without a call, where the stack is served as one. Parts
/// begin with a full vector of matrices: a matrix shares its vector with the same others as in the whole stack, so
/// that its bits do not depend on the parts.
fn in_parts<T: Scalar, O: Cpu<T> + ?Sized>(
    operator: &O,
    threads: usize,
    mut f: impl FnMut(&dyn Cpu<T>, Range<usize>) -> Result<()>,
) -> Result<bool> {
    let (batch, (p, q), width) = (operator.batch(), operator.shape(), lanes::<T::Real>());
    let bytes = (p * q * size_of::<T>()).max(1);
    let parts = batch / (PART.saturating_mul(most(threads)) / bytes).max(width);
    if parts < 2 || !by_lanes::<T>(batch, p.max(q)) {
        return Ok(false);
    }
    let each = batch / parts / width * width;
    for i in 0..parts {
        let range = i * each..if i + 1 < parts { (i + 1) * each } else { batch };
        if !operator.part(range.clone(), &mut |part| f(part, range.clone()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// [`Cpu::apply`], which saves W.
pub fn apply<T: Scalar, O: Cpu<T> + ?Sized>(operator: &O, call: Act<'_, T>) -> Result<()> {
    let Act { x, rows, side, out, mut saved, budget } = call;
    if out.is_empty() && saved.is_none() {
        return Ok(());
    }
    let (batch, (p, q)) = (operator.batch(), operator.shape());
    let parted = in_parts(operator, budget.threads, |operator, own| {
        let (from, to) = (part(x.len(), batch, &own), part(out.len(), batch, &own));
        let saved = saved.as_deref_mut().map(|saved| &mut saved[part(batch * p * q, batch, &own)]);
        apply(operator, Act { x: &x[from], out: &mut out[to], saved, rows, side, budget })
    })?;
    if parted {
        return Ok(());
    }
    let mut own = Buffer::zeroed(if saved.is_none() { size("matrix", &[batch, p, q])? } else { 0 })?;
    let w = saved.unwrap_or(&mut own);
    operator.matrix(w, None, budget)?;
    Matrices { data: w, batch, p, q, interleaved: false }.apply(x, rows, side, out, budget.threads)
}

/// [`Cpu::apply_vjp`].
pub fn apply_vjp<T: Scalar, O: Cpu<T> + ?Sized>(operator: &O, call: ActVjp<'_, '_, T>) -> Result<()> {
    let ActVjp { saved, x, ct, rows, side, bars, mut x_bar, budget } = call;
    let wanted = bars.iter().any(|bar| !bar.is_empty());
    if !wanted && x_bar.as_ref().is_none_or(|x_bar| x_bar.is_empty()) {
        return Ok(());
    }
    let (batch, (p, q)) = (operator.batch(), operator.shape());
    let elements = size("matrix", &[batch, p, q])?;
    let parted = in_parts(operator, budget.threads, |operator, own| {
        let (from, to) = (part(x.len(), batch, &own), part(ct.len(), batch, &own));
        let saved = saved.map(|saved| &saved[part(elements, batch, &own)]);
        let x_bar = x_bar.as_deref_mut().map(|x_bar| &mut x_bar[from.clone()]);
        let mut bars = collected(bars.iter_mut().map(|bar| bar.part(batch, &own)))?;
        let (x, ct, bars) = (&x[from], &ct[to], &mut bars[..]);
        apply_vjp(operator, ActVjp { saved, x, ct, rows, side, bars, x_bar, budget })
    })?;
    if parted {
        return Ok(());
    }
    let mut own = Buffer::zeroed(if saved.is_none() { elements } else { 0 })?;
    if saved.is_none() {
        operator.matrix(&mut own, None, budget)?;
    }
    let w = saved.unwrap_or(&own);
    let mut w_bar = Buffer::zeroed(if wanted { elements } else { 0 })?;
    let room = wanted.then_some(&mut w_bar[..]);
    let matrices = Matrices { data: w, batch, p, q, interleaved: false };
    matrices.apply_vjp(x, ct, rows, side, room, x_bar, budget.threads)?;
    if wanted {
        let start = (operator.matrix_saves()? == Saves::Result).then_some(w);
        operator.matrix_vjp(start, &w_bar, bars, budget)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::Bar;
    use crate::operators::{Last, cayley::Cayley, exponential::Exponential};
    use crate::{Budget, Side};

    /// Every result of a stack of three-dimensional rotations of two vectors each, W saved or not.
    fn results(operator: &dyn Cpu<f32>, x: &[f32], saving: bool, threads: usize) -> [Vec<f32>; 3] {
        let (count, budget) = (operator.batch(), Budget::of(threads));
        let (mut w, mut y) = (vec![f32::NAN; 9 * count], vec![f32::NAN; x.len()]);
        operator.apply(x, 2, Side::Forward, &mut y, saving.then_some(&mut w[..]), &budget).unwrap();
        let (mut upper, mut x_bar) = (vec![f32::NAN; 3 * count], vec![f32::NAN; x.len()]);
        let bars = &mut [Bar::Own(&mut upper), Bar::None];
        let saved = saving.then_some(&w[..]);
        operator.apply_vjp(saved, x, &y, 2, Side::Forward, bars, Some(&mut x_bar), &budget).unwrap();
        [y, upper, x_bar]
    }

    #[test]
    fn parts_of_a_stack_change_no_bit() {
        let count = 60_011;
        let numbers = |len: usize, by: f32| (0..len).map(|i| (i as f32 * by).sin()).collect::<Vec<_>>();
        let (u, x) = (numbers(3 * count, 0.7), numbers(6 * count, 1.3));
        let cayley = Cayley::new(&u, None, Last::None, count, 3).unwrap();
        let exponential = Exponential::new(&u, None, count, 3).unwrap();
        for operator in [&cayley as &dyn Cpu<f32>, &exponential] {
            let mut w = vec![0.0; 9 * count];
            operator.matrix(&mut w, None, &Budget::of(1)).unwrap();
            let expected = results(operator, &x, true, 1);
            let y = |row: usize, i: usize| -> f32 {
                (0..3).map(|j| w[row / 2 * 9 + 3 * i + j] * x[3 * row + j]).sum()
            };
            assert!((0..6 * count).all(|i| (expected[0][i] - y(i / 3, i % 3)).abs() < 1e-5));
            for (saving, threads) in [(false, 1), (false, 2), (true, 3)] {
                assert!(results(operator, &x, saving, threads) == expected, "{saving} {threads}");
            }
            let mut parts = 0;
            assert!(
                in_parts(operator, 1, |_, _| {
                    parts += 1;
                    Ok(())
                })
                .unwrap()
            );
            assert_eq!(parts, 8);
        }
    }
}
