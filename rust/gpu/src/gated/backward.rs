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
    let bars = Bars::new(record, cell, &all, &outcome.ct, out)?;
    cell.input_gradients(record, &bars.bars, &x, out)?;
    bars.gradients(record, cell, &all, out)
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

/// Cotangents of all steps.
struct Bars {
    /// Of the arguments of z, r and c, (T, B, 3 n).
    bars: Array,
    /// Of the state before the first step, (B, n).
    start: Array,
    /// The summands of the gradient of the bias of the activation.
    along: Option<Array>,
}

impl Bars {
    fn new(
        record: &mut Record<'_>,
        cell: &Cell<'_>,
        all: &Factors,
        ct: &Array,
        out: &Gradients,
    ) -> Result<Self> {
        let summed = out.wants("activation_bias");
        let (batch, n, wide, after) = (cell.batch, cell.n, cell.wide, cell.flag(0));
        let (bars, g, now) = (cell.of_rows(wide)?, cell.of_step(n)?, cell.of_step(wide)?);
        let along = if summed { Some(cell.phi.along(record, cell.rows())?) } else { None };
        let none = cell.room(&[1])?;
        let s = if after { none.clone() } else { cell.of_step(n)? };
        record.fill(&g, None)?;
        let (own, factors, sums) = (cell.own()?, &all.factors, along.as_ref().unwrap_or(&none));
        let arrays = |ct| arrays![own, ct = ct, factors, g, bars, now, along = sums];
        let pass = Pass { count: cell.pairs(batch), flag: summed, ..Pass::default() };
        for k in (0..cell.steps).rev() {
            cell.run(record, &UNIT_VJP, &arrays(ct), Pass { k, ..pass })?;
            if !after {
                let c = of(&now, wide).from(0, 2 * n);
                Product::new(1, (batch, n, n), c, cell.w(2 * n)?, of(&s, n)).record(record, cell.field)?;
                cell.run(record, &UNIT_VJP, &arrays(&s), Pass { k, phase: 1, ..pass })?;
            }
            let depth = if after { wide } else { 2 * n };
            if k > 0 || out.wants("h0") {
                Product::new(1, (batch, n, depth), of(&now, wide), cell.w(0)?, of(&g, n))
                    .add()
                    .record(record, cell.field)?;
            }
        }
        Ok(Bars { bars, start: g, along })
    }

    /// Those that do not come from the inputs.
    fn gradients(
        &self,
        record: &mut Record<'_>,
        cell: &Cell<'_>,
        all: &Factors,
        out: &mut Gradients,
    ) -> Result<()> {
        let (n, rows, bars) = (cell.n, cell.rows(), of(&self.bars, cell.wide));
        // the cotangents of W_h h + c_h
        let mut behind = None;
        if cell.flag(0) && (out.wants("w") || out.wants("hidden_bias")) {
            let own = cell.of_rows(n)?;
            let arrays = [("factors", &all.factors), ("bars", &self.bars), ("out", &own)];
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
        out.put("h0", self.start.clone());
        if let Some(along) = &self.along {
            out.put("activation_bias", cell.phi.bias_bar(record, along)?);
        }
        Ok(())
    }
}
