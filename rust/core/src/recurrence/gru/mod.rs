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

use super::call::Call;
use super::declaration::Declaration;
use super::driver::{Backward, Forward};
use super::parts::{Gates, padded, transition};
use super::time::{Checkpoint, Run};
use super::unit::Unit;
use crate::argument::{Argument, Bar, argument};
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::transition::{Prepared, Transition};
use cell::GruCell;
use pull::GruPull;
use std::mem::take;

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

/// The value of the setting "after" for arrays in torch's order.
const R_FIRST: f64 = 2.0;

/// The place of b, whose axes the hidden bias may have.
const B: usize = 3;

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["after"],
    saved: 3,
    saves_more: "after",
    packs: &[(1, &[2, 1]), (2, &[2, 1])],
    ..Declaration::new("gru", ARGUMENTS).also("hidden_bias", B)
};

/// With an operator as W_h.
pub(super) const WITH_OPERATOR: Declaration = Declaration {
    operator: "w",
    dense: "gru",
    settings: DECLARATION.settings,
    saved: DECLARATION.saved,
    saves_more: DECLARATION.saves_more,
    packs: &[(1, &[2]), (2, &[2, 1])],
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

/// The arguments of a GRU. The order of the gates in w, u and b is z, r, h, or torch's.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::argument::wanted;
/// use isometry_core::recurrence::{Cotangent, Outcome, Run, Unit, gru::{self, Gru, Reset}};
///
/// // without weights the gates are 1/2 and the candidate 0: the state is halved
/// let (run, budget) = (Run { h0: Some(&[1.0]), ..Run::new([2, 1, 1, 1], &[0.0; 2]) }, Budget::of(1));
/// let gru = Gru { run, w: &[0.0; 3], transition: None, u: &[0.0; 3], b: None, reset: Reset::Before, hidden_bias: None, r_first: false };
/// let (mut states, mut saved, mut h0_bar) = ([0.0; 2], vec![0.0; gru.saved() * 2], [0.0]);
/// gru.forward((&mut states).into(), &mut [], Some(&mut saved), &budget)?;
/// assert_eq!(states, [0.5, 0.25]);
/// // hence the gradient of the last state in h_0
/// let ct = Cotangent::Last(&[1.0]);
/// let outcome = Outcome { states: (&states).into(), last: &[], saved: &saved, ct, last_ct: None };
/// gru.backward(&outcome, &mut wanted(gru::ARGUMENTS, [("h0", &mut h0_bar[..])]), &mut [], &budget)?;
/// assert_eq!(h0_bar, [0.25]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
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
    /// Whether all arrays have the gates in torch's order r, z, h.
    pub r_first: bool,
}

impl<'a, R: Real> Gru<'a, R> {
    /// Arrays (T, B, n) that forward saves for backward.
    ///
    /// ```
    /// use isometry_core::recurrence::{Run, gru::{Gru, Reset}};
    ///
    /// let run = Run::new([2, 1, 1, 1], &[0.0f32; 2]);
    /// let gru = Gru { run, w: &[0.0; 3], transition: None, u: &[0.0; 3], b: None, reset: Reset::After, hidden_bias: None, r_first: false };
    /// assert_eq!(gru.saved(), 4); // z, r, c and W_h h + c_h
    /// ```
    pub fn saved(&self) -> usize {
        if self.reset == Reset::After { 4 } else { 3 }
    }

    /// Those of the second biases that add to b: of z and r, in front of c_h.
    fn of_gates(&self) -> Option<&'a [R]> {
        self.hidden_bias.filter(|bias| bias.len() > self.run.n).map(|bias| &bias[..bias.len() - self.run.n])
    }

    /// W_h: the operator, or a part of w.
    fn candidate(&self) -> Result<Transition<'a, R>> {
        let Some(operator) = self.transition else {
            return Ok(Transition::Dense(&self.w[2 * self.run.n * self.run.n..]));
        };
        match transition(operator, self.run.n)? {
            rows @ Transition::Rows(_) => Ok(rows),
            _ => Err(Error::Unsupported("this operator serves a gated unit through its matrix only".into())),
        }
    }
}

