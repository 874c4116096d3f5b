//! The states of a rotational unit.

use super::setting::Setting;
use super::{FIRST, SECOND, UNIT, WHOLE};
use crate::cell::{Cell, Pass, States, of};
use crate::device::Record;
use crate::product::Product;
use crate::shader::arrays;
use isometry_core::Result;

/// The states, (T, B, n), zeros past the ends of sequences, and the memory (B, n, n) after the last step of each sequence, if there is one.
pub(crate) fn forward(record: &mut Record<'_>, cell: &Cell<'_>) -> Result<States> {
    let setting = Setting::new(cell);
    let (batch, n, wide, pitch) = (cell.batch, cell.n, 2 * cell.n, setting.frame());
    let x = cell.inputs(record)?;
    let inputs = cell.drive(record, &x)?;
    let states = cell.of_rows(n)?;
    let (state, products) = (cell.of_step(n)?, cell.of_step(wide)?);
    let memory = setting.memory.then(|| setting.start(record)).transpose()?;
    let (frames, heard) = match &memory {
        Some(_) => (cell.of_step(pitch)?, cell.of_step(n)?),
        None => (cell.room(&[1])?, cell.room(&[1])?),
    };
    record.fill(&state, cell.some("h0"))?;
    let arrays = arrays![own = cell.own()?, inputs, products, heard, state, frames, states];
    for k in 0..cell.steps {
        Product::new(1, (batch, wide, n), of(&state, n), cell.w(0)?.t(), of(&products, wide))
            .record(record, cell.field)?;
        let pass = |record: &mut Record<'_>, phase: u32| {
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
