//! `recurrence*`: h <- phi(W h + V x + b) over a sequence, W any operator that is applied step by step.

use crate::arrays::{Any, Input, Optional, Output, read};
use crate::error::exception;
use crate::operator::{ArgumentBars, Arguments, shapes};
use crate::place::Place;
use crate::sequence::{Arrays, Ct, Given, GivenBars, GradientArrays, Starts, States};
use crate::{by_dtype, detached};
use isometry_core::operators::{route, view};
use isometry_core::recurrence::Workload;
use isometry_core::{Budget, recurrence as core};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// States of the sequence, or what is returned and kept of them, with the transition applied by the object's own steps;
/// `packs` is what [`pack`] writes of V, then of a dense W.
#[pyfunction]
#[pyo3(signature = (object, arguments, sequence, states, place, packs = None, starts = None))]
pub fn recurrence(
    object: &str,
    arguments: Bound<'_, PyTuple>,
    sequence: Given<'_>,
    states: States<'_>,
    place: Place,
    packs: Optional<'_>,
    starts: Option<Starts<'_>>,
) -> PyResult<()> {
    by_dtype!("x", &sequence.0, T, py => {
        let arrays = Arrays::<T>::new(&sequence, &starts)?;
        let arguments = Arguments::new(object, &arguments)?;
        let own = arguments.given();
        let packs = packs.as_ref().map(|packs| Input::new("packs", packs)).transpose()?;
        let mut states = states.outputs(&arrays.run)?;
        let (sequence, states) = (arrays.view(read(&packs)), states.view());
        detached::run_interruptible(py, |cancel| {
            let (operator, budget) = (view(object, &own)?, Budget { threads: place.threads(), cancel });
            place.forward(object, operator, &sequence, states, &budget)
        })
    })
}

/// Packs matrices (n, k) for W h, one after the other, into `out`; returns how many numbers that takes.
#[pyfunction]
#[pyo3(signature = (matrices, out = None))]
pub fn pack<'py>(matrices: Vec<Any<'py>>, out: Optional<'py>) -> PyResult<usize> {
    let Some(one) = matrices.first() else { return Ok(0) };
    by_dtype!("matrices", one, T, py => {
        let held: Vec<Input<'py, T>> =
            matrices.iter().map(|matrix| Input::new("matrices", matrix)).collect::<PyResult<_>>()?;
        let sizes: Vec<[usize; 2]> =
            held.iter().map(|matrix| matrix.sizes("matrices")).collect::<PyResult<_>>()?;
        let count = |&[n, k]: &[usize; 2]| core::packed::<T>(n, k);
        let total = sizes.iter().map(count).fold(0, usize::saturating_add);
        let Some(out) = out else { return Ok(total) };
        let mut out = Output::shaped("out", &out, &[total])?;
        let (slices, mut rest): (Vec<&[T]>, _) = (held.iter().map(Input::slice).collect(), out.slice());
        detached::run(py, || {
            for (matrix, size) in slices.iter().zip(&sizes) {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(count(size));
                core::pack(matrix, size[0], size[1], own)?;
                rest = behind;
            }
            Ok(total)
        })
    })
}

/// Gradients of everything from the states, or what was kept of them, and their cotangents.
#[pyfunction]
#[pyo3(signature = (object, arguments, sequence, states, ct, bars, sequence_bars, place, starts = None, start_bar = None))]
pub fn recurrence_vjp(
    object: &str,
    arguments: Bound<'_, PyTuple>,
    sequence: Given<'_>,
    states: States<'_>,
    ct: Any<'_>,
    bars: Bound<'_, PyTuple>,
    sequence_bars: GivenBars<'_>,
    place: Place,
    starts: Option<Starts<'_>>,
    start_bar: Optional<'_>,
) -> PyResult<()> {
    by_dtype!("x", &sequence.0, T, py => {
        let arrays = Arrays::<T>::new(&sequence, &starts)?;
        let arguments = Arguments::new(object, &arguments)?;
        let mut bars = ArgumentBars::new(object, &arguments, &bars)?;
        let (own, mut bars) = (arguments.given(), bars.view());
        let (states, ct) = (states.inputs(&arrays.run)?, Ct::new(&ct, &arrays.run)?);
        let mut sequence_bars = GradientArrays::new(&sequence_bars, &start_bar, &arrays)?;
        let (sequence, states, ct, gradients) =
            (arrays.view(None), states.view(), ct.view(), sequence_bars.view());
        detached::run_interruptible(py, |cancel| {
            let (operator, budget) = (view(object, &own)?, Budget { threads: place.threads(), cancel });
            place.backward(object, operator, &mut bars, &sequence, (states, ct), gradients, &budget)
        })
    })
}

/// "factored" or "dense": the cheaper route of an object for this many steps and sequences, of which the shapes of its
/// arguments decide.
#[pyfunction]
#[pyo3(signature = (object, arguments, steps, batch, gated = false))]
pub fn recurrence_route(
    object: &str,
    arguments: Bound<'_, PyTuple>,
    steps: usize,
    batch: usize,
    gated: bool,
) -> PyResult<&'static str> {
    let shapes = shapes(object, &arguments)?;
    let shapes: Vec<_> = shapes.iter().map(Vec::as_slice).collect();
    match route(object, &shapes, Workload { steps, batch, gated }).map_err(exception)? {
        core::Route::Factored => Ok("factored"),
        core::Route::Dense => Ok("dense"),
    }
}

/// The number of states at the borders of a checkpoint's segments, for a cell that saves so many per step.
#[pyfunction]
pub fn recurrence_marks(checkpoint: &str, steps: usize, batch: usize, saved: usize) -> Option<usize> {
    let kind = core::Checkpoint::parse(checkpoint).filter(|_| steps > 0 && batch > 0)?;
    Some(kind.borders(steps, batch, saved))
}
