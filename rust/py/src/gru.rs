//! `gru*`: the gated recurrent unit over a sequence, real numbers; W_h is a matrix or any operator on rows.

use crate::arrays::{Any, Input, Number, Optional, Output, read, write};
use crate::operator::{ArgumentBars, Arguments};
use crate::place::Place;
use crate::sequence::{Ct, Lengths, Run, Starts, States};
use crate::{by_real, detached};
use isometry_core::argument::Given;
use isometry_core::operators::view;
use isometry_core::recurrence::gru::{Gru, GruGradients, Reset};
use isometry_core::scalar::Real;
use isometry_core::{Budget, Cpu, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// x, w, u, b, h0, hidden_bias, reset after, activation, activation_bias, slope, lengths, reverse.
pub type Sequence<'py> = (
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
    Lengths<'py>,
    bool,
);

/// W_h, where it is not part of w: an object, and the list of its arguments.
pub type Transition<'py> = Option<(String, Bound<'py, PyTuple>)>;

/// The arguments of the transition, borrowed.
fn borrowed<'py, R: Number>(transition: &Transition<'py>) -> PyResult<Option<Arguments<'py, R>>> {
    transition.as_ref().map(|(object, arguments)| Arguments::new(object, arguments)).transpose()
}

/// A transition: an object, and its arguments as the core takes them.
type Own<'a, R> = Option<(&'a str, Vec<Given<'a, R>>)>;

fn own<'a, R: Number>(transition: &'a Transition<'_>, held: &'a Option<Arguments<'_, R>>) -> Own<'a, R> {
    transition.as_ref().zip(held.as_ref()).map(|((object, _), held)| (object.as_str(), held.given()))
}

/// Its operator, built while the call is detached from the interpreter.
fn viewed<'a, R: Number>(own: &Own<'a, R>) -> Result<Option<Box<dyn Cpu<R> + 'a>>> {
    own.as_ref().map(|(object, given)| view(object, given)).transpose()
}

