//! `rum*`: the rotational unit of memory over a sequence, real numbers.

use crate::arrays::{Any, Input, Number, Optional, Output, fits, read, write};
use crate::error::exception;
use crate::place::Place;
use crate::sequence::{Ct, Lengths, Run, Starts, States};
use crate::{by_real, detached};
use isometry_core::Budget;
use isometry_core::recurrence::rum::{Outcome, Rum, RumGradients, SAVED};
use isometry_core::scalar::Real;
use pyo3::prelude::*;

/// x, w, u, b, h0, r0, a memory, eta, activation, activation_bias, slope, lengths, reverse.
pub type Given<'py> = (
    (Any<'py>, Any<'py>, Any<'py>, Optional<'py>, Optional<'py>, Optional<'py>),
    bool,
    Option<f64>,
    String,
    Optional<'py>,
    f64,
    Lengths<'py>,
    bool,
);

/// States, the last memory, and the array saved for backward.
pub type GivenOutcome<'py> = (States<'py>, Optional<'py>, Optional<'py>);

/// Output arrays for the gradients of x, w, u, b, h0, r0, activation_bias; None where one is not wanted.
pub type GivenBars<'py> =
    (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// [`Given`], borrowed and checked.
struct Arrays<'py, R: Number> {
    run: Run<'py, R>,
    /// w, u
    weights: [Input<'py, R>; 2],
    /// b, r0
    optional: [Option<Input<'py, R>>; 2],
    memory: bool,
    eta: Option<f64>,
}

impl<'py, R: Number + Real> Arrays<'py, R> {
    fn new(given: &Given<'py>, starts: &Option<Starts<'py>>) -> PyResult<Self> {
        let ((x, w, u, b, h0, r0), memory, eta, activation, activation_bias, slope, lengths, reverse) = given;
        let w = Input::<R>::new("w", w)?;
        let [_, n] = w.sizes("w")?;
        fits("w", w.shape(), &[n.saturating_mul(2), n]).map_err(exception)?;
        let run =
            Run::new((x, h0, n), (activation, activation_bias, *slope), lengths, *reverse)?.with(starts)?;
        let [_, batch, features, _] = run.sizes;
        let u = Input::shaped("u", u, &[3 * n, features])?;
        let b = Input::optional("b", b.as_ref(), &[3 * n])?;
        let r0 = Input::optional("r0", r0.as_ref(), &[batch, n, n])?;
        Ok(Arrays { run, weights: [w, u], optional: [b, r0], memory: *memory, eta: *eta })
    }

    fn view<'a>(&'a self, packs: Option<&'a [R]>) -> Rum<'a, R> {
        let [w, u] = self.weights.each_ref().map(Input::slice);
        let [b, r0] = self.optional.each_ref().map(read);
        Rum { run: self.run.view(packs), w, u, b, memory: self.memory, r0, eta: self.eta.map(R::of) }
    }

    /// Shape of the array saved for backward.
    fn saved(&self) -> [usize; 4] {
        let [steps, batch, n] = self.run.states();
        [SAVED, steps, batch, n]
    }

    /// Shape of a memory.
    fn memories(&self) -> [usize; 3] {
        let [_, batch, n] = self.run.states();
        [batch, n, n]
    }
}

/// States of the sequence, the memory after it if there is one and, if wanted and not on the GPU, the array saved for backward. `packs` is
/// what [`pack`](crate::recurrence::pack) writes of W, U_ut, U_e.
#[pyfunction]
#[pyo3(signature = (given, outcome, place, packs = None, starts = None))]
pub fn rum(
    given: Given<'_>,
    outcome: GivenOutcome<'_>,
    place: Place,
    packs: Optional<'_>,
    starts: Option<Starts<'_>>,
) -> PyResult<()> {
    let (states, last, saved) = outcome;
    by_real!("x", &given.0.0, R, py => {
        let arrays = Arrays::<R>::new(&given, &starts)?;
        let mut states = states.outputs(&arrays.run)?;
        let mut last = Output::optional("last", last.as_ref(), &arrays.memories())?;
        let mut saved = Output::optional("saved", saved.as_ref(), &arrays.saved())?;
        let packs = packs.as_ref().map(|packs| Input::new("packs", packs)).transpose()?;
        let view = arrays.view(read(&packs));
        let (states, saved) = (states.view(), write(&mut saved));
        let last = write(&mut last).unwrap_or(&mut []);
        detached::run_interruptible(py, |cancel| {
            place.rum(&view, states, last, saved, &Budget { threads: place.threads(), cancel })
        })
    })
}

/// Gradients of everything from what `rum` wrote and the cotangents of states and memory.
#[pyfunction]
#[pyo3(signature = (given, outcome, cts, bars, place, starts = None, start_bar = None))]
pub fn rum_vjp(
    given: Given<'_>,
    outcome: GivenOutcome<'_>,
    cts: (Any<'_>, Optional<'_>),
    bars: GivenBars<'_>,
    place: Place,
    starts: Option<Starts<'_>>,
    start_bar: Optional<'_>,
) -> PyResult<()> {
    let ((states, last, saved), (ct, last_ct)) = (outcome, cts);
    by_real!("x", &given.0.0, R, py => {
        let arrays = Arrays::<R>::new(&given, &starts)?;
        let [_, _, features, n] = arrays.run.sizes;
        let matrices = arrays.memories();
        let (states, ct) = (states.inputs(&arrays.run)?, Ct::new(&ct, &arrays.run)?);
        let last = Input::optional("last", last.as_ref(), &matrices)?;
        let saved = Input::optional("saved", saved.as_ref(), &arrays.saved())?;
        let last_ct = Input::optional("last_ct", last_ct.as_ref(), &matrices)?;
        let (x, w, u, b, h0, r0, activation_bias) = bars;
        let (mut x, mut h0, mut activation_bias) = arrays.run.bars([&x, &h0, &activation_bias])?;
        let mut w = Output::optional("w_bar", w.as_ref(), &[2 * n, n])?;
        let mut u = Output::optional("u_bar", u.as_ref(), &[3 * n, features])?;
        let mut b = Output::optional("b_bar", b.as_ref(), &[3 * n])?;
        let mut r0 = Output::optional("r0_bar", r0.as_ref(), &matrices)?;
        let shape = arrays.run.states();
        let mut start_state = Output::optional("start_state_bar", start_bar.as_ref(), &shape[1..])?;
        let gradients = RumGradients {
            x: write(&mut x),
            w: write(&mut w),
            u: write(&mut u),
            b: write(&mut b),
            h0: write(&mut h0),
            start_state: write(&mut start_state),
            r0: write(&mut r0),
            activation_bias: write(&mut activation_bias),
        };
        let outcome = Outcome {
            states: states.view(),
            last: read(&last).unwrap_or(&[]),
            saved: read(&saved).unwrap_or(&[]),
            ct: ct.view(),
            last_ct: read(&last_ct),
        };
        let view = arrays.view(None);
        detached::run_interruptible(py, |cancel| {
            place.rum_vjp(&view, &outcome, gradients, &Budget { threads: place.threads(), cancel })
        })
    })
}
