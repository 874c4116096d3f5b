//! The gated recurrent unit over a whole sequence, real numbers:
//!
//! ```text
//! z_t = sigma(W_z h_{t-1} + U_z x_t + b_z),      r_t = sigma(W_r h_{t-1} + U_r x_t + b_r)
//! reset before      c_t = phi(W_h (r_t * h_{t-1}) + U_h x_t + b_h)
//! reset after       c_t = phi(r_t * (W_h h_{t-1} + c_h) + U_h x_t + b_h)
//! h_t = z_t * h_{t-1} + (1 - z_t) * c_t
//! ```
//!
//! c_h is given alone, or behind second biases of z and r, which add to the first.
//!
//! W_h is a matrix, the third of w, or an operator on rows, applied step by step.
//!
//! z and r take one product, which adds U x. Forward saves for backward, for each step ([`Gru::saved`]): z,
//! r, then c (or the argument of phi where the derivative cannot be read off c), then for "after" W_h h +
//! c_h. Backward, with the cotangent g of h_t and a prime for the cotangents of the arguments of sigma and
//! phi,
//!
//! ```text
//! c' = phi'(g * (1 - z))      z' = g * (h_{t-1} - c) * z * (1 - z)
//! before    s = W_h^T c'      r' = s * h_{t-1} * r * (1 - r)         h_bar_{t-1} = g * z + s * r + W_zr^T (z', r')
//! after     q = c' * r        r' = c' * (W_h h + c_h) * r * (1 - r)  h_bar_{t-1} = g * z + W_h^T q + W_zr^T (z', r')
//! ```

mod cell;
mod pull;

use super::call::{Call, Outcome, Unit};
use super::declaration::Declaration;
use super::driver;
use super::driver::ends::{Cotangent, Trajectory, Written};
use super::parts::gates::{GateBars, Gates};
use super::parts::inputs::InputBars;
use super::parts::padded::padded;
use super::parts::transition::transition;
use super::time::checkpoint::{Checkpoint, refuse_undoing};
use super::time::timeline::Run;
use crate::argument;
use crate::argument::{Argument, Array, Bar, check_bars, rooms};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::sizes::check_len;
use crate::transition::{Prepared, Transition, check_packs, each_pack};
use cell::GruCell;
use pull::GruPull;

/// The arrays in the order of their gradients.
pub const ARGUMENTS: &[Argument] = &arguments("3 n n");

const fn arguments(w: &'static str) -> [Argument; 8] {
    let mut arguments = [
        argument!("x", "T B d"),
        argument!("w", ""),
        argument!("u", "3 n d"),
        argument!("b", "3 n", optional),
        argument!("h0", "B n", optional),
        argument!("hidden_bias", "n", optional),
        argument!("activation_bias", "", real, optional),
        argument!("start_state", "T B n", optional),
    ];
    arguments[1].axes = w;
    arguments
}

/// The place of b, whose axes the hidden bias may have.
const B: usize = 3;

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["after"],
    saved: 3,
    saves_more: "after",
    ..Declaration::new("gru", ARGUMENTS).also("hidden_bias", B)
};

/// With an operator as W_h.
pub(super) const WITH_OPERATOR: Declaration = Declaration {
    operator: "w",
    dense: "gru",
    settings: DECLARATION.settings,
    saved: DECLARATION.saved,
    saves_more: DECLARATION.saves_more,
    ..Declaration::new("goru", &arguments("2 n n")).also("hidden_bias", B)
};

/// Where the reset gate acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// On the state that W_h sees.
    Before,
    /// On W_h h + c_h.
    After,
}

/// The arguments of a GRU. The order of the gates in w, u and b is z, r, h.
#[derive(Clone, Copy)]
pub struct Gru<'a, R: Real> {
    /// What every cell has; `packs` are W_z and W_r, W_h if it is part of w, U_z and U_r, U_h.
    pub run: Run<'a, R>,
    /// W (3, n, n), or beside a transition W_z and W_r (2, n, n)
    pub w: &'a [R],
    /// W_h, an operator on rows
    pub transition: Option<&'a dyn Cpu<R>>,
    /// U (3, n, d)
    pub u: &'a [R],
    /// b (3, n)
    pub b: Option<&'a [R]>,
    /// Where r acts.
    pub reset: Reset,
    /// c_h (n), with [`Reset::After`] only; or (3, n), of which those of the gates add to b
    pub hidden_bias: Option<&'a [R]>,
}

