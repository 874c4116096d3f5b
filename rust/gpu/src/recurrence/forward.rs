//! The states of a recurrence.

use super::sequence::{Sequence, Setting};
use super::steps::{Route, Steps, route};
use crate::Array;
use crate::device::Record;
use isometry_core::error::Result;

/// States, and what a backward pass wants besides.
#[derive(Clone, Debug)]
pub struct Forward {
    /// (T, B, n); zeros past the ends of sequences
    pub states: Array,
    /// z (T, B, n) where phi' cannot be read off the states; unspecified past the ends of sequences. A backward pass computes them
    /// from the states if they are absent.
    pub arguments: Option<Array>,
}

/// The states; with `save`, also what [`backward`](super::backward()) wants.
pub fn forward(sequence: &Sequence<'_>, save: bool) -> Result<Forward> {
    let setting = Setting::new(sequence)?;
    run(&setting, save, route(setting.kind, setting.batch, setting.n))
}

pub(super) fn run(setting: &Setting<'_>, save: bool, route: Route) -> Result<Forward> {
    let mut record = Record::new(setting.context())?;
    let x = setting.inputs(&mut record)?;
    let z = setting.drive(&mut record, &x)?;
    let save = save && setting.wants_arguments();
    let (states, arguments, kept) = if setting.on_input {
        let states = Array::room(record.context(), setting.kind, &setting.shape())?;
        setting.law.value(&mut record, &z, &states)?;
        (states, save.then_some(z), None)
    } else {
        let kept =
            if save { Some(Array::room(record.context(), setting.kind, &setting.shape())?) } else { None };
        (z, kept.clone(), kept)
    };
    let steps = Steps {
        back: false,
        reverse: setting.sequence.reverse,
        law: &setting.step_law(),
        m: &setting.transposed(&mut record)?,
        start: setting.sequence.h0,
        lengths: setting.lengths.as_ref(),
        y: None,
        rows: &states,
        kept: kept.as_ref(),
    };
    steps.record(&mut record, route)?;
    record.submit()?;
    Ok(Forward { states, arguments })
}
