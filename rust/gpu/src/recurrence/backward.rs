//! The gradients of a recurrence: the steps turn a copy of the cotangents into z_bar, then products over all rows give the gradients.

use super::steps::{Route, Steps, route};
use super::within;
use crate::Array;
use crate::cell::{Cell, Gradients, Outcome, of};
use crate::device::Record;
use crate::product::Product;
use isometry_core::Result;

/// The gradients.
pub(crate) fn backward(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    outcome: &Outcome,
    out: &mut Gradients,
) -> Result<()> {
    pull(record, cell, outcome, out, route(cell.field, cell.batch, cell.n))
}

pub(crate) fn pull(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    Outcome { states, ct, .. }: &Outcome,
    out: &mut Gradients,
    route: Route,
) -> Result<()> {
    let x = cell.inputs(record)?;
    let arguments = cell.wants_arguments().then(|| cell.arguments(record, &x, states)).transpose()?;
    let state = within(record, ct, cell.lengths.as_ref())?;
    let along = cell.along(record, out)?;
    let steps = Steps {
        back: true,
        reverse: cell.reverse,
        phi: &cell.step_phi(),
        m: cell.transition()?,
        start: None,
        lengths: cell.lengths.as_ref(),
        y: Some(arguments.as_ref().filter(|_| !cell.on_input()).unwrap_or(states)),
        rows: &state,
        along: along.as_ref().filter(|_| !cell.on_input()),
    };
    steps.record(record, route)?;
    // the cotangents of V x_t + b
    let mut input = state.clone();
    if let Some(z) = arguments.filter(|_| cell.on_input()) {
        input = cell.of_rows(cell.n)?;
        cell.phi.pull(record, &z, &state, &input, along.as_ref())?;
    }
    cell.input_gradients(record, &input, &x, out)?;
    through_states(record, cell, states, &state, out)?;
    cell.bias_gradient(record, along.as_ref(), out)
}

/// The gradients of W and of h0 from the cotangents of W h_{t-1} at all steps, (T, B, n).
fn through_states(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    states: &Array,
    state: &Array,
    out: &mut Gradients,
) -> Result<()> {
    let Cell { n, batch, field, reverse, .. } = *cell;
    let h0 = cell.some("h0");
    let begun = (out.wants("transition") && h0.is_some()) || out.wants("h0");
    let begin = if begun { Some(cell.begin(record, state)?) } else { None };
    if out.wants("transition") {
        let bar = cell.room(&[n, n])?;
        let (now, before) = if reverse { (0, batch) } else { (batch, 0) };
        let (left, right) = (of(state, n).from(now, 0).t(), of(states, n).from(before, 0).conj());
        Product::new(1, (n, n, cell.rows() - batch), left, right, of(&bar, n)).record_deep(record, field)?;
        if let (Some(h0), Some((begin, row))) = (h0, &begin) {
            let (left, right) = (of(begin, n).from(*row, 0).t(), of(h0, n).conj());
            Product::new(1, (n, n, batch), left, right, of(&bar, n)).add().record_deep(record, field)?;
        }
        out.put("transition", bar);
    }
    if let (true, Some((begin, row))) = (out.wants("h0"), &begin) {
        let bar = cell.of_step(n)?;
        let (left, right) = (of(begin, n).from(*row, 0), cell.w(0)?.conj());
        Product::new(1, (batch, n, n), left, right, of(&bar, n)).record(record, field)?;
        out.put("h0", bar);
    }
    Ok(())
}
