//! `recurrence*`: h <- phi(W h + V x + b) over a sequence, W any operator that is applied step by step.

use crate::operator::{Arguments, Bars as OwnBars, first};
use crate::place::Place;
use crate::sequence::{Arrays, Bars, Ct, Given, GivenBars, States};
use crate::{by_dtype, detached};
use isometry_core::operators::view;
use isometry_core::{Budget, recurrence as core};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// States of the sequence, or what is returned and kept of them, with the transition applied by the object's own steps.
#[pyfunction]
pub fn recurrence<'py>(
    py: Python<'py>,
    object: &str,
    arguments: Bound<'py, PyTuple>,
    sequence: Given<'py>,
    states: States<'py>,
    place: Place,
) -> PyResult<()> {
    by_dtype!("x", &sequence.0, T => {
        let arrays = Arrays::<T>::new(&sequence)?;
        let arguments = Arguments::new(object, &arguments)?;
        let own = arguments.given();
        let mut states = states.outputs(&arrays.run)?;
        let (sequence, states) = (arrays.view(), states.view());
        detached::run_interruptible(py, |cancel| {
            let (operator, budget) = (view(object, &own)?, Budget { threads: place.threads(), cancel });
            place.forward(object, operator, &sequence, states, &budget)
        })
    })
}

/// Gradients of everything from the states, or what was kept of them, and their cotangents.
#[pyfunction]
pub fn recurrence_vjp<'py>(
    py: Python<'py>,
    object: &str,
    arguments: Bound<'py, PyTuple>,
    sequence: Given<'py>,
    states: States<'py>,
    ct: Bound<'py, PyAny>,
    bars: Bound<'py, PyTuple>,
    sequence_bars: GivenBars<'py>,
    place: Place,
) -> PyResult<()> {
    by_dtype!("x", &sequence.0, T => {
        let arrays = Arrays::<T>::new(&sequence)?;
        let arguments = Arguments::new(object, &arguments)?;
        let mut bars = OwnBars::new(object, &arguments, &bars)?;
        let (own, mut bars) = (arguments.given(), bars.view());
        let (states, ct) = (states.inputs(&arrays.run)?, Ct::new(&ct, &arrays.run)?);
        let mut sequence_bars = Bars::new(&sequence_bars, &arrays)?;
        let (sequence, states, ct, gradients) =
            (arrays.view(), states.view(), ct.view(), sequence_bars.view());
        detached::run_interruptible(py, |cancel| {
            let (operator, budget) = (view(object, &own)?, Budget { threads: place.threads(), cancel });
            place.backward(object, operator, &mut bars, &sequence, (states, ct), gradients, &budget)
        })
    })
}

/// "factored" or "dense": the cheaper route of an object for this many steps and sequences; a gated unit uses
/// the factors of operators on rows only.
#[pyfunction]
#[pyo3(signature = (object, arguments, steps, batch, gated = false))]
pub fn recurrence_route(
    py: Python<'_>,
    object: &str,
    arguments: Bound<'_, PyTuple>,
    steps: usize,
    batch: usize,
    gated: bool,
) -> PyResult<&'static str> {
    let deciding = first(object, &arguments)?;
    by_dtype!("arguments", &deciding, T => {
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let own = arguments.given();
        detached::run(py, || {
            let operator = view(object, &own)?;
            Ok(match operator.transition() {
                Some(core::Transition::Rows(_)) => operator.route(steps, batch).name(),
                Some(_) if !gated => operator.route(steps, batch).name(),
                _ => "dense",
            })
        })
    })
}

/// The number of states at the borders of a checkpoint's segments, for a cell that saves so many per step.
#[pyfunction]
pub fn recurrence_marks(checkpoint: &str, steps: usize, batch: usize, saved: usize) -> Option<usize> {
    let kind = core::Checkpoint::parse(checkpoint).filter(|_| steps > 0 && batch > 0)?;
    Some(kind.segments(steps, batch, saved).borders())
}
