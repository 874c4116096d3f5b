//! The states of a recurrence.

use super::steps::{Route, Steps, route};
use crate::Array;
use crate::cell::{Cell, States};
use crate::device::Record;
use isometry_core::Result;

/// The states, (T, B, n); zeros past the ends of sequences.
pub(crate) fn forward(record: &mut Record<'_>, cell: &Cell<'_>) -> Result<States> {
    Ok((run(record, cell, route(cell.field, cell.batch, cell.n))?, None))
}

pub(crate) fn run(record: &mut Record<'_>, cell: &Cell<'_>, route: Route) -> Result<Array> {
    let x = cell.inputs(record)?;
    let z = cell.drive(record, &x)?;
    let states = if cell.on_input() {
        let states = cell.of_rows(cell.n)?;
        cell.phi.value(record, &z, &states)?;
        states
    } else {
        z
    };
    let steps = Steps {
        back: false,
        reverse: cell.reverse,
        phi: &cell.step_phi(),
        m: &cell.transposed(record)?,
        start: cell.some("h0"),
        lengths: cell.lengths.as_ref(),
        y: None,
        rows: &states,
        along: None,
    };
    steps.record(record, route)?;
    Ok(states)
}