impl<'a, R: Real> Gru<'a, R> {
    /// Refuses sizes that do not fit.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        let Run { features, n, .. } = self.run;
        self.run.check()?;
        check_len("w", self.w.len(), &[self.matrices(), n, n])?;
        self.rows()?;
        check_len("u", self.u.len(), &[3, n, features])?;
        self.b.map_or(Ok(()), |b| check_len("b", b.len(), &[3, n]))?;
        if self.hidden_bias.is_some() && self.reset == Reset::Before {
            return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
        }
        let parts = self.of_gates().map_or(1, |_| 3);
        self.hidden_bias.map_or(Ok(()), |bias| check_len("hidden_bias", bias.len(), &[parts, n]))?;
        check_packs::<R>(self.run.packs, &self.packed())
    }

    /// Those of the second biases that add to b: of z and r, in front of c_h.
    fn of_gates(&self) -> Option<&'a [R]> {
        self.hidden_bias.filter(|bias| bias.len() > self.run.n).map(|bias| &bias[..bias.len() - self.run.n])
    }

    /// Sizes of the operands that the caller may have packed.
    fn packed(&self) -> [[usize; 2]; 4] {
        let (n, features) = (self.run.n, self.run.features);
        [[2 * n, n], [if self.transition.is_some() { 0 } else { n }, n], [2 * n, features], [n, features]]
    }

    /// In the order of the gradients.
    fn arrays(&self) -> [Array<'a, R>; 8] {
        let Run { x, h0, activation_bias, starts, .. } = self.run;
        let state = starts.and_then(|starts| starts.state);
        let [x, w, u] = [x, self.w, self.u].map(Array::Own);
        let [b, h0, hidden_bias, state] = [self.b, h0, self.hidden_bias, state].map(Array::own);
        [x, w, u, b, h0, hidden_bias, Array::real(activation_bias), state]
    }

    /// Number of matrices in w.
    pub(crate) fn matrices(&self) -> usize {
        if self.transition.is_some() { 2 } else { 3 }
    }

    /// W_h, where it is no matrix.
    fn rows(&self) -> Result<Option<Transition<'a, R>>> {
        let Some(operator) = self.transition else { return Ok(None) };
        match transition(operator, self.run.n)? {
            rows @ Transition::Rows(_) => Ok(Some(rows)),
            _ => Err(Error::Unsupported("this operator serves a gated unit through its matrix only".into())),
        }
    }

    /// Arrays (T, B, n) that forward saves for backward.
    ///
    /// ```
    /// use isometry_core::recurrence::{Run, gru::{Gru, Reset}};
    ///
    /// let run = Run::new([2, 1, 1, 1], &[0.0f32; 2]);
    /// let gru = Gru { run, w: &[0.0; 3], transition: None, u: &[0.0; 3], b: None, reset: Reset::After, hidden_bias: None };
    /// assert_eq!(gru.saved(), 4); // z, r, c and W_h h + c_h
    /// ```
    pub fn saved(&self) -> usize {
        if self.reset == Reset::After { 4 } else { 3 }
    }

    /// W_h, where it is part of w.
    fn own(&self) -> &'a [R] {
        &self.w[2 * self.run.n * self.run.n..]
    }
}

