//! The gradients of a gated unit.

use super::setting::{Pass, Setting, of};
use super::{FACTORS, Gated, PREVIOUS, SCALED, UNIT_VJP};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::recurrence::sequence::checked;
use crate::rows::sum;
use crate::{Array, Field};
use isometry_core::{Error, Result};

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of x.
    pub x: bool,
    /// Of W.
    pub w: bool,
    /// Of U.
    pub u: bool,
    /// Of b, also if it was absent.
    pub bias: bool,
    /// Of h0, also if it was absent.
    pub h0: bool,
    /// Of c_h, with the reset behind W_h only.
    pub hidden_bias: bool,
    /// Of the bias of the activation.
    pub activation_bias: bool,
}

/// The gradients, None where one was not wanted.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// (T, B, d)
    pub x: Option<Array>,
    /// Of W_z and W_r (2, n, n), and of W_h (n, n)
    pub w: Option<[Array; 2]>,
    /// (3, n, d)
    pub u: Option<Array>,
    /// (3, n)
    pub bias: Option<Array>,
    /// (B, n)
    pub h0: Option<Array>,
    /// (n)
    pub hidden_bias: Option<Array>,
    /// One per bias.
    pub activation_bias: Option<Array>,
}

/// The gradients from the states, zeros past the ends of sequences, and their cotangents, (T, B, n), ignored there.
pub fn backward(gated: &Gated<'_>, states: &Array, ct: &Array, wanted: Wanted) -> Result<Gradients> {
    submitted(gated.x.context(), |record| record_backward(record, gated, states, ct, wanted))
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
    let shape = [setting.steps, setting.batch, setting.n];
    checked("states", gated.x, states, &shape)?;
    checked("ct", gated.x, ct, &shape)?;
    setting.phi.check_wanted(wanted.activation_bias)?;
    if wanted.hidden_bias && !gated.after {
        return Err(Error::value("hidden_bias_bar", "belongs to reset \"after\" only"));
    }
    let x = setting.inputs(record)?;
    let all = Factors::new(record, &setting, &x, states)?;
    let bars = Bars::new(record, &setting, &all, ct, wanted.activation_bias)?;
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
        let (n, wide, rows, after) = (setting.n, 3 * setting.n, setting.rows(), setting.gated.after);
        let previous = setting.of_rows(n)?;
        let start = setting.gated.h0;
        let arrays = [("states", states), ("start", start.unwrap_or(states)), ("previous", &previous)];
        let pass = Pass { count: rows * n, flag: start.is_some(), ..Pass::default() };
        setting.run(record, &PREVIOUS, &arrays, pass)?;
        let inputs = setting.drive(record, x)?;
        let add = |record: &mut Record, a: &Array, columns: usize, from: usize| {
            let (a, w) = (of(a, n), setting.w(from).t());
            Product::new(1, (rows, columns, n), a, w, of(&inputs, wide).from(0, from))
                .add()
                .record(record, Field::Real)
        };
        add(record, &previous, 2 * n, 0)?;
        let factors = setting.of_rows(5 * n)?;
        let (products, reset) = match after {
            true => (setting.of_rows(n)?, setting.room(&[1])?),
            false => (previous.clone(), setting.of_rows(n)?),
        };
        if after {
            Product::new(1, (rows, n, n), of(&previous, n), setting.w(2 * n).t(), of(&products, n))
                .plus(setting.hidden(2 * n))
                .record(record, Field::Real)?;
        }
        let arrays = [
            ("own", setting.own()),
            ("inputs", &inputs),
            ("products", &products),
            ("previous", &previous),
            ("factors", &factors),
            ("reset", &reset),
        ];
        let pass = Pass { count: setting.pairs(rows), ..Pass::default() };
        setting.run(record, &FACTORS, &arrays, pass)?;
        if !after {
            add(record, &reset, n, 2 * n)?;
            setting.run(record, &FACTORS, &arrays, Pass { phase: 1, ..pass })?;
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
        let (batch, n, wide, after) = (setting.batch, setting.n, 3 * setting.n, setting.gated.after);
        let (bars, g, now) = (setting.of_rows(wide)?, setting.of_step(n)?, setting.of_step(wide)?);
        let along = if summed { Some(setting.phi.along(record, setting.rows())?) } else { None };
        let none = setting.room(&[1])?;
        let s = if after { none.clone() } else { setting.of_step(n)? };
        record.fill(&g, None)?;
        let arrays = |ct| {
            [
                ("own", setting.own()),
                ("ct", ct),
                ("factors", &all.factors),
                ("g", &g),
                ("bars", &bars),
                ("now", &now),
                ("along", along.as_ref().unwrap_or(&none)),
            ]
        };
        let pass = Pass { count: setting.pairs(batch), flag: summed, ..Pass::default() };
        for k in (0..setting.steps).rev() {
            setting.run(record, &UNIT_VJP, &arrays(ct), Pass { k, ..pass })?;
            if !after {
                let c = of(&now, wide).from(0, 2 * n);
                Product::new(1, (batch, n, n), c, setting.w(2 * n), of(&s, n)).record(record, Field::Real)?;
                setting.run(record, &UNIT_VJP, &arrays(&s), Pass { k, phase: 1, ..pass })?;
            }
            let depth = if after { wide } else { 2 * n };
            Product::new(1, (batch, n, depth), of(&now, wide), setting.w(0), of(&g, n))
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
        let (n, d, wide, rows) = (setting.n, setting.features, 3 * setting.n, setting.rows());
        let bars = of(&self.bars, wide);
        let mut out = Gradients::default();
        // the cotangents of W_h h + c_h
        let mut behind = None;
        if setting.gated.after && (wanted.w || wanted.hidden_bias) {
            let own = setting.of_rows(n)?;
            let arrays = [("factors", &all.factors), ("bars", &self.bars), ("out", &own)];
            setting.run(record, &SCALED, &arrays, Pass { count: rows * n, ..Pass::default() })?;
            behind = Some(own);
        }
        if wanted.w {
            let (gates, own) = (setting.room(&[2, n, n])?, setting.room(&[n, n])?);
            let right = of(&all.previous, n);
            Product::new(1, (2 * n, n, rows), bars.t(), right, of(&gates, n))
                .record_deep(record, Field::Real)?;
            let left = behind.as_ref().map_or(bars.from(0, 2 * n), |own| of(own, n)).t();
            let right = of(all.reset.as_ref().unwrap_or(&all.previous), n);
            Product::new(1, (n, n, rows), left, right, of(&own, n)).record_deep(record, Field::Real)?;
            out.w = Some([gates, own]);
        }
        if let (true, Some(own)) = (wanted.hidden_bias, &behind) {
            let bar = setting.room(&[n])?;
            sum(record, (rows, n), own, &bar)?;
            out.hidden_bias = Some(bar);
        }
        if wanted.x {
            let bar = setting.of_rows(d)?;
            Product::new(1, (rows, d, wide), bars, of(setting.gated.u, d), of(&bar, d))
                .record(record, Field::Real)?;
            out.x = Some(bar);
        }
        if wanted.u {
            let bar = setting.room(&[3, n, d])?;
            Product::new(1, (wide, d, rows), bars.t(), of(x, d), of(&bar, d))
                .record_deep(record, Field::Real)?;
            out.u = Some(bar);
        }
        if wanted.bias {
            let bar = setting.room(&[3, n])?;
            sum(record, (rows, wide), &self.bars, &bar)?;
            out.bias = Some(bar);
        }
        if wanted.h0 {
            out.h0 = Some(self.start.clone());
        }
        if let Some(along) = &self.along {
            out.activation_bias = Some(setting.phi.bias_bar(record, along)?);
        }
        Ok(out)
    }
}
