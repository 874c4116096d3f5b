//! `recurrence_*`: h <- phi(W h + V x + b) over a sequence, W dense or a product of reflections.

use crate::arrays::{Input, Number, Output, read, write};
use crate::sequence::{Arrays, Bars, Given, GivenBars};
use crate::{by_kind, gate};
use isometry_core::recurrence::{self, ReflectionGradients, Reflections, Transition, TransitionVjp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Any<'py> = Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// States of the sequence for a transition given as a matrix.
#[pyfunction]
pub fn recurrence_dense<'py>(
    py: Python<'py>,
    weight: Any<'py>,
    sequence: Given<'py>,
    states: Any<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        weight: &Any<'py>,
        given: &Given<'py>,
        states: &Any<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(given)?;
        let n = arrays.sizes[3];
        let weight = Input::shaped("weight", weight, &[n, n])?;
        let mut states = Output::shaped("states", states, &arrays.states_shape())?;
        let (weight, sequence, states) = (weight.slice(), arrays.view(), states.slice());
        gate::run_interruptible(py, |cancel| {
            recurrence::forward(&Transition::Dense(weight), &sequence, states, threads, cancel)
        })
    }
    by_kind!("weight", &weight, call(py, &weight, &sequence, &states, threads))
}

/// Gradients of everything from the states and their cotangents, for a transition given as a matrix.
#[pyfunction]
pub fn recurrence_dense_vjp<'py>(
    py: Python<'py>,
    weight: Any<'py>,
    sequence: Given<'py>,
    states: Any<'py>,
    ct: Any<'py>,
    weight_bar: Optional<'py>,
    sequence_bars: GivenBars<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        (weight, weight_bar): (&Any<'py>, &Optional<'py>),
        given: &Given<'py>,
        (states, ct): (&Any<'py>, &Any<'py>),
        bars: &GivenBars<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(given)?;
        let n = arrays.sizes[3];
        let weight = Input::shaped("weight", weight, &[n, n])?;
        let states = Input::shaped("states", states, &arrays.states_shape())?;
        let ct = Input::shaped("ct", ct, &arrays.states_shape())?;
        let mut weight_bar = Output::optional("weight_bar", weight_bar.as_ref(), &[n, n])?;
        let mut bars = Bars::new(bars, &arrays)?;
        let (weight, sequence, states, ct) = (weight.slice(), arrays.view(), states.slice(), ct.slice());
        let (vjp, gradients) = (TransitionVjp::Dense(weight, write(&mut weight_bar)), bars.view());
        gate::run_interruptible(py, |cancel| {
            recurrence::backward(vjp, &sequence, states, ct, gradients, threads, cancel)
        })
    }
    by_kind!(
        "weight",
        &weight,
        call(py, (&weight, &weight_bar), &sequence, (&states, &ct), &sequence_bars, threads)
    )
}

/// The arrays of a product of reflections, borrowed.
struct Factors<'py, T: Number> {
    vectors: Input<'py, T>,
    sign: Option<Input<'py, T::Real>>,
    phases: Option<Input<'py, T::Real>>,
    m: usize,
}

impl<'py, T: Number> Factors<'py, T> {
    fn new((vectors, sign, phases): (&Any<'py>, &Optional<'py>, &Optional<'py>), n: usize) -> PyResult<Self> {
        let vectors = Input::new("vectors", vectors)?;
        let [rows, m] = vectors.sizes("vectors")?;
        if rows != n {
            return Err(PyValueError::new_err(format!("vectors: expected {n} rows, got {rows}")));
        }
        let sign = Input::optional("sign", sign.as_ref(), &[1])?;
        let phases = Input::optional("phases", phases.as_ref(), &[n])?;
        Ok(Factors { vectors, sign, phases, m })
    }

    fn view(&self) -> Reflections<'_, T> {
        let sign = read(&self.sign).and_then(|sign| sign.first().copied());
        Reflections { vectors: self.vectors.slice(), m: self.m, sign, phases: read(&self.phases) }
    }
}

/// States of the sequence for a product of reflections, applied factor by factor.
#[pyfunction]
pub fn recurrence_reflections<'py>(
    py: Python<'py>,
    vectors: Any<'py>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    sequence: Given<'py>,
    states: Any<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        factors: (&Any<'py>, &Optional<'py>, &Optional<'py>),
        given: &Given<'py>,
        states: &Any<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(given)?;
        let factors = Factors::<T>::new(factors, arrays.sizes[3])?;
        let mut states = Output::shaped("states", states, &arrays.states_shape())?;
        let (transition, sequence) = (Transition::Reflections(factors.view()), arrays.view());
        let states = states.slice();
        gate::run_interruptible(py, |cancel| {
            recurrence::forward(&transition, &sequence, states, threads, cancel)
        })
    }
    by_kind!("vectors", &vectors, call(py, (&vectors, &sign, &phases), &sequence, &states, threads))
}

/// Gradients of everything from the states and their cotangents, for a product of reflections.
#[pyfunction]
pub fn recurrence_reflections_vjp<'py>(
    py: Python<'py>,
    vectors: Any<'py>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    sequence: Given<'py>,
    states: Any<'py>,
    ct: Any<'py>,
    vectors_bar: Optional<'py>,
    sign_bar: Optional<'py>,
    phases_bar: Optional<'py>,
    sequence_bars: GivenBars<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        (factors, factor_bars): ((&Any<'py>, &Optional<'py>, &Optional<'py>), [&Optional<'py>; 3]),
        given: &Given<'py>,
        (states, ct): (&Any<'py>, &Any<'py>),
        bars: &GivenBars<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(given)?;
        let n = arrays.sizes[3];
        let factors = Factors::<T>::new(factors, n)?;
        let states = Input::shaped("states", states, &arrays.states_shape())?;
        let ct = Input::shaped("ct", ct, &arrays.states_shape())?;
        let mut vectors = Output::optional("vectors_bar", factor_bars[0].as_ref(), &[n, factors.m])?;
        let mut sign = Output::optional("sign_bar", factor_bars[1].as_ref(), &[1])?;
        let mut phases = Output::optional("phases_bar", factor_bars[2].as_ref(), &[n])?;
        let own = ReflectionGradients {
            vectors: write(&mut vectors),
            sign: write(&mut sign).and_then(|sign| sign.first_mut()),
            phases: write(&mut phases),
        };
        let mut bars = Bars::new(bars, &arrays)?;
        let (sequence, states, ct) = (arrays.view(), states.slice(), ct.slice());
        let (vjp, gradients) = (TransitionVjp::Reflections(factors.view(), own), bars.view());
        gate::run_interruptible(py, |cancel| {
            recurrence::backward(vjp, &sequence, states, ct, gradients, threads, cancel)
        })
    }
    let own = [&vectors_bar, &sign_bar, &phases_bar];
    by_kind!(
        "vectors",
        &vectors,
        call(py, ((&vectors, &sign, &phases), own), &sequence, (&states, &ct), &sequence_bars, threads)
    )
}

/// "factored" or "dense": the cheaper route for these sizes.
#[pyfunction]
pub fn recurrence_plan(reflections: usize, n: usize, steps: usize, batch: usize) -> &'static str {
    recurrence::plan(reflections, n, steps, batch).name()
}
