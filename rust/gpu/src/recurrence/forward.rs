//! The states of a recurrence.

use super::sequence::{Sequence, Setting};
use super::steps::{Route, Steps, route};
use crate::Array;
use crate::device::Record;
use isometry_core::error::Result;

/// The states, (T, B, n); zeros past the ends of sequences.
pub fn forward(sequence: &Sequence<'_>) -> Result<Array> {
    let setting = Setting::new(sequence)?;
    run(&setting, route(setting.field, setting.batch, setting.n))
}

pub(super) fn run(setting: &Setting<'_>, route: Route) -> Result<Array> {
    let mut record = Record::new(setting.context())?;
    let x = setting.inputs(&mut record)?;
    let z = setting.drive(&mut record, &x)?;
    let states = if setting.on_input {
        let states = Array::room(record.context(), setting.field, &setting.shape())?;
        setting.phi.value(&mut record, &z, &states)?;
        states
    } else {
        z
    };
    let steps = Steps {
        back: false,
        reverse: setting.sequence.reverse,
        phi: &setting.step_phi(),
        m: &setting.transposed(&mut record)?,
        start: setting.sequence.h0,
        lengths: setting.lengths.as_ref(),
        y: None,
        rows: &states,
        along: None,
    };
    steps.record(&mut record, route)?;
    record.submit()?;
    Ok(states)
}
