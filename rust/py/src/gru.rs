//! `gru*`: the gated recurrent unit over a sequence, real numbers; its W_h a matrix, or any operator on rows.

use crate::activation::parse;
use crate::arrays::{Input, Kind, Number, Output, kind, read, write};
use crate::error::exception;
use crate::gate;
use crate::operator::{Arguments, Bars};
use crate::sequence::counts;
use isometry_core::Cpu;
use isometry_core::activation::Activation;
use isometry_core::operators::view;
use isometry_core::recurrence::gru::{Gru, GruGradients, Reset, backward, forward};
use isometry_core::scalar::Real;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

type Any<'py> = Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// x, w, u, b, h0, hidden_bias, reset after, activation, activation_bias, slope, lengths, reverse.
pub type Given<'py> = (
    Any<'py>,
    Any<'py>,
    Any<'py>,
    Optional<'py>,
    Optional<'py>,
    Optional<'py>,
    bool,
    String,
    Optional<'py>,
    f64,
    Option<PyReadonlyArray1<'py, i64>>,
    bool,
);

/// W_h, where it is no part of w: an object, and the list of its arguments.
pub type Transition<'py> = Option<(String, Bound<'py, PyTuple>)>;

/// The transition of a call, borrowed.
fn borrowed<'py, R: Number>(transition: &Transition<'py>) -> PyResult<Option<Arguments<'py, R>>> {
    transition.as_ref().map(|(object, arguments)| Arguments::new(object, arguments)).transpose()
}

/// Its view.
fn viewed<'a, R: Number>(
    transition: &Transition<'_>,
    arguments: &'a Option<Arguments<'_, R>>,
) -> PyResult<Option<Box<dyn Cpu<R> + 'a>>> {
    let both = transition.as_ref().zip(arguments.as_ref());
    both.map(|((object, _), arguments)| view(object, &arguments.given()).map_err(exception)).transpose()
}

