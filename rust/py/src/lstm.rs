//! `lstm*`: the LSTM over a sequence, real numbers; states are h and c in one array.

use crate::arrays::{Any, Input, Number, Optional, Output, read, write};
use crate::place::Place;
use crate::sequence::{Ct, Lengths, Run, Starts, States};
use crate::{by_real, detached};
use isometry_core::Budget;
use isometry_core::recurrence::lstm::{Lstm, LstmGradients, SAVED};
use isometry_core::scalar::Real;
use pyo3::prelude::*;

/// x, w, u, b, h0 (B, 2n), lengths, reverse.
pub type Sequence<'py> = (Any<'py>, Any<'py>, Any<'py>, Optional<'py>, Optional<'py>, Lengths<'py>, bool);

/// Output arrays for the gradients of x, w, u, b, h0; None where one is not wanted.
pub type GivenBars<'py> = (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// [`Sequence`], borrowed and checked.
struct Arrays<'py, R: Number> {
    run: Run<'py, R>,
    /// w, u
    weights: [Input<'py, R>; 2],
    b: Option<Input<'py, R>>,
}

impl<'py, R: Number + Real> Arrays<'py, R> {
    fn new(given: &Sequence<'py>, starts: &Option<Starts<'py>>) -> PyResult<Self> {
        let (x, w, u, b, h0, lengths, reverse) = given;
        let w = Input::<R>::new("w", w)?;
        let [rows, n] = w.sizes("w")?;
        let run = Run::new((x, h0, 2 * n), ("tanh", &None, 0.0), lengths, *reverse)?.with(starts)?;
        let u = Input::shaped("u", u, &[rows, run.sizes[2]])?;
        Ok(Arrays { run, weights: [w, u], b: Input::optional("b", b.as_ref(), &[rows])? })
    }

    fn view<'a>(&'a self, packs: Option<&'a [R]>) -> Lstm<'a, R> {
        let [w, u] = self.weights.each_ref().map(Input::slice);
        Lstm { run: self.run.view(packs), w, u, b: read(&self.b) }
    }

    /// Shape of the array saved for backward.
    fn saved(&self) -> [usize; 4] {
        let [steps, batch, width] = self.run.states();
        [SAVED, steps, batch, width]
    }
}

/// States of the sequence and, if wanted and not on the GPU, the array saved for backward. `packs` is what [`pack`](crate::recurrence::pack)
/// writes of w and u.
#[pyfunction]
#[pyo3(signature = (given, states, saved, place, packs = None, starts = None))]
pub fn lstm(
    given: Sequence<'_>,
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
        let view = arrays.view(read(&packs));
        let (states, saved) = (states.view(), write(&mut saved));
        detached::run_interruptible(py, |cancel| {
            place.lstm(&view, states, saved, &Budget { threads: place.threads(), cancel })
        })
    })
}

/// Gradients of everything from the states, what was saved with them, and their cotangents.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
#[pyfunction]
#[pyo3(signature = (given, states, saved, ct, bars, place, starts = None, start_bar = None))]
pub fn lstm_vjp(
    given: Sequence<'_>,
    states: States<'_>,
    saved: Optional<'_>,
    ct: Any<'_>,
    bars: GivenBars<'_>,
    place: Place,
    starts: Option<Starts<'_>>,
    start_bar: Optional<'_>,
) -> PyResult<()> {
    by_real!("x", &given.0, R, py => {
        let arrays = Arrays::<R>::new(&given, &starts)?;
        let (states, ct) = (states.inputs(&arrays.run)?, Ct::new(&ct, &arrays.run)?);
        let saved = Input::optional("saved", saved.as_ref(), &arrays.saved())?;
        let (x, w, u, b, h0) = bars;
        let (mut x, mut h0, _) = arrays.run.bars([&x, &h0, &None])?;
        let [own, of_x] = arrays.weights.each_ref().map(Input::shape);
        let mut w = Output::optional("w_bar", w.as_ref(), own)?;
        let mut u = Output::optional("u_bar", u.as_ref(), of_x)?;
        let mut b = Output::optional("b_bar", b.as_ref(), &own[..1])?;
        let shape = arrays.run.states();
        let mut start_state = Output::optional("start_state_bar", start_bar.as_ref(), &shape[1..])?;
        let gradients = LstmGradients {
            x: write(&mut x),
            w: write(&mut w),
            u: write(&mut u),
            b: write(&mut b),
            h0: write(&mut h0),
            start_state: write(&mut start_state),
        };
        let view = arrays.view(None);
        let (states, saved, ct) = (states.view(), read(&saved).unwrap_or(&[]), ct.view());
        detached::run_interruptible(py, |cancel| {
            let budget = Budget { threads: place.threads(), cancel };
            place.lstm_vjp(&view, (states, saved, ct), gradients, &budget)
        })
    })
}
