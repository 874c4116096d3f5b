//! The delta rule on arrays of the caller or of the device. Nothing is saved for a backward pass: on the device the states are sooner
//! computed again than copied.

use super::arrays::{Results, Uploads};
use super::{field_of, wanted};
use crate::Array;
use crate::delta::{self, Delta};
use crate::device::Record;
use isometry_core::argument::{Bar, Given};
use isometry_core::internal::delta::Sizes;
use isometry_core::scalar::Real;
use isometry_core::{Budget, Error, Result};

/// A call of the delta rule, with the names and shapes of `isometry_core::delta::Delta`.
pub struct DeltaCall<'a, R: Real> {
    /// q, k, v, beta, g, the initial states.
    pub given: [Given<'a, R>; 6],
    /// The first token of each packed sequence, and T.
    pub ends: Option<&'a [i64]>,
    /// m
    pub householders: usize,
    /// The factor of the outputs.
    pub scale: f64,
    /// Whether q and k are divided by sqrt(|.|^2 + 1e-6) first.
    pub normalise: bool,
}

impl<'a, R: Real> DeltaCall<'a, R> {
    /// Calls `f` with the arrays on the device.
    fn on_device<X>(
        &self,
        uploads: &mut Uploads<'a>,
        f: impl FnOnce(&mut Uploads<'a>, &Delta<'_>) -> Result<X>,
    ) -> Result<X> {
        field_of::<R>()?;
        let [q, k, v, beta, g, initial] = &self.given;
        let axes = |name: &'static str, given: &Given<'a, R>| {
            <[usize; 4]>::try_from(given.shape).map_err(|_| Error::shape(name, "4 axes", given.shape.len()))
        };
        let ([batch, tokens, heads, key], [_, _, value_heads, value]) = (axes("q", q)?, axes("v", v)?);
        let householders = self.householders;
        let ends = self.ends;
        let mut sent = |name, given: &Given<'a, R>| uploads.array(name, given, given.shape);
        let (g, initial) = (sent("g", g)?, sent("initial_state", initial)?);
        let needed = |name: &'static str, array: Option<Array>| {
            array.ok_or_else(|| Error::value(name, "must be given"))
        };
        let (q, k) = (needed("q", sent("q", q)?)?, needed("k", sent("k", k)?)?);
        let (v, beta) = (needed("v", sent("v", v)?)?, needed("beta", sent("beta", beta)?)?);
        let delta = Delta {
            sizes: Sizes { batch, tokens, householders, heads, value_heads, key, value, ends },
            q: &q,
            k: &k,
            v: &v,
            beta: &beta,
            g: g.as_ref(),
            initial: initial.as_ref(),
            scale: self.scale as f32,
            normalise: self.normalise,
        };
        f(uploads, &delta)
    }
}

/// o (B, T, HV, V), and the states behind the sequences (N, HV, K, V).
///
/// # Errors
/// Those of `isometry_core::delta::forward`, and of the device.
pub fn delta_rule<R: Real>(
    call: &DeltaCall<'_, R>,
    (o, state): (Bar<'_, R>, Bar<'_, R>),
    budget: &Budget<'_>,
) -> Result<()> {
    call.on_device(&mut Uploads::new()?, |uploads, delta| {
        let mut record = Record::until(uploads.context(), budget.cancel)?;
        let (found_o, found_state) = delta::forward(&mut record, delta)?;
        record.submit()?;
        let mut results = Results::default();
        results.put(&found_o, o)?;
        results.put(&found_state, state)?;
        results.wait(budget)
    })
}

/// The gradients of q, k, v, beta, g and the initial states, from those of outputs and states.
///
/// # Errors
/// Those of `isometry_core::delta::backward`, and of the device.
pub fn delta_rule_vjp<'a, R: Real>(
    call: &DeltaCall<'a, R>,
    [o_bar, state_bar]: [Given<'a, R>; 2],
    bars: Vec<Bar<'_, R>>,
    budget: &Budget<'_>,
) -> Result<()> {
    call.on_device(&mut Uploads::new()?, |uploads, delta| {
        let o_bar = uploads.needed("o_bar", &o_bar, o_bar.shape)?;
        let state_bar = uploads.needed("state_bar", &state_bar, state_bar.shape)?;
        let mut record = Record::until(uploads.context(), budget.cancel)?;
        let mut own = [false; 6];
        own.iter_mut().zip(wanted(&bars)).for_each(|(own, wanted)| *own = wanted);
        let found = delta::backward(&mut record, delta, (&o_bar, &state_bar), own)?;
        record.submit()?;
        let lacking =
            bars.iter().zip(&found).any(|(bar, found)| !matches!(bar, Bar::None) && found.is_none());
        if lacking {
            return Err(Error::value("bars", "has the gradient of an argument that is not given"));
        }
        let mut results = Results::default();
        results.put_all(&found, bars)?;
        results.wait(budget)
    })
}
