//! `delta_rule*`: products of reflections that depend on the input, real numbers.

use crate::arrays::{Any, Input, Number, Optional, Output, read, write};
use crate::{by_real, detached};
use isometry_core::Budget;
use isometry_core::delta::{Delta, DeltaGradients, Gate, advance, backward, forward};
use isometry_core::scalar::Real;
use pyo3::prelude::*;

/// q, k, v, beta, g, the initial state; cu_seqlens; householders, scale, normalise.
pub type Given<'py> =
    ((Any<'py>, Any<'py>, Any<'py>, Any<'py>, Optional<'py>, Optional<'py>), Optional<'py>, usize, f64, bool);

/// Output arrays for the gradients of the arrays; None where one is not wanted.
pub type GivenBars<'py> =
    (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// [`Given`], borrowed; the core checks its sizes.
struct Arrays<'py, R: Number> {
    /// q, k, v, beta
    required: [Input<'py, R>; 4],
    g: Option<Input<'py, R>>,
    initial: Option<Input<'py, R>>,
    ends: Option<Vec<i64>>,
    householders: usize,
    scale: f64,
    normalise: bool,
}

impl<'py, R: Number + Real> Arrays<'py, R> {
    fn new(given: &Given<'py>) -> PyResult<Self> {
        let ((q, k, v, beta, g, initial), ends, householders, scale, normalise) = given;
        let any = |name: &'static str, x: &Optional<'py>| x.as_ref().map(|x| Input::new(name, x)).transpose();
        Ok(Arrays {
            required: [
                Input::new("q", q)?,
                Input::new("k", k)?,
                Input::new("v", v)?,
                Input::new("beta", beta)?,
            ],
            g: any("g", g)?,
            initial: any("initial_state", initial)?,
            ends: ends.as_ref().map(|ends| Input::new("cu_seqlens", ends)?.copied(Ok)).transpose()?,
            householders: *householders,
            scale: *scale,
            normalise: *normalise,
        })
    }

    fn view(&self) -> PyResult<Delta<'_, R>> {
        let [q, k, v, beta] = &self.required;
        let [batch, tokens, heads, key] = q.sizes("q")?;
        let [_, _, value_heads, value] = v.sizes("v")?;
        let gate = match &self.g {
            None => Gate::None,
            Some(g) if g.shape().len() == 4 => Gate::Row(g.slice()),
            Some(g) => Gate::Head(g.slice()),
        };
        Ok(Delta {
            batch,
            tokens,
            householders: self.householders,
            heads,
            value_heads,
            key,
            value,
            q: q.slice(),
            k: k.slice(),
            v: v.slice(),
            beta: beta.slice(),
            gate,
            initial: read(&self.initial),
            ends: self.ends.as_deref(),
            scale: self.scale,
            normalise: self.normalise,
        })
    }
}

/// Outputs, the states behind the sequences and, if wanted, the states saved for backward; the last says whether the array of the
/// states holds those before the sequences.
#[pyfunction]
pub fn delta_rule(
    given: Given<'_>,
    outcome: (Any<'_>, Any<'_>, Optional<'_>, bool),
    threads: usize,
) -> PyResult<()> {
    let (o, state, saved, continued) = outcome;
    by_real!("q", &given.0.0, R, py => {
        let arrays = Arrays::<R>::new(&given)?;
        let view = arrays.view()?;
        let (mut o, mut state) = (Output::new("o", &o)?, Output::new("out_state", &state)?);
        let mut saved = Output::optional("saved", saved.as_ref(), &view.saved())?;
        let (o, state, saved) = (o.slice(), state.slice(), write(&mut saved));
        detached::run_interruptible(py, |cancel| match (continued, Budget { threads, cancel }) {
            (false, budget) => forward(&view, o, state, saved, &budget),
            (true, budget) => advance(&view, o, state, &budget),
        })
    })
}

/// Gradients of everything from what `delta_rule` saved and the cotangents of outputs and states.
#[pyfunction]
pub fn delta_rule_vjp<'py>(
    given: Given<'py>,
    saved: Any<'py>,
    cts: (Any<'py>, Any<'py>),
    bars: GivenBars<'py>,
    threads: usize,
) -> PyResult<()> {
    by_real!("q", &given.0.0, R, py => {
        let arrays = Arrays::<R>::new(&given)?;
        let view = arrays.view()?;
        let saved = Input::<R>::shaped("saved", &saved, &view.saved())?;
        let (o_bar, state_bar) = (Input::<R>::new("o_bar", &cts.0)?, Input::<R>::new("state_bar", &cts.1)?);
        let any = |name: &'static str, x: &Optional<'py>| {
            x.as_ref().map(|x| Output::<R>::new(name, x)).transpose()
        };
        let (q, k, v, beta, g, initial) = &bars;
        let (mut q, mut k, mut v) = (any("q_bar", q)?, any("k_bar", k)?, any("v_bar", v)?);
        let (mut beta, mut g) = (any("beta_bar", beta)?, any("g_bar", g)?);
        let mut initial = any("initial_state_bar", initial)?;
        let bars = DeltaGradients {
            q: write(&mut q),
            k: write(&mut k),
            v: write(&mut v),
            beta: write(&mut beta),
            g: write(&mut g),
            initial: write(&mut initial),
        };
        let (saved, cts) = (saved.slice(), (o_bar.slice(), state_bar.slice()));
        detached::run_interruptible(py, |cancel| backward(&view, saved, cts, bars, &Budget { threads, cancel }))
    })
}
