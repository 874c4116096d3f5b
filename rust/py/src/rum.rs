//! `rum*`: the rotational unit of memory over a sequence, real numbers.

use crate::activation::parse;
use crate::arrays::{Input, Kind, Number, Output, kind, read, write};
use crate::gate;
use crate::sequence::counts;
use isometry_core::activation::Activation;
use isometry_core::recurrence::rum::{Outcome, Rum, RumGradients, SAVED, backward, forward};
use isometry_core::scalar::Real;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

type Any<'py> = Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// x, w, u, b, h0, r0, a memory, eta, activation, activation_bias, slope, lengths, reverse.
pub type Given<'py> = (
    (Any<'py>, Any<'py>, Any<'py>, Optional<'py>, Optional<'py>, Optional<'py>),
    bool,
    Option<f64>,
    String,
    Optional<'py>,
    f64,
    Option<PyReadonlyArray1<'py, i64>>,
    bool,
);

/// States, the last memory, and what was saved.
pub type GivenOutcome<'py> = (Any<'py>, Optional<'py>, Optional<'py>);

/// Room for the gradients of x, w, u, b, h0, r0, activation_bias; None where one is not wanted.
pub type GivenBars<'py> =
    (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// [`Given`], borrowed and checked.
struct Arrays<'py, R: Number> {
    /// x, w, u
    given: [Input<'py, R>; 3],
    /// b, h0, r0, activation_bias
    optional: [Option<Input<'py, R>>; 4],
    memory: bool,
    eta: Option<f64>,
    activation: Activation,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    /// steps, batch, features, n
    sizes: [usize; 4],
}

impl<'py, R: Number + Real> Arrays<'py, R> {
    fn new(given: &Given<'py>) -> PyResult<Self> {
        let ((x, w, u, b, h0, r0), memory, eta, activation, activation_bias, slope, lengths, reverse) = given;
        let x = Input::new("x", x)?;
        let [steps, batch, features] = x.sizes("x")?;
        let w = Input::<R>::new("w", w)?;
        let [rows, n] = w.sizes("w")?;
        if rows != n.saturating_mul(2) {
            return Err(PyTypeError::new_err("w: expected shape (2n, n)"));
        }
        let own = activation_bias.as_ref().map(|bias| Input::new("activation_bias", bias)).transpose()?;
        let u = Input::new("u", u)?;
        let [rows, d] = u.sizes("u")?;
        if rows != n.saturating_mul(3) || d != features {
            return Err(PyTypeError::new_err("u: expected shape (3n, d)"));
        }
        Ok(Arrays {
            given: [x, w, u],
            optional: [
                Input::optional("b", b.as_ref(), &[3 * n])?,
                Input::optional("h0", h0.as_ref(), &[batch, n])?,
                Input::optional("r0", r0.as_ref(), &[batch, n, n])?,
                own,
            ],
            memory: *memory,
            eta: *eta,
            activation: parse(activation, *slope)?,
            lengths: counts(lengths)?,
            reverse: *reverse,
            sizes: [steps, batch, features, n],
        })
    }

    fn view(&self) -> Rum<'_, R> {
        let Arrays { sizes: [steps, batch, features, n], memory, activation, reverse, .. } = *self;
        let [x, w, u] = self.given.each_ref().map(Input::slice);
        let [b, h0, r0, activation_bias] = self.optional.each_ref().map(read);
        let (eta, lengths) = (self.eta.map(R::of), self.lengths.as_deref());
        Rum {
            steps,
            batch,
            features,
            n,
            x,
            w,
            u,
            b,
            h0,
            memory,
            r0,
            eta,
            activation,
            activation_bias,
            lengths,
            reverse,
        }
    }

    /// Shape of the states.
    fn states_shape(&self) -> [usize; 3] {
        let [steps, batch, _, n] = self.sizes;
        [steps, batch, n]
    }

    /// Shape of what is saved.
    fn saved_shape(&self) -> [usize; 4] {
        let [steps, batch, _, n] = self.sizes;
        [SAVED, steps, batch, n]
    }

    /// Shape of a memory.
    fn memory_shape(&self) -> [usize; 3] {
        let [_, batch, _, n] = self.sizes;
        [batch, n, n]
    }
}

/// Calls `$f::<R>(...)` with the real type of x.
macro_rules! by_real {
    ($x:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match kind("x", $x)? {
            Kind::F32 => $f::<f32>($($arg),*),
            Kind::F64 => $f::<f64>($($arg),*),
            _ => Err(PyTypeError::new_err("x: expected real numbers")),
        }
    };
}

/// States of the sequence, the memory after it if there is one, and what the backward pass reads, if that is wanted.
#[pyfunction]
pub fn rum<'py>(
    py: Python<'py>,
    given: Given<'py>,
    outcome: GivenOutcome<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, R: Number + Real>(
        py: Python<'py>,
        given: &Given<'py>,
        (states, last, saved): &GivenOutcome<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<R>::new(given)?;
        let mut states = Output::shaped("states", states, &arrays.states_shape())?;
        let mut last = Output::optional("last", last.as_ref(), &arrays.memory_shape())?;
        let mut saved = Output::optional("saved", saved.as_ref(), &arrays.saved_shape())?;
        let (view, states, saved) = (arrays.view(), states.slice(), write(&mut saved));
        let last = write(&mut last).unwrap_or(&mut []);
        gate::run_interruptible(py, |cancel| forward(&view, states, last, saved, threads, cancel))
    }
    by_real!(&given.0.0, call(py, &given, &outcome, threads))
}