/// Output arrays for the gradients of x, w, u, b, h0, hidden_bias, activation_bias; None where one is not
/// wanted.
pub type GivenBars<'py> =
    (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// [`Sequence`], borrowed and checked.
struct Arrays<'py, R: Number> {
    run: Run<'py, R>,
    /// w, u
    weights: [Input<'py, R>; 2],
    /// b, hidden_bias
    biases: [Option<Input<'py, R>>; 2],
    reset: Reset,
}

impl<'py, R: Number + Real> Arrays<'py, R> {
    fn new(given: &Sequence<'py>, starts: &Option<Starts<'py>>) -> PyResult<Self> {
        let (x, w, u, b, h0, hidden_bias, after, activation, activation_bias, slope, lengths, reverse) =
            given;
        let w = Input::<R>::new("w", w)?;
        let [_, n, _] = w.sizes("w")?;
        let run =
            Run::new((x, h0, n), (activation, activation_bias, *slope), lengths, *reverse)?.with(starts)?;
        let u = Input::shaped("u", u, &[3, n, run.sizes[2]])?;
        let b = Input::optional("b", b.as_ref(), &[3, n])?;
        let hidden_bias = Input::optional("hidden_bias", hidden_bias.as_ref(), &[n])?;
        let reset = if *after { Reset::After } else { Reset::Before };
        Ok(Arrays { run, weights: [w, u], biases: [b, hidden_bias], reset })
    }

    fn view<'a>(&'a self, packs: Option<&'a [R]>) -> Gru<'a, R> {
        let [w, u] = self.weights.each_ref().map(Input::slice);
        let [b, hidden_bias] = self.biases.each_ref().map(read);
        Gru { run: self.run.view(packs), w, transition: None, u, b, reset: self.reset, hidden_bias }
    }

    /// Shape of the array saved for backward.
    fn saved(&self) -> [usize; 4] {
        let [steps, batch, n] = self.run.states();
        [self.view(None).saved(), steps, batch, n]
    }
}

/// States of the sequence and, if wanted and not on the GPU, the array saved for backward. `packs` is what [`pack`](crate::recurrence::pack)
/// writes of W_z and W_r, a dense W_h, U_z and U_r, U_h.
#[pyfunction]
#[pyo3(signature = (given, transition, states, saved, place, packs = None, starts = None))]
pub fn gru(
    given: Sequence<'_>,
    transition: Transition<'_>,
    states: States<'_>,
    saved: Optional<'_>,
    place: Place,
    packs: Optional<'_>,
    starts: Option<Starts<'_>>,
) -> PyResult<()> {
    by_real!("x", &given.0, R, py => {
        let arrays = Arrays::<R>::new(&given, &starts)?;
        let packs = packs.as_ref().map(|packs| Input::new("packs", packs)).transpose()?;
        let mut states = states.outputs(&arrays.run)?;
        let mut saved = Output::optional("saved", saved.as_ref(), &arrays.saved())?;
        let held = borrowed::<R>(&transition)?;
        let (own, view) = (own(&transition, &held), arrays.view(read(&packs)));
        let (states, saved) = (states.view(), write(&mut saved));
        detached::run_interruptible(py, |cancel| {
            let operator = viewed(&own)?;
            let (gru, threads) = (Gru { transition: operator.as_deref(), ..view }, place.threads());
            place.gru(&gru, states, saved, &Budget { threads, cancel })
        })
    })
}

/// Gradients of everything from the states, what was saved with them, and their cotangents.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
#[pyfunction]
#[pyo3(signature = (given, transition, states, saved, ct, bars, transition_bars, place, starts = None, start_bar = None))]
pub fn gru_vjp(
    given: Sequence<'_>,
    transition: Transition<'_>,
    states: States<'_>,
    saved: Optional<'_>,
    ct: Any<'_>,
    bars: GivenBars<'_>,
    transition_bars: Bound<'_, PyTuple>,
    place: Place,
    starts: Option<Starts<'_>>,
    start_bar: Optional<'_>,
) -> PyResult<()> {
    by_real!("x", &given.0, R, py => {
        let arrays = Arrays::<R>::new(&given, &starts)?;
        let [_, _, features, n] = arrays.run.sizes;
        let (states, ct) = (states.inputs(&arrays.run)?, Ct::new(&ct, &arrays.run)?);
        let saved = Input::optional("saved", saved.as_ref(), &arrays.saved())?;
        let (x, w, u, b, h0, hidden_bias, activation_bias) = bars;
        let (mut x, mut h0, mut activation_bias) = arrays.run.bars([&x, &h0, &activation_bias])?;
        let mut w = Output::optional("w_bar", w.as_ref(), arrays.weights[0].shape())?;
        let mut u = Output::optional("u_bar", u.as_ref(), &[3, n, features])?;
        let mut b = Output::optional("b_bar", b.as_ref(), &[3, n])?;
        let mut hidden_bias = Output::optional("hidden_bias_bar", hidden_bias.as_ref(), &[n])?;
        let shape = arrays.run.states();
        let mut start_state = Output::optional("start_state_bar", start_bar.as_ref(), &shape[1..])?;
        let gradients = GruGradients {
            x: write(&mut x),
            w: write(&mut w),
            u: write(&mut u),
            b: write(&mut b),
            h0: write(&mut h0),
            start_state: write(&mut start_state),
            hidden_bias: write(&mut hidden_bias),
            activation_bias: write(&mut activation_bias),
        };
        let held = borrowed::<R>(&transition)?;
        let rooms = transition.as_ref().zip(held.as_ref());
        let rooms = rooms.map(|((object, _), held)| ArgumentBars::new(object, held, &transition_bars));
        let mut rooms = rooms.transpose()?;
        let mut own_bars = rooms.as_mut().map_or(vec![], ArgumentBars::view);
        let (own, view) = (own(&transition, &held), arrays.view(None));
        let (states, saved, ct) = (states.view(), read(&saved).unwrap_or(&[]), ct.view());
        detached::run_interruptible(py, |cancel| {
            let operator = viewed(&own)?;
            let view = Gru { transition: operator.as_deref(), ..view };
            let budget = Budget { threads: place.threads(), cancel };
            place.gru_vjp(&view, (states, saved, ct), gradients, &mut own_bars, &budget)
        })
    })
}
