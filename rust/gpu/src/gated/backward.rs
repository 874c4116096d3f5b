//! The gradients of a gated unit.

use super::{FACTORS, SCALED, UNIT_VJP};
use crate::Array;
use crate::cell::{Cell, Gradients, Outcome, Pass, of};
use crate::device::Record;
use crate::product::{Base, Operand, Product};
use crate::rows::sum;
use crate::shader::arrays;
use isometry_core::Result;

/// The gradients.
pub(crate) fn backward(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    outcome: &Outcome,
    out: &mut Gradients,
) -> Result<()> {
    let x = cell.inputs(record)?;
    let all = Factors::new(record, cell, &x, &outcome.states)?;
    let (bars, along) = (cell.of_rows(cell.wide)?, cell.along(record, out)?);
    let start = steps(record, cell, &all.factors, (&outcome.ct, &bars, along.as_ref()), out)?;
    cell.input_gradients(record, &bars, &x, out)?;
    gradients(record, cell, &all, &bars, out)?;
    out.put("h0", start);
    cell.bias_gradient(record, along.as_ref(), out)
}

/// What all steps need, of all rows.
struct Factors {
    /// The states before the steps.
    previous: Array,
    /// (z, f_z, r, f_r, y)
    factors: Array,
    /// r * h, where W_h acts on it.
    reset: Option<Array>,
}

impl Factors {
    fn new(record: &mut Record<'_>, cell: &Cell<'_>, x: &Array, states: &Array) -> Result<Self> {
        let (n, wide, rows, after) = (cell.n, cell.wide, cell.rows(), cell.flag(0));
        let previous = cell.previous(record, states)?;
        let inputs = cell.drive(record, x)?;
        let add = |record: &mut Record<'_>, a: &Array, columns: usize, from: usize| {
            let (a, w) = (of(a, n), cell.w(from)?.t());
            Product::new(1, (rows, columns, n), a, w, of(&inputs, wide).from(0, from))
                .add()
                .record(record, cell.field)
        };
        add(record, &previous, 2 * n, 0)?;
        let factors = cell.of_rows(5 * n)?;
        let (products, reset) = match after {
            true => (cell.of_rows(n)?, cell.room(&[1])?),
            false => (previous.clone(), cell.of_rows(n)?),
        };
        if after {
            let hidden = cell.some("hidden_bias");
            Product::new(1, (rows, n, n), of(&previous, n), cell.w(2 * n)?.t(), of(&products, n))
                .plus(hidden.map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias))))
                .record(record, cell.field)?;
        }
        let arrays = arrays![own = cell.own()?, inputs, products, previous, factors, reset];
        let pass = Pass { count: cell.pairs(rows), ..Pass::default() };
        cell.run(record, &FACTORS, &arrays, pass)?;
        if !after {
            add(record, &reset, n, 2 * n)?;
            cell.run(record, &FACTORS, &arrays, Pass { phase: 1, ..pass })?;
        }
        Ok(Factors { previous, factors, reset: (!after).then_some(reset) })
    }
}

/// Steps back: the cotangents of the arguments of z, r and c of all steps, and that of the state before them.
fn steps(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    factors: &Array,
    (ct, bars, along): (&Array, &Array, Option<&Array>),
    out: &Gradients,
) -> Result<Array> {
    let (batch, n, wide, after) = (cell.batch, cell.n, cell.wide, cell.flag(0));
    let (g, now) = (cell.of_step(n)?, cell.of_step(wide)?);
    let none = cell.room(&[1])?;
    let s = if after { none.clone() } else { cell.of_step(n)? };
    record.fill(&g, None)?;
    let (own, sums) = (cell.own()?, along.unwrap_or(&none));
    let arrays = |ct| arrays![own, ct = ct, factors, g, bars, now, along = sums];
    let pass = Pass { count: cell.pairs(batch), flag: along.is_some(), ..Pass::default() };
    for k in (0..cell.steps).rev() {
        cell.run(record, &UNIT_VJP, &arrays(ct), Pass { k, ..pass })?;
        if !after {
            let c = of(&now, wide).from(0, 2 * n);
            Product::new(1, (batch, n, n), c, cell.w(2 * n)?, of(&s, n)).record(record, cell.field)?;
            cell.run(record, &UNIT_VJP, &arrays(&s), Pass { k, phase: 1, ..pass })?;
        }
        let depth = if after { wide } else { 2 * n };
        cell.through_products(record, k, (&now, depth), (&g, n), out)?;
    }
    Ok(g)
}

/// The gradients of W and of c_h.
fn gradients(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    all: &Factors,
    own_bars: &Array,
    out: &mut Gradients,
) -> Result<()> {
    let (n, rows, bars) = (cell.n, cell.rows(), of(own_bars, cell.wide));
    // the cotangents of W_h h + c_h
    let mut behind = None;
    if cell.flag(0) && (out.wants("w") || out.wants("hidden_bias")) {
        let own = cell.of_rows(n)?;
        let arrays = [("factors", &all.factors), ("bars", own_bars), ("out", &own)];
        cell.run(record, &SCALED, &arrays, Pass { count: rows * n, ..Pass::default() })?;
        behind = Some(own);
    }
    if out.wants("w") {
        let gates = cell.weight_gradient(record, 2 * n, bars, of(&all.previous, n))?;
        let left = behind.as_ref().map_or(bars.from(0, 2 * n), |own| of(own, n));
        let right = of(all.reset.as_ref().unwrap_or(&all.previous), n);
        let (of_h, bar) = (cell.weight_gradient(record, n, left, right)?, cell.room(&[3, n, n])?);
        record.join(&[&gates, &of_h], &bar)?;
        out.put("w", bar);
    }
    if let (true, Some(own)) = (out.wants("hidden_bias"), &behind) {
        let bar = cell.room(&[n])?;
        sum(record, (rows, n), own, &bar)?;
        out.put("hidden_bias", bar);
    }
    Ok(())
}
