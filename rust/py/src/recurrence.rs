//! `recurrence_*`: h <- phi(W h + V x + b) over a sequence, W dense or a product of reflections.

use crate::activation::parse;
use crate::arrays::{Input, Number, Output, read, write};
use crate::{by_kind, gate};
use isometry_core::recurrence::{self, Gradients, ReflectionGradients, Reflections, Sequence};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Any<'py> = Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// The arguments that both kinds of transition share, as they came.
struct Given<'py> {
    x: Any<'py>,
    input_weight: Any<'py>,
    h0: Optional<'py>,
    bias: Optional<'py>,
    activation: String,
    activation_bias: Optional<'py>,
    slope: f64,
    on_input: bool,
    lengths: Option<PyReadonlyArray1<'py, i64>>,
    reverse: bool,
}

/// The same, borrowed and checked.
struct Arrays<'py, T: Number> {
    x: Input<'py, T>,
    input_weight: Input<'py, T>,
    h0: Option<Input<'py, T>>,
    bias: Option<Input<'py, T>>,
    activation: isometry_core::activation::Activation,
    activation_bias: Option<Input<'py, T::Real>>,
    on_input: bool,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    /// steps, batch, features, n
    sizes: [usize; 4],
}

impl<'py, T: Number> Arrays<'py, T> {
    fn new(given: &Given<'py>) -> PyResult<Self> {
        let x = Input::new("x", &given.x)?;
        let [steps, batch, features] = x.sizes("x")?;
        let input_weight = Input::<T>::new("input_weight", &given.input_weight)?;
        let [n, _] = input_weight.sizes("input_weight")?;
        let activation_bias = given.activation_bias.as_ref();
        let lengths = given.lengths.as_ref().map(|lengths| {
            let convert = |&length: &i64| usize::try_from(length).ok();
            let lengths: Option<Vec<usize>> = lengths.as_array().iter().map(convert).collect();
            lengths.ok_or_else(|| PyValueError::new_err("lengths: expected no negative number"))
        });
        Ok(Arrays {
            x,
            input_weight,
            h0: Input::optional("h0", given.h0.as_ref(), &[batch, n])?,
            bias: Input::optional("bias", given.bias.as_ref(), &[n])?,
            activation: parse(&given.activation, given.slope)?,
            activation_bias: activation_bias.map(|bias| Input::new("activation_bias", bias)).transpose()?,
            on_input: given.on_input,
            lengths: lengths.transpose()?,
            reverse: given.reverse,
            sizes: [steps, batch, features, n],
        })
    }

    fn view(&self) -> Sequence<'_, T> {
        let [steps, batch, features, n] = self.sizes;
        Sequence {
            steps,
            batch,
            features,
            n,
            x: self.x.slice(),
            input_weight: self.input_weight.slice(),
            h0: read(&self.h0),
            bias: read(&self.bias),
            activation: self.activation,
            activation_bias: read(&self.activation_bias),
            on_input: self.on_input,
            lengths: self.lengths.as_deref(),
            reverse: self.reverse,
        }
    }

    fn states_shape(&self) -> [usize; 3] {
        let [steps, batch, _, n] = self.sizes;
        [steps, batch, n]
    }
}

/// The gradients that both kinds of transition share, as they came.
struct GivenBars<'py> {
    x: Optional<'py>,
    input_weight: Optional<'py>,
    h0: Optional<'py>,
    bias: Optional<'py>,
    activation_bias: Optional<'py>,
}

/// The same, borrowed and checked.
struct ArrayBars<'py, T: Number> {
    x: Option<Output<'py, T>>,
    input_weight: Option<Output<'py, T>>,
    h0: Option<Output<'py, T>>,
    bias: Option<Output<'py, T>>,
    activation_bias: Option<Output<'py, T::Real>>,
}

impl<'py, T: Number> ArrayBars<'py, T> {
    fn new(given: &GivenBars<'py>, arrays: &Arrays<'py, T>) -> PyResult<Self> {
        let [steps, batch, features, n] = arrays.sizes;
        let units = arrays.activation_bias.as_ref().map_or(vec![], |bias| bias.shape().to_vec());
        let input_weight = given.input_weight.as_ref();
        Ok(ArrayBars {
            x: Output::optional("x_bar", given.x.as_ref(), &[steps, batch, features])?,
            input_weight: Output::optional("input_weight_bar", input_weight, &[n, features])?,
            h0: Output::optional("h0_bar", given.h0.as_ref(), &[batch, n])?,
            bias: Output::optional("bias_bar", given.bias.as_ref(), &[n])?,
            activation_bias: Output::optional("activation_bias_bar", given.activation_bias.as_ref(), &units)?,
        })
    }

    fn view(&mut self) -> Gradients<'_, T> {
        Gradients {
            x: write(&mut self.x),
            input_weight: write(&mut self.input_weight),
            h0: write(&mut self.h0),
            bias: write(&mut self.bias),
            activation_bias: write(&mut self.activation_bias),
        }
    }
}

