//! The states of a gated unit.

use super::setting::{Pass, Setting, of};
use super::{Gated, UNIT};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::{Array, Field};
use isometry_core::Result;

/// The states, (T, B, n); zeros past the ends of sequences.
pub fn forward(gated: &Gated<'_>) -> Result<Array> {
    submitted(gated.x.context(), |record| record_forward(record, gated))
}

/// The same in a call that is being recorded.
pub(crate) fn record_forward(record: &mut Record, gated: &Gated<'_>) -> Result<Array> {
    let setting = Setting::new(gated)?;
    let (batch, n, wide) = (setting.batch, setting.n, 3 * setting.n);
    let x = setting.inputs(record)?;
    let inputs = setting.drive(record, &x)?;
    let states = setting.of_rows(n)?;
    let (state, products) = (setting.of_step(n)?, setting.of_step(wide)?);
    let (z, reset) = match gated.after {
        true => (setting.room(&[1])?, setting.room(&[1])?),
        false => (setting.of_step(n)?, setting.of_step(n)?),
    };
    record.fill(&state, gated.h0)?;
    let arrays = [
        ("own", setting.own()),
        ("inputs", &inputs),
        ("products", &products),
        ("state", &state),
        ("z", &z),
        ("reset", &reset),
        ("states", &states),
    ];
    let pass = Pass { count: setting.pairs(batch), ..Pass::default() };
    for k in 0..setting.steps {
        let into = of(&products, wide);
        if gated.after {
            Product::new(1, (batch, wide, n), of(&state, n), setting.w(0).t(), into)
                .plus(setting.hidden(0))
                .record(record, Field::Real)?;
            setting.run(record, &UNIT, &arrays, Pass { k, ..pass })?;
            continue;
        }
        Product::new(1, (batch, 2 * n, n), of(&state, n), setting.w(0).t(), into)
            .record(record, Field::Real)?;
        setting.run(record, &UNIT, &arrays, Pass { k, ..pass })?;
        Product::new(1, (batch, n, n), of(&reset, n), setting.w(2 * n).t(), into.from(0, 2 * n))
            .record(record, Field::Real)?;
        setting.run(record, &UNIT, &arrays, Pass { k, phase: 1, ..pass })?;
    }
    Ok(states)
}
