//! The states of a rotational unit.

use super::setting::Setting;
use super::{FIRST, Rotational, SECOND, UNIT, WHOLE};
use crate::cell::{Pass, of};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::{Array, Field};
use isometry_core::Result;

/// The states, (T, B, n), zeros past the ends of sequences, and the memory (B, n, n) after the last step of each sequence, if there is one.
pub fn forward(rum: &Rotational<'_>) -> Result<(Array, Option<Array>)> {
    submitted(rum.arguments.x.context(), |record| record_forward(record, rum))
}

/// The same in a call that is being recorded.
pub(crate) fn record_forward(record: &mut Record, rum: &Rotational<'_>) -> Result<(Array, Option<Array>)> {
    let setting = Setting::new(rum)?;
    let cell = &setting.cell;
    let (batch, n, wide, pitch) = (cell.batch, cell.n, 2 * cell.n, setting.frame());
    let x = cell.inputs(record)?;
    let inputs = cell.drive(record, &x)?;
    let states = cell.of_rows(n)?;
    let (state, products) = (cell.of_step(n)?, cell.of_step(wide)?);
    let memory = rum.memory.then(|| setting.start(record)).transpose()?;
    let (frames, heard) = match &memory {
        Some(_) => (cell.of_step(pitch)?, cell.of_step(n)?),
        None => (cell.room(&[1])?, cell.room(&[1])?),
    };
    record.fill(&state, rum.arguments.h0)?;
    let arrays = [
        ("own", cell.own()),
        ("inputs", &inputs),
        ("products", &products),
        ("heard", &heard),
        ("state", &state),
        ("frames", &frames),
        ("states", &states),
    ];
    for k in 0..cell.steps {
        Product::new(1, (batch, wide, n), of(&state, n), cell.w(0).t(), of(&products, wide))
            .record(record, Field::Real)?;
        let pass = |record: &mut Record, phase: u32| {
            cell.run_groups(record, &UNIT, &arrays, batch, Pass { k, pitch, phase, ..Pass::default() })
        };
        match &memory {
            None => pass(record, WHOLE)?,
            Some(memory) => {
                pass(record, FIRST)?;
                setting.turn(record, (k, 1), (&frames, pitch, false), memory, &heard)?;
                pass(record, SECOND)?;
            }
        }
    }
    Ok((states, memory))
}