impl<'a, R: Real> Unit<'a, R> for Gru<'a, R> {
    fn of(call: &Call<'a, R>, transition: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [w, u, b, hidden_bias] = call.own();
        let [w, u] = [w, u].map(Option::unwrap_or_default);
        let reset = if call.flag(0) { Reset::After } else { Reset::Before };
        let r_first = call.setting(0) == Some(R_FIRST);
        Ok(Gru { run: call.run()?, w, transition, u, b, reset, hidden_bias, r_first })
    }
    fn declaration(&self) -> &'static Declaration {
        if self.transition.is_some() { &WITH_OPERATOR } else { &DECLARATION }
    }
    fn run(&self) -> &Run<'a, R> {
        &self.run
    }
    fn own(&self) -> [Option<&'a [R]>; 4] {
        [Some(self.w), Some(self.u), self.b, self.hidden_bias]
    }
    fn operator(&self) -> Option<&'a dyn Cpu<R>> {
        self.transition
    }
    fn saves(&self) -> usize {
        self.saved()
    }
    fn refuse(&self) -> Result<()> {
        if self.hidden_bias.is_some() && self.reset == Reset::Before {
            return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
        }
        Ok(())
    }

    unsafe fn steps(&self, call: Forward<'_, R>) -> Result<()> {
        let own = Prepared::forward(self.candidate()?)?;
        let setting = Setting::new(self, own, call.written.checkpoint())?;
        // SAFETY: the contract of the trait.
        unsafe { call.drive(&setting.gates.line, |arena| GruCell::carve(arena, &setting)) }
    }

    unsafe fn steps_back(&self, mut call: Backward<'_, R>, of_operator: &mut [Bar<'_, R>]) -> Result<()> {
        let (n, checkpoint) = (self.run.n, call.checkpoint());
        let [w, u, b, hidden_bias] = take(&mut call.own).map(Bar::own);
        let (w, mut of_own) = match w.map(|bar| bar.split_at_mut(2 * n * n)) {
            Some((w, own)) => (Some(w), [Bar::Own(own)]),
            None => (None, [Bar::None]),
        };
        let any = |bars: &[Bar<'_, R>]| bars.iter().any(|bar| !matches!(bar, Bar::None));
        let (own_wanted, own) = match self.transition {
            Some(_) => (any(of_operator), Prepared::backward(self.candidate()?, of_operator)?),
            None => (any(&of_own), Prepared::backward(self.candidate()?, &mut of_own)?),
        };
        let setting = Setting::new(self, own, checkpoint)?;
        // The gates' second biases have the gradient of their first.
        let (second, hidden_bias) = hidden_bias.map_or((None, None), |bar| {
            let (second, own) = bar.split_at_mut(self.of_gates().map_or(0, <[R]>::len));
            (Some(second).filter(|bar| !bar.is_empty()), Some(own))
        });
        let mut first = Buffer::zeroed(if second.is_some() { 3 * n } else { 0 })?;
        let mut b = b.or(second.is_some().then_some(&mut *first));
        let shared = |bar: Option<&mut [R]>| bar.map(|bar| Shared(bar.as_mut_ptr()));
        let own = [shared(w), shared(u), shared(b.as_deref_mut())];
        // SAFETY: the contract of the trait.
        unsafe {
            let bars = call.bars(&setting.gates.line, own);
            let wanted = (bars, own_wanted, shared(hidden_bias));
            let carve = |arena: &mut _| GruPull::carve(arena, &setting, checkpoint.is_some(), wanted);
            call.drive(&setting.gates.line, carve)?;
        }
        if let Some((second, first)) = second.zip(b) {
            second.copy_from_slice(&first[..second.len()]);
        }
        setting.own.finish(of_operator)
    }
}

/// A checked GRU, prepared.
struct Setting<'a, R: Real> {
    gates: Gates<'a, R>,
    /// W_h, and as the caller has packed it.
    own: Prepared<'a, R>,
    given: Option<&'a [R]>,
    reset: Reset,
    /// Those of z and r in a row of gates.
    places: [usize; 2],
    /// c_h for whole vectors; empty without.
    hidden_bias: Buffer<R>,
}

impl<'a, R: Real> Setting<'a, R> {
    /// From a GRU that has passed its check.
    fn new(gru: &Gru<'a, R>, own: Prepared<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let (packs, given) = match gru.transition {
            Some(_) => (gru.packs(), None),
            None => {
                let [w, own, of_gates, of_c] = gru.packs();
                ([w, of_gates, of_c], own)
            }
        };
        let of_gates = gru.of_gates();
        let biases = [gru.b, of_gates];
        let gates = Gates::new(&gru.run, (gru.w, gru.u), biases, packs, gru.saved(), checkpoint)?;
        let own_bias = gru.hidden_bias.map(|bias| &bias[of_gates.map_or(0, <[R]>::len)..]);
        let (n, hidden_bias) = (gru.run.n, padded(own_bias)?);
        let places = if gru.r_first { [n, 0] } else { [0, n] };
        Ok(Setting { gates, own, given, reset: gru.reset, places, hidden_bias })
    }
}