impl<'a, R: Real> Unit<'a, R> for Gru<'a, R> {
    fn of(call: &Call<'a, R>, transition: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [_, w, u, b, _, hidden_bias] = call.arrays();
        let reset = if call.flag(0) { Reset::After } else { Reset::Before };
        let [w, u] = [w, u].map(|array| array.unwrap_or(&[]));
        Ok(Gru { run: call.run()?, w, transition, u, b, reset, hidden_bias })
    }

    fn check(&self) -> Result<()> {
        self.check()
    }

    fn check_bars(&self, bars: &[Bar<'_, R>]) -> Result<()> {
        let held = self.arrays();
        check_bars(ARGUMENTS, |i| held[i], bars)
    }

    fn forward(
        &self,
        written: Written<'_, R>,
        _: &mut [R],
        saved: Option<&mut [R]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        forward(self, written, saved, budget)
    }

    fn backward(
        &self,
        outcome: &Outcome<'_, R>,
        bars: &mut [Bar<'_, R>],
        of_operator: &mut [Bar<'_, R>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        let Outcome { states, saved, ct, .. } = *outcome;
        backward(self, states, saved, ct, bars, of_operator, budget)
    }
}

/// A checked GRU, prepared.
struct Setting<'a, R: Real> {
    gates: Gates<'a, R>,
    /// W_h, and as the caller has packed it.
    own: Prepared<'a, R>,
    given: Option<&'a [R]>,
    reset: Reset,
    /// c_h for whole vectors; empty without.
    hidden_bias: Buffer<R>,
}

impl<'a, R: Real> Setting<'a, R> {
    /// From a GRU that has passed its check.
    fn new(gru: &Gru<'a, R>, own: Prepared<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let [w, given, of_gates, of_c] = each_pack::<R, 4>(gru.run.packs, gru.packed());
        let packs = [w, of_gates, of_c];
        let of_gates = gru.of_gates();
        let biases = [gru.b, of_gates];
        let gates = Gates::new(&gru.run, (gru.w, gru.u), biases, packs, gru.saved(), checkpoint)?;
        let own_bias = gru.hidden_bias.map(|bias| &bias[of_gates.map_or(0, <[R]>::len)..]);
        Ok(Setting { gates, own, given, reset: gru.reset, hidden_bias: padded(own_bias)? })
    }
}

/// States (T, B, n), zeros past the end of a sequence; or the last of each sequence, and those at the borders of a
/// checkpoint's segments. `saved` takes [`Gru::saved`] arrays (T, B, n) for a [`backward`] from all states; past the end
/// of a sequence nothing is written.
///
/// ```
/// use isometry_core::recurrence::{Run, gru::{self, Gru, Reset}};
/// use isometry_core::Budget;
///
/// // without weights the gates are 1/2 and the candidate 0: the state is halved
/// let run = Run { h0: Some(&[1.0]), ..Run::new([2, 1, 1, 1], &[0.0; 2]) };
/// let gru = Gru { run, w: &[0.0; 3], transition: None, u: &[0.0; 3], b: None, reset: Reset::Before, hidden_bias: None };
/// let (mut states, mut saved) = ([0.0; 2], vec![0.0; gru.saved() * 2]);
/// gru::forward(&gru, &mut states, Some(&mut saved), &Budget::of(1))?;
/// assert_eq!(states, [0.5, 0.25]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Sizes or lengths that do not fit, a bias that the reset does not have, a transition that does not act on rows; lack of memory;
/// [`Error::Interrupted`] once the budget says so.
pub fn forward<'a, R: Real>(
    gru: &Gru<'_, R>,
    written: impl Into<Written<'a, R>>,
    saved: Option<&mut [R]>,
    budget: &Budget<'_>,
) -> Result<()> {
    let written: Written<'_, R> = written.into();
    gru.check()?;
    let each = gru.saved() * gru.run.n;
    written.check(gru.run.sizes(), (saved.as_ref().map(|saved| saved.len()), each))?;
    let own = gru.rows()?.unwrap_or_else(|| Transition::Dense(gru.own()));
    let setting = Setting::new(gru, Prepared::forward(own)?, written.checkpoint())?;
    let carve = |arena: &mut _| GruCell::carve(arena, &setting);
    // SAFETY: everything has passed its check.
    unsafe { driver::forward(&setting.gates.line, written, (saved, each), budget, carve) }
}