/// States of the sequence for a transition given as a matrix.
#[pyfunction]
pub fn recurrence_dense<'py>(
    py: Python<'py>,
    weight: Any<'py>,
    x: Any<'py>,
    input_weight: Any<'py>,
    h0: Optional<'py>,
    bias: Optional<'py>,
    activation: String,
    activation_bias: Optional<'py>,
    slope: f64,
    on_input: bool,
    lengths: Option<PyReadonlyArray1<'py, i64>>,
    reverse: bool,
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
            recurrence::forward_dense(weight, &sequence, states, threads, cancel)
        })
    }
    let given =
        Given { x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse };
    by_kind!("weight", &weight, call(py, &weight, &given, &states, threads))
}

/// Gradients of everything from the states and their cotangents, for a transition given as a matrix.
#[pyfunction]
pub fn recurrence_dense_vjp<'py>(
    py: Python<'py>,
    weight: Any<'py>,
    x: Any<'py>,
    input_weight: Any<'py>,
    h0: Optional<'py>,
    bias: Optional<'py>,
    activation: String,
    activation_bias: Optional<'py>,
    slope: f64,
    on_input: bool,
    lengths: Option<PyReadonlyArray1<'py, i64>>,
    reverse: bool,
    states: Any<'py>,
    ct: Any<'py>,
    weight_bar: Optional<'py>,
    x_bar: Optional<'py>,
    input_weight_bar: Optional<'py>,
    h0_bar: Optional<'py>,
    bias_bar: Optional<'py>,
    activation_bias_bar: Optional<'py>,
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
        let mut bars = ArrayBars::new(bars, &arrays)?;
        let (weight, sequence, states, ct) = (weight.slice(), arrays.view(), states.slice(), ct.slice());
        let (weight_bar, gradients) = (write(&mut weight_bar), bars.view());
        gate::run_interruptible(py, |cancel| {
            recurrence::backward_dense(weight, &sequence, states, ct, weight_bar, gradients, threads, cancel)
        })
    }
    let given =
        Given { x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse };
    let bars = GivenBars {
        x: x_bar,
        input_weight: input_weight_bar,
        h0: h0_bar,
        bias: bias_bar,
        activation_bias: activation_bias_bar,
    };
    by_kind!("weight", &weight, call(py, (&weight, &weight_bar), &given, (&states, &ct), &bars, threads))
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
    x: Any<'py>,
    input_weight: Any<'py>,
    h0: Optional<'py>,
    bias: Optional<'py>,
    activation: String,
    activation_bias: Optional<'py>,
    slope: f64,
    on_input: bool,
    lengths: Option<PyReadonlyArray1<'py, i64>>,
    reverse: bool,
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
        let (transition, sequence, states) = (factors.view(), arrays.view(), states.slice());
        gate::run_interruptible(py, |cancel| {
            recurrence::forward_reflections(&transition, &sequence, states, threads, cancel)
        })
    }
    let given =
        Given { x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse };
    by_kind!("vectors", &vectors, call(py, (&vectors, &sign, &phases), &given, &states, threads))
}

/// Gradients of everything from the states and their cotangents, for a product of reflections.
#[pyfunction]
pub fn recurrence_reflections_vjp<'py>(
    py: Python<'py>,
    vectors: Any<'py>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    x: Any<'py>,
    input_weight: Any<'py>,
    h0: Optional<'py>,
    bias: Optional<'py>,
    activation: String,
    activation_bias: Optional<'py>,
    slope: f64,
    on_input: bool,
    lengths: Option<PyReadonlyArray1<'py, i64>>,
    reverse: bool,
    states: Any<'py>,
    ct: Any<'py>,
    vectors_bar: Optional<'py>,
    sign_bar: Optional<'py>,
    phases_bar: Optional<'py>,
    x_bar: Optional<'py>,
    input_weight_bar: Optional<'py>,
    h0_bar: Optional<'py>,
    bias_bar: Optional<'py>,
    activation_bias_bar: Optional<'py>,
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
        let mut bars = ArrayBars::new(bars, &arrays)?;
        let (transition, sequence, states, ct) = (factors.view(), arrays.view(), states.slice(), ct.slice());
        let gradients = bars.view();
        gate::run_interruptible(py, |cancel| {
            recurrence::backward_reflections(
                &transition,
                &sequence,
                states,
                ct,
                own,
                gradients,
                threads,
                cancel,
            )
        })
    }
    let given =
        Given { x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse };
    let bars = GivenBars {
        x: x_bar,
        input_weight: input_weight_bar,
        h0: h0_bar,
        bias: bias_bar,
        activation_bias: activation_bias_bar,
    };
    let own = [&vectors_bar, &sign_bar, &phases_bar];
    by_kind!(
        "vectors",
        &vectors,
        call(py, ((&vectors, &sign, &phases), own), &given, (&states, &ct), &bars, threads)
    )
}

/// "factored" or "dense": the cheaper route for these sizes.
#[pyfunction]
pub fn recurrence_plan(reflections: usize, n: usize, steps: usize, batch: usize) -> &'static str {
    recurrence::plan(reflections, n, steps, batch).name()
}
