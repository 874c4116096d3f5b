//! The gradients of a gated unit.

use super::setting::Setting;
use super::{FACTORS, Gated, SCALED, UNIT_VJP};
use crate::cell::{self, Pass, of};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::rows::sum;
use crate::{Array, Field};
use isometry_core::{Error, Result};

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of the arguments of every cell.
    pub arguments: cell::Wanted,
    /// Of c_h, with the reset behind W_h only.
    pub hidden_bias: bool,
}

/// The gradients, None where one was not wanted.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// Those of W are two: of W_z and W_r (2n, n), and of W_h (n, n).
    pub arguments: cell::Gradients,
    /// (n)
    pub hidden_bias: Option<Array>,
}

/// The gradients from the states, zeros past the ends of sequences, and their cotangents, (T, B, n), ignored there.
pub fn backward(gated: &Gated<'_>, states: &Array, ct: &Array, wanted: Wanted) -> Result<Gradients> {
    submitted(gated.arguments.x.context(), |record| record_backward(record, gated, states, ct, wanted))
}

/// The same in a call that is being recorded.
pub(crate) fn record_backward(
    record: &mut Record,
    gated: &Gated<'_>,
    states: &Array,
    ct: &Array,
    wanted: Wanted,
) -> Result<Gradients> {
    let setting = Setting::new(gated)?;
    setting.cell.check_states("states", states)?;
    setting.cell.check_states("ct", ct)?;
    setting.cell.phi.check_wanted(wanted.arguments.activation_bias)?;
    if wanted.hidden_bias && !gated.after {
        return Err(Error::value("hidden_bias_bar", "belongs to reset \"after\" only"));
    }
    let x = setting.cell.inputs(record)?;
    let all = Factors::new(record, &setting, &x, states)?;
    let bars = Bars::new(record, &setting, &all, ct, wanted.arguments.activation_bias)?;
    bars.gradients(record, &setting, &all, &x, wanted)
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
    fn new(record: &mut Record, setting: &Setting<'_>, x: &Array, states: &Array) -> Result<Self> {
        let (cell, after) = (&setting.cell, setting.after);
        let (n, wide, rows) = (cell.n, cell.wide, cell.rows());
        let previous = cell.previous(record, states)?;
        let inputs = cell.drive(record, x)?;
        let add = |record: &mut Record, a: &Array, columns: usize, from: usize| {
            let (a, w) = (of(a, n), cell.w(from).t());
            Product::new(1, (rows, columns, n), a, w, of(&inputs, wide).from(0, from))
                .add()
                .record(record, Field::Real)
        };
        add(record, &previous, 2 * n, 0)?;
        let factors = cell.of_rows(5 * n)?;
        let (products, reset) = match after {
            true => (cell.of_rows(n)?, cell.room(&[1])?),
            false => (previous.clone(), cell.of_rows(n)?),
        };
        if after {
            Product::new(1, (rows, n, n), of(&previous, n), cell.w(2 * n).t(), of(&products, n))
                .plus(setting.hidden(2 * n))
                .record(record, Field::Real)?;
        }
        let arrays = [
            ("own", cell.own()),
            ("inputs", &inputs),
            ("products", &products),
            ("previous", &previous),
            ("factors", &factors),
            ("reset", &reset),
        ];
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
        record: &mut Record,
        setting: &Setting<'_>,
        all: &Factors,
        ct: &Array,
        summed: bool,
    ) -> Result<Self> {
        let (cell, after) = (&setting.cell, setting.after);
        let (batch, n, wide) = (cell.batch, cell.n, cell.wide);
        let (bars, g, now) = (cell.of_rows(wide)?, cell.of_step(n)?, cell.of_step(wide)?);
        let along = if summed { Some(cell.phi.along(record, cell.rows())?) } else { None };
        let none = cell.room(&[1])?;
        let s = if after { none.clone() } else { cell.of_step(n)? };
        record.fill(&g, None)?;
        let arrays = |ct| {
            [
                ("own", cell.own()),
                ("ct", ct),
                ("factors", &all.factors),
                ("g", &g),
                ("bars", &bars),
                ("now", &now),
                ("along", along.as_ref().unwrap_or(&none)),
            ]
        };
        let pass = Pass { count: cell.pairs(batch), flag: summed, ..Pass::default() };
        for k in (0..cell.steps).rev() {
            cell.run(record, &UNIT_VJP, &arrays(ct), Pass { k, ..pass })?;
            if !after {
                let c = of(&now, wide).from(0, 2 * n);
                Product::new(1, (batch, n, n), c, cell.w(2 * n), of(&s, n)).record(record, Field::Real)?;
                cell.run(record, &UNIT_VJP, &arrays(&s), Pass { k, phase: 1, ..pass })?;
            }
            let depth = if after { wide } else { 2 * n };
            Product::new(1, (batch, n, depth), of(&now, wide), cell.w(0), of(&g, n))
                .add()
                .record(record, Field::Real)?;
        }
        Ok(Bars { bars, start: g, along })
    }

    fn gradients(
        &self,
        record: &mut Record,
        setting: &Setting<'_>,
        all: &Factors,
        x: &Array,
        wanted: Wanted,
    ) -> Result<Gradients> {
        let cell = &setting.cell;
        let (n, rows, bars) = (cell.n, cell.rows(), of(&self.bars, cell.wide));
        let mut out = cell.input_gradients(record, &self.bars, x, wanted.arguments)?;
        // the cotangents of W_h h + c_h
        let mut behind = None;
        if setting.after && (wanted.arguments.w || wanted.hidden_bias) {
            let own = cell.of_rows(n)?;
            let arrays = [("factors", &all.factors), ("bars", &self.bars), ("out", &own)];
            cell.run(record, &SCALED, &arrays, Pass { count: rows * n, ..Pass::default() })?;
            behind = Some(own);
        }
        if wanted.arguments.w {
            let gates = cell.weight_gradient(record, 2 * n, bars, of(&all.previous, n))?;
            let left = behind.as_ref().map_or(bars.from(0, 2 * n), |own| of(own, n));
            let right = of(all.reset.as_ref().unwrap_or(&all.previous), n);
            out.w = Some(vec![gates, cell.weight_gradient(record, n, left, right)?]);
        }
        let mut hidden_bias = None;
        if let (true, Some(own)) = (wanted.hidden_bias, &behind) {
            let bar = cell.room(&[n])?;
            sum(record, (rows, n), own, &bar)?;
            hidden_bias = Some(bar);
        }
        if wanted.arguments.h0 {
            out.h0 = Some(self.start.clone());
        }
        if let Some(along) = &self.along {
            out.activation_bias = Some(cell.phi.bias_bar(record, along)?);
        }
        Ok(Gradients { arguments: out, hidden_bias })
    }
}