/// The gradients of [`forward`] for the cotangents of what it returned, in the order of [`ARGUMENTS`]; those of the transition's
/// arguments go to `of_operator`. Unwanted gradients are not computed. `saved` is what forward wrote, empty with a checkpoint.
///
/// ```
/// use isometry_core::argument::wanted;
/// use isometry_core::recurrence::{Cotangent, Run, gru::{self, Gru, Reset}};
/// use isometry_core::Budget;
///
/// // that of `forward`: h_2 = h_0 / 4
/// let (budget, run) = (Budget::of(1), Run { h0: Some(&[1.0]), ..Run::new([2, 1, 1, 1], &[0.0; 2]) });
/// let gru = Gru { run, w: &[0.0; 3], transition: None, u: &[0.0; 3], b: None, reset: Reset::Before, hidden_bias: None };
/// let (mut states, mut saved, mut h0_bar) = ([0.0; 2], [0.0; 6], [0.0]);
/// gru::forward(&gru, &mut states, Some(&mut saved), &budget)?;
/// let mut bars = wanted(gru::ARGUMENTS, [("h0", &mut h0_bar[..])]);
/// gru::backward(&gru, &states, &saved, Cotangent::Last(&[1.0]), &mut bars, &mut [], &budget)?;
/// drop(bars);
/// assert_eq!(h0_bar, [0.25]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`forward`]; gradients of arguments that were not given.
pub fn backward<'a, R: Real>(
    gru: &Gru<'_, R>,
    states: impl Into<Trajectory<'a, R>>,
    saved: &[R],
    ct: impl Into<Cotangent<'a, R>>,
    bars: &mut [Bar<'_, R>],
    of_operator: &mut [Bar<'_, R>],
    budget: &Budget<'_>,
) -> Result<()> {
    let (states, ct): (Trajectory<'_, R>, Cotangent<'_, R>) = (states.into(), ct.into());
    let checkpoint = states.checkpoint();
    gru.check()?;
    let each = gru.saved() * gru.run.n;
    states.check(gru.run.sizes(), (saved.len(), each))?;
    ct.check(gru.run.sizes(), &states)?;
    gru.check_bars(bars)?;
    gru.transition.map_or(Ok(()), |transition| transition.check_bars(of_operator))?;
    refuse_undoing(checkpoint)?;
    let [x, w, u, b, h0, hidden_bias, activation_bias, start_state] = rooms(bars);
    let w = w.own().map(|bar| bar.split_at_mut(2 * gru.run.n * gru.run.n));
    let (w, mut of_own) =
        w.map_or((None, Bar::None), |(w, own)| (Some(Shared(w.as_mut_ptr())), Bar::Own(own)));
    let (own, own_wanted) = match gru.rows()? {
        Some(rows) => {
            let wanted = of_operator.iter().any(|bar| !matches!(bar, Bar::None));
            (Prepared::backward(rows, of_operator)?, wanted)
        }
        None => {
            let wanted = !matches!(of_own, Bar::None);
            (Prepared::backward(Transition::Dense(gru.own()), std::slice::from_mut(&mut of_own))?, wanted)
        }
    };
    let setting = Setting::new(gru, own, checkpoint)?;
    let line = &setting.gates.line;
    // The gates' second biases have the gradient of their first.
    let (of_gates, hidden_bias) = hidden_bias.own().map_or((None, None), |bar| {
        let (of_gates, own) = bar.split_at_mut(gru.of_gates().map_or(0, <[R]>::len));
        (Some(of_gates).filter(|bar| !bar.is_empty()), Some(Shared(own.as_mut_ptr())))
    });
    let mut first = Buffer::zeroed(if of_gates.is_some() { 3 * gru.run.n } else { 0 })?;
    let mut b = b.own().or(of_gates.is_some().then_some(&mut *first));
    let bias = b.as_deref_mut().map(|bar| Shared(bar.as_mut_ptr()));
    let inputs = InputBars { x: x.shared(), weight: u.shared(), bias };
    let rows = ct.rows(line, h0.shared(), start_state.shared());
    let gates = GateBars { ct: rows, w, inputs, activation_bias: activation_bias.shared_real() };
    let wanted = (gates, own_wanted, hidden_bias);
    let carve = |arena: &mut _| GruPull::carve(arena, &setting, checkpoint.is_some(), wanted);
    // SAFETY: everything has passed its check.
    unsafe { driver::backward(line, (states, ct), (saved, each), budget, carve)? };
    if let Some((second, first)) = of_gates.zip(b) {
        second.copy_from_slice(&first[..second.len()]);
    }
    setting.own.finish(of_operator)
}
