//! What is decided before a sequence runs: its operands packed, the route of its operator, the borders of its checkpoints.

use crate::arrays::{Any, Input, Optional, Output};
use crate::error::exception;
use crate::operator::shapes;
use crate::{by_dtype, detached};
use isometry_core::operators::route;
use isometry_core::recurrence::{self as core, Workload};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
        detached::run(py, |_| {
            for (matrix, size) in slices.iter().zip(&sizes) {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(count(size));
                core::pack(matrix, size[0], size[1], own)?;
                rest = behind;
            }
            Ok(total)
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

/// The number of states at the borders of a checkpoint's segments, for a cell that saves so many numbers of each unit per step, whose state
/// has `width` of them.
#[pyfunction]
pub fn recurrence_marks(
    checkpoint: &str,
    steps: usize,
    batch: usize,
    saved: usize,
    width: usize,
) -> Option<usize> {
    let kind = core::Checkpoint::parse(checkpoint).filter(|_| steps > 0 && batch > 0)?;
    Some(kind.borders(steps, batch, [saved, width]))
}
