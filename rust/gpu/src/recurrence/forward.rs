//! The states of a recurrence.

use super::sequence::{Sequence, Setting};
use super::steps::{Route, Steps, route};
use crate::Array;
use crate::device::Record;
use crate::operator::submitted;
use isometry_core::Result;

/// The states, (T, B, n); zeros past the ends of sequences.
pub fn forward(sequence: &Sequence<'_>) -> Result<Array> {
    submitted(sequence.x.context(), |record| record_forward(record, sequence))
}

/// The same in a call that is being recorded.
pub(crate) fn record_forward(record: &mut Record, sequence: &Sequence<'_>) -> Result<Array> {
    let setting = Setting::new(sequence)?;
    run(record, &setting, route(setting.field, setting.batch, setting.n))
}

pub(super) fn run(record: &mut Record, setting: &Setting<'_>, route: Route) -> Result<Array> {
    let x = setting.inputs(record)?;
    let z = setting.drive(record, &x)?;
    let states = if setting.on_input {
        let states = Array::room(record.context(), setting.field, &setting.shape())?;
        setting.phi.value(record, &z, &states)?;
        states
    } else {
        z
    };
    let steps = Steps {
        back: false,
        reverse: setting.sequence.reverse,
        phi: &setting.step_phi(),
        m: &setting.transposed(record)?,
        start: setting.sequence.h0,
        lengths: setting.lengths.as_ref(),
        y: None,
        rows: &states,
        along: None,
    };
    steps.record(record, route)?;
    Ok(states)
}
