//! The states of a gated unit.

use super::setting::Setting;
use super::{Gated, UNIT};
use crate::cell::{Pass, of};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::{Array, Field};
use isometry_core::Result;

/// The states, (T, B, n); zeros past the ends of sequences.
pub fn forward(gated: &Gated<'_>) -> Result<Array> {
    submitted(gated.arguments.x.context(), |record| record_forward(record, gated))
}

/// The same in a call that is being recorded.
pub(crate) fn record_forward(record: &mut Record, gated: &Gated<'_>) -> Result<Array> {
    let setting = Setting::new(gated)?;
    let cell = &setting.cell;
    let (batch, n, wide) = (cell.batch, cell.n, cell.wide);
    let x = cell.inputs(record)?;
    let inputs = cell.drive(record, &x)?;
    let states = cell.of_rows(n)?;
    let (state, products) = (cell.of_step(n)?, cell.of_step(wide)?);
    let (z, reset) = match gated.after {
        true => (cell.room(&[1])?, cell.room(&[1])?),
        false => (cell.of_step(n)?, cell.of_step(n)?),
    };
    record.fill(&state, gated.arguments.h0)?;
    let arrays = [
        ("own", cell.own()),
        ("inputs", &inputs),
        ("products", &products),
        ("state", &state),
        ("z", &z),
        ("reset", &reset),
        ("states", &states),
    ];
    let pass = Pass { count: cell.pairs(batch), ..Pass::default() };
    for k in 0..cell.steps {
        let into = of(&products, wide);
        if gated.after {
            Product::new(1, (batch, wide, n), of(&state, n), cell.w(0).t(), into)
                .plus(setting.hidden(0))
                .record(record, Field::Real)?;
            cell.run(record, &UNIT, &arrays, Pass { k, ..pass })?;
            continue;
        }
        Product::new(1, (batch, 2 * n, n), of(&state, n), cell.w(0).t(), into).record(record, Field::Real)?;
        cell.run(record, &UNIT, &arrays, Pass { k, ..pass })?;
        Product::new(1, (batch, n, n), of(&reset, n), cell.w(2 * n).t(), into.from(0, 2 * n))
            .record(record, Field::Real)?;
        cell.run(record, &UNIT, &arrays, Pass { k, phase: 1, ..pass })?;
    }
    Ok(states)
}