/// Room for the gradients of x, w, u, b, h0, hidden_bias, activation_bias; None where one is not wanted.
pub type GivenBars<'py> =
    (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// [`Given`], borrowed and checked.
struct Arrays<'py, R: Number> {
    /// x, w, u
    given: [Input<'py, R>; 3],
    /// b, h0, hidden_bias, activation_bias
    optional: [Option<Input<'py, R>>; 4],
    reset: Reset,
    activation: Activation,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    /// steps, batch, features, n
    sizes: [usize; 4],
}

impl<'py, R: Number + Real> Arrays<'py, R> {
    fn new(given: &Given<'py>) -> PyResult<Self> {
        let (x, w, u, b, h0, hidden_bias, after, activation, activation_bias, slope, lengths, reverse) =
            given;
        let x = Input::new("x", x)?;
        let [steps, batch, features] = x.sizes("x")?;
        let w = Input::<R>::new("w", w)?;
        let [_, n, _] = w.sizes("w")?;
        let own = activation_bias.as_ref().map(|bias| Input::new("activation_bias", bias)).transpose()?;
        Ok(Arrays {
            given: [x, w, Input::shaped("u", u, &[3, n, features])?],
            optional: [
                Input::optional("b", b.as_ref(), &[3, n])?,
                Input::optional("h0", h0.as_ref(), &[batch, n])?,
                Input::optional("hidden_bias", hidden_bias.as_ref(), &[n])?,
                own,
            ],
            reset: if *after { Reset::After } else { Reset::Before },
            activation: parse(activation, *slope)?,
            lengths: counts(lengths)?,
            reverse: *reverse,
            sizes: [steps, batch, features, n],
        })
    }

    fn view<'a>(&'a self, transition: Option<&'a dyn Cpu<R>>) -> Gru<'a, R> {
        let Arrays { sizes: [steps, batch, features, n], reset, activation, reverse, .. } = *self;
        let [x, w, u] = self.given.each_ref().map(Input::slice);
        let [b, h0, hidden_bias, activation_bias] = self.optional.each_ref().map(read);
        let lengths = self.lengths.as_deref();
        Gru {
            steps,
            batch,
            features,
            n,
            x,
            w,
            transition,
            u,
            b,
            h0,
            reset,
            hidden_bias,
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
        [self.view(None).saved(), steps, batch, n]
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

/// States of the sequence, and what its backward pass reads, if that is wanted.
#[pyfunction]
pub fn gru<'py>(
    py: Python<'py>,
    given: Given<'py>,
    transition: Transition<'py>,
    states: Any<'py>,
    saved: Optional<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, R: Number + Real>(
        py: Python<'py>,
        (given, transition): (&Given<'py>, &Transition<'py>),
        (states, saved): (&Any<'py>, &Optional<'py>),
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<R>::new(given)?;
        let mut states = Output::shaped("states", states, &arrays.states_shape())?;
        let mut saved = Output::optional("saved", saved.as_ref(), &arrays.saved_shape())?;
        let own = borrowed::<R>(transition)?;
        let operator = viewed(transition, &own)?;
        let (view, states, saved) = (arrays.view(operator.as_deref()), states.slice(), write(&mut saved));
        gate::run_interruptible(py, |cancel| forward(&view, states, saved, threads, cancel))
    }
    by_real!(&given.0, call(py, (&given, &transition), (&states, &saved), threads))
}

/// Gradients of everything from the states, what was saved with them, and their cotangents.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
#[pyfunction]
pub fn gru_vjp<'py>(
    py: Python<'py>,
    given: Given<'py>,
    transition: Transition<'py>,
    states: Any<'py>,
    saved: Any<'py>,
    ct: Any<'py>,
    bars: GivenBars<'py>,
    transition_bars: Bound<'py, PyTuple>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, R: Number + Real>(
        py: Python<'py>,
        (given, transition): (&Given<'py>, &Transition<'py>),
        (states, saved, ct): (&Any<'py>, &Any<'py>, &Any<'py>),
        (bars, transition_bars): (&GivenBars<'py>, &Bound<'py, PyTuple>),
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<R>::new(given)?;
        let [steps, batch, features, n] = arrays.sizes;
        let states = Input::shaped("states", states, &arrays.states_shape())?;
        let saved = Input::shaped("saved", saved, &arrays.saved_shape())?;
        let ct = Input::shaped("ct", ct, &arrays.states_shape())?;
        let (x, w, u, b, h0, hidden_bias, activation_bias) = bars;
        let units = arrays.optional[3].as_ref().map_or(vec![], |bias| bias.shape().to_vec());
        let mut x = Output::optional("x_bar", x.as_ref(), &[steps, batch, features])?;
        let mut w = Output::optional("w_bar", w.as_ref(), arrays.given[1].shape())?;
        let mut u = Output::optional("u_bar", u.as_ref(), &[3, n, features])?;
        let mut b = Output::optional("b_bar", b.as_ref(), &[3, n])?;
        let mut h0 = Output::optional("h0_bar", h0.as_ref(), &[batch, n])?;
        let mut hidden_bias = Output::optional("hidden_bias_bar", hidden_bias.as_ref(), &[n])?;
        let mut own = Output::optional("activation_bias_bar", activation_bias.as_ref(), &units)?;
        let gradients = GruGradients {
            x: write(&mut x),
            w: write(&mut w),
            u: write(&mut u),
            b: write(&mut b),
            h0: write(&mut h0),
            hidden_bias: write(&mut hidden_bias),
            activation_bias: write(&mut own),
        };
        let own = borrowed::<R>(transition)?;
        let operator = viewed(transition, &own)?;
        let rooms = transition.as_ref().zip(own.as_ref());
        let rooms = rooms.map(|((object, _), own)| Bars::new(object, own, transition_bars));
        let mut rooms = rooms.transpose()?;
        let mut own_bars = rooms.as_mut().map_or(vec![], Bars::view);
        let (view, states, saved, ct) =
            (arrays.view(operator.as_deref()), states.slice(), saved.slice(), ct.slice());
        gate::run_interruptible(py, |cancel| {
            backward(&view, states, saved, ct, gradients, &mut own_bars, threads, cancel)
        })
    }
    let (given, bars) = ((&given, &transition), (&bars, &transition_bars));
    by_real!(&given.0.0, call(py, given, (&states, &saved, &ct), bars, threads))
}
