//! torch's recurrent layers without gradients, from torch's list of weights, in one call.

use crate::arrays::{Any, Input, Output};
use crate::{by_real, detached};
use isometry_core::Budget;
use isometry_core::recurrence::{Layer, Stacked};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Fills the states of the last layer and the last states of all: see [`Stacked`]. `results` are the output, then as many arrays as `states`.
#[pyfunction]
#[pyo3(signature = (name, x, states, weights, law, counts, results, threads))]
pub fn layers<'py>(
    name: &str,
    x: Any<'py>,
    states: Vec<Any<'py>>,
    weights: Vec<Any<'py>>,
    law: ([usize; 4], bool, usize),
    counts: Option<Vec<usize>>,
    results: Vec<Any<'py>>,
    threads: usize,
) -> PyResult<()> {
    let layer =
        Layer::parse(name).ok_or_else(|| PyValueError::new_err(format!("name: no layer {name:?}")))?;
    let (sizes, biases, directions) = law;
    by_real!("x", &x, R, py => {
        let read = |name: &'static str, all: &[Any<'py>]| -> PyResult<Vec<Input<'py, R>>> {
            all.iter().map(|array| Input::new(name, array)).collect()
        };
        let (x, states, weights) = (Input::<R>::new("x", &x)?, read("states", &states)?, read("weights", &weights)?);
        let mut results: Vec<Output<'_, R>> =
            results.iter().map(|array| Output::new("results", array)).collect::<PyResult<_>>()?;
        let [states, weights] = [&states, &weights].map(|all| all.iter().map(Input::slice).collect::<Vec<_>>());
        let mut results: Vec<&mut [R]> = results.iter_mut().map(Output::slice).collect();
        let Some((output, last)) = results.split_first_mut() else {
            return Err(PyValueError::new_err("results: expected an output"));
        };
        let (x, counts) = (x.slice(), counts.as_deref());
        let call = Stacked { layer, sizes, x, states: &states, weights: &weights, biases, directions, counts };
        detached::run(py, |_| call.forward(output, last, &Budget::of(threads)))
    })
}