/// Gradients of everything from what `rum` wrote and the cotangents of states and memory.
#[pyfunction]
pub fn rum_vjp<'py>(
    py: Python<'py>,
    given: Given<'py>,
    outcome: GivenOutcome<'py>,
    cts: (Any<'py>, Optional<'py>),
    bars: GivenBars<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, R: Number + Real>(
        py: Python<'py>,
        given: &Given<'py>,
        (states, last, saved): &GivenOutcome<'py>,
        (ct, last_ct): &(Any<'py>, Optional<'py>),
        bars: &GivenBars<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<R>::new(given)?;
        let [steps, batch, features, n] = arrays.sizes;
        let matrices = arrays.memory_shape();
        let states = Input::shaped("states", states, &arrays.states_shape())?;
        let last = Input::optional("last", last.as_ref(), &matrices)?;
        let saved = Input::optional("saved", saved.as_ref(), &arrays.saved_shape())?;
        let ct = Input::shaped("ct", ct, &arrays.states_shape())?;
        let last_ct = Input::optional("last_ct", last_ct.as_ref(), &matrices)?;
        let (x, w, u, b, h0, r0, activation_bias) = bars;
        let units = arrays.optional[3].as_ref().map_or(vec![], |bias| bias.shape().to_vec());
        let mut x = Output::optional("x_bar", x.as_ref(), &[steps, batch, features])?;
        let mut w = Output::optional("w_bar", w.as_ref(), &[2 * n, n])?;
        let mut u = Output::optional("u_bar", u.as_ref(), &[3 * n, features])?;
        let mut b = Output::optional("b_bar", b.as_ref(), &[3 * n])?;
        let mut h0 = Output::optional("h0_bar", h0.as_ref(), &[batch, n])?;
        let mut r0 = Output::optional("r0_bar", r0.as_ref(), &matrices)?;
        let mut own = Output::optional("activation_bias_bar", activation_bias.as_ref(), &units)?;
        let gradients = RumGradients {
            x: write(&mut x),
            w: write(&mut w),
            u: write(&mut u),
            b: write(&mut b),
            h0: write(&mut h0),
            r0: write(&mut r0),
            activation_bias: write(&mut own),
        };
        let outcome = Outcome {
            states: states.slice(),
            last: read(&last).unwrap_or(&[]),
            saved: read(&saved).unwrap_or(&[]),
            ct: ct.slice(),
            last_ct: read(&last_ct),
        };
        let view = arrays.view();
        gate::run_interruptible(py, |cancel| backward(&view, &outcome, gradients, threads, cancel))
    }
    by_real!(&given.0.0, call(py, &given, &outcome, &cts, &bars, threads))
}
