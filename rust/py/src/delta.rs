//! `delta_rule*`: products of reflections that depend on the input, real numbers.

use crate::arrays::{Any, Input, Number, Optional, Output, read, write};
#[cfg(feature = "gpu")]
use crate::error::exception;
use crate::place::Place;
use crate::{by_real, detached};
use isometry_core::Budget;
#[cfg(feature = "gpu")]
use isometry_core::Error;
#[cfg(feature = "gpu")]
use isometry_core::argument::{Array, Bar, Given as GivenArray};
use isometry_core::delta::{Delta, DeltaGradients, Gate, advance, backward, forward};
use isometry_core::scalar::Real;
#[cfg(feature = "gpu")]
use isometry_gpu::hosted::{self, DeltaCall};
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
    fn new(given: &Given<'py>, place: Place) -> PyResult<Self> {
        let ((q, k, v, beta, g, initial), ends, householders, scale, normalise) = given;
        let one = |name: &'static str, x: &Any<'py>| Input::at(place, name, x);
        let any = |name: &'static str, x: &Optional<'py>| x.as_ref().map(|x| one(name, x)).transpose();
        Ok(Arrays {
            required: [one("q", q)?, one("k", k)?, one("v", v)?, one("beta", beta)?],
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

/// Outputs and states, or gradients, on the GPU.
#[cfg(feature = "gpu")]
impl<R: Number + Real> Arrays<'_, R> {
    fn call(&self) -> DeltaCall<'_, R> {
        let none = GivenArray { shape: &[], array: Array::None };
        let [q, k, v, beta] = self.required.each_ref().map(Input::given);
        let [g, initial] = [&self.g, &self.initial].map(|x| x.as_ref().map_or(none, Input::given));
        DeltaCall {
            given: [q, k, v, beta, g, initial],
            ends: self.ends.as_deref(),
            householders: self.householders,
            scale: self.scale,
            normalise: self.normalise,
        }
    }
}

/// Outputs, the states behind the sequences and, on the CPU if wanted, the states saved for backward; the last says whether the array of the
/// states holds those before the sequences.
#[pyfunction]
pub fn delta_rule(
    given: Given<'_>,
    outcome: (Any<'_>, Any<'_>, Optional<'_>, bool),
    place: Place,
) -> PyResult<()> {
    let (o, state, saved, continued) = outcome;
    by_real!("q", &given.0.0, R, py => {
        let arrays = Arrays::<R>::new(&given, place)?;
        #[cfg(feature = "gpu")]
        if let Place::Gpu = place {
            if continued {
                return Err(exception(Error::Unsupported("backend='gpu' does not continue states in place".into())));
            }
            let (mut o, mut state) = (Output::at(place, "o", &o)?, Output::at(place, "out_state", &state)?);
            let (call, results) = (arrays.call(), (o.bar().0, state.bar().0));
            return detached::run(py, |cancel| {
                hosted::delta_rule(&call, results, &Budget { threads: place.threads(), cancel })
            });
        }
        let view = arrays.view()?;
        let (mut o, mut state) = (Output::new("o", &o)?, Output::new("out_state", &state)?);
        let mut saved = Output::optional("saved", saved.as_ref(), &view.saved())?;
        let (o, state, saved) = (o.slice(), state.slice(), write(&mut saved));
        let budget = Budget::of(place.threads());
        detached::run(py, |_| match continued {
            false => forward(&view, o, state, saved, &budget),
            true => advance(&view, o, state, &budget),
        })
    })
}

/// Gradients of everything from what `delta_rule` saved on the CPU and the cotangents of outputs and states.
#[pyfunction]
pub fn delta_rule_vjp<'py>(
    given: Given<'py>,
    saved: Optional<'py>,
    cts: (Any<'py>, Any<'py>),
    bars: GivenBars<'py>,
    place: Place,
) -> PyResult<()> {
    by_real!("q", &given.0.0, R, py => {
        let arrays = Arrays::<R>::new(&given, place)?;
        let (o_bar, state_bar) = (Input::<R>::at(place, "o_bar", &cts.0)?, Input::<R>::at(place, "state_bar", &cts.1)?);
        let any = |name: &'static str, x: &Optional<'py>| {
            x.as_ref().map(|x| Output::<R>::at(place, name, x)).transpose()
        };
        let (q, k, v, beta, g, initial) = &bars;
        let (mut q, mut k, mut v) = (any("q_bar", q)?, any("k_bar", k)?, any("v_bar", v)?);
        let (mut beta, mut g) = (any("beta_bar", beta)?, any("g_bar", g)?);
        let mut initial = any("initial_state_bar", initial)?;
        #[cfg(feature = "gpu")]
        if let Place::Gpu = place {
            let own = [&mut q, &mut k, &mut v, &mut beta, &mut g, &mut initial];
            let bars = own.into_iter().map(|bar| bar.as_mut().map_or(Bar::None, |bar| bar.bar().0)).collect();
            let (call, cts) = (arrays.call(), [o_bar.given(), state_bar.given()]);
            return detached::run(py, |cancel| {
                hosted::delta_rule_vjp(&call, cts, bars, &Budget { threads: place.threads(), cancel })
            });
        }
        let view = arrays.view()?;
        let saved = Input::<R>::optional("saved", saved.as_ref(), &view.saved())?;
        let bars = DeltaGradients {
            q: write(&mut q),
            k: write(&mut k),
            v: write(&mut v),
            beta: write(&mut beta),
            g: write(&mut g),
            initial: write(&mut initial),
        };
        let (saved, cts) = (read(&saved).unwrap_or(&[]), (o_bar.slice(), state_bar.slice()));
        detached::run(py, |_| backward(&view, saved, cts, bars, &Budget::of(place.threads())))
    })
}
