//! The rotational unit of memory over a whole sequence, real numbers:
//!
//! ```text
//! (u', tau) = W h_{t-1} + U_ut x_t + b_ut,    u = sigma(u'),    e = U_e x_t + b_e
//! R_t = Rotation(e, tau), or with a memory R_{t-1} Rotation(e, tau)
//! k = phi(e + R_t h_{t-1})
//! h' = u * h_{t-1} + (1 - u) * k,             h_t = h', or eta h' / ||h'||
//! ```
//!
//! U_ut and U_e are stacked in one array, as are b_ut and b_e. A rotation is two reflections; those of a
//! memory turn every row of its matrix. Rotations and norms need whole rows, so members share rows of the
//! batch and never columns.
//!
//! Forward saves for backward, for each step: u and tau, e, and k (or the argument of phi where the
//! derivative cannot be read off k). Backward, with the cotangent g of h', a prime for those of the arguments
//! of sigma and phi,
//!
//! ```text
//! u'_bar = g * (h_{t-1} - k) * u * (1 - u),    k' = phi'(g * (1 - u)),
//! e_bar = k' + cotangent of the rotation's start, tau_bar that of its end,
//! h_bar_{t-1} = g * u + R_t^T k' + W^T (u'_bar, tau_bar).
//! ```
//!
//! The matrices of a memory are not saved: rotations are orthogonal, so they are recomputed by R_{t-1} = R_t
//! Rotation(e, tau)^T from the last one on. The two reflections are computed from the saved e and tau to the
//! same bits, hence undone up to rounding even where the rotation itself is ill-conditioned; an orthogonal
//! map does not amplify what was rounded before, so R_{t-1} is off by at most some T eps.

mod cell;
mod pull;

pub use super::call::Outcome;

use super::call::{Call, Unit};
use super::declaration::Declaration;
use super::driver::ends::Written;
use super::driver::{self, want_huge_pages};
use super::parts::gates::{GateBars, Gates};
use super::parts::inputs::InputBars;
use super::time::checkpoint::{Checkpoint, refuse_undoing};
use super::time::timeline::Run;
use crate::argument;
use crate::argument::{Argument, Array, Bar, check_bars, rooms};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::sizes::{check_len, work};
use crate::transition::{check_packs, each_pack};
use cell::RumCell;
use pull::RumPull;

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 4;

/// The arrays in the order of their gradients.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "2n n"),
    argument!("u", "3n d"),
    argument!("b", "3n", optional),
    argument!("h0", "B n", optional),
    argument!("r0", "B n n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B n", optional),
];

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["memory", "eta"],
    saved: SAVED,
    memory: "memory",
    ..Declaration::new("rum", ARGUMENTS)
};

/// The arguments of a rotational unit.
#[derive(Clone, Copy)]
pub struct Rum<'a, R: Real> {
    /// What every cell has; `packs` are W, U_ut, U_e.
    pub run: Run<'a, R>,
    /// W (2n, n): rows of u, then of tau
    pub w: &'a [R],
    /// U (3n, d): rows of u, tau, e
    pub u: &'a [R],
    /// b (3n)
    pub b: Option<&'a [R]>,
    /// Whether each sequence has a matrix of its own that all its rotations multiply.
    pub memory: bool,
    /// (B, n, n), identities if absent; with a memory only
    pub r0: Option<&'a [R]>,
    /// The length of the states, if they are normalised.
    pub eta: Option<R>,
}

impl<'a, R: Real> Rum<'a, R> {
    /// Refuses sizes that do not fit.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        let Run { features, n, .. } = self.run;
        self.run.check()?;
        if self.run.starts.is_some() && self.memory {
            return Err(Error::Unsupported("starts: a unit with a memory has no marks".into()));
        }
        check_len("w", self.w.len(), &[2, n, n])?;
        check_len("u", self.u.len(), &[3, n, features])?;
        self.b.map_or(Ok(()), |b| check_len("b", b.len(), &[3, n]))?;
        if self.r0.is_some() && !self.memory {
            return Err(Error::value("r0", "belongs to a memory only"));
        }
        self.r0.map_or(Ok(()), |r0| self.check_memory("r0", r0.len()))?;
        if self.eta.is_some_and(|eta| eta.is_nan() || eta <= R::zero()) {
            return Err(Error::value("eta", "must be positive"));
        }
        check_packs::<R>(self.run.packs, &self.packed())
    }

    /// In the order of the gradients.
    fn arrays(&self) -> [Array<'a, R>; 8] {
        let Run { x, h0, activation_bias, starts, .. } = self.run;
        let state = starts.and_then(|starts| starts.state);
        let [x, w, u] = [x, self.w, self.u].map(Array::Own);
        let [b, h0, r0, state] = [self.b, h0, self.r0, state].map(Array::own);
        [x, w, u, b, h0, r0, Array::real(activation_bias), state]
    }

    /// Sizes of the operands that the caller may have packed.
    fn packed(&self) -> [[usize; 2]; 3] {
        [[2 * self.run.n, self.run.n], [2 * self.run.n, self.run.features], [self.run.n, self.run.features]]
    }

    /// Refuses a checkpoint that would have to keep memories too, or undo steps.
    fn check_checkpoint(&self, checkpoint: Option<Checkpoint>) -> Result<()> {
        if checkpoint.is_some() && self.memory {
            return Err(Error::value("checkpoint", "must not be given with a memory"));
        }
        refuse_undoing(checkpoint)
    }

    /// Refuses matrices (B, n, n) of another size.
    fn check_memory(&self, argument: &'static str, len: usize) -> Result<()> {
        check_len(argument, len, &[self.run.batch, self.run.n, self.run.n])
    }

    /// Refuses the last memory of another size, or one without a memory.
    #[doc(hidden)]
    pub fn check_last(&self, argument: &'static str, len: usize) -> Result<()> {
        if self.memory { self.check_memory(argument, len) } else { check_len(argument, len, &[0]) }
    }
}

impl<'a, R: Real> Unit<'a, R> for Rum<'a, R> {
    fn of(call: &Call<'a, R>, _: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [_, w, u, b, _, r0] = call.arrays();
        let [w, u] = [w, u].map(|array| array.unwrap_or(&[]));
        Ok(Rum { run: call.run()?, w, u, b, memory: call.flag(0), r0, eta: call.setting(1).map(R::of) })
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
        last: &mut [R],
        saved: Option<&mut [R]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        forward(self, written, last, saved, budget)
    }

    fn backward(
        &self,
        outcome: &Outcome<'_, R>,
        bars: &mut [Bar<'_, R>],
        _: &mut [Bar<'_, R>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        backward(self, outcome, bars, budget)
    }
}

/// A checked unit, prepared.
struct Setting<'a, R: Real> {
    gates: Gates<'a, R>,
    eta: Option<R>,
    memory: bool,
}

impl<'a, R: Real> Setting<'a, R> {
    /// From a unit that has passed its check.
    fn new(rum: &Rum<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let packs = each_pack::<R, 3>(rum.run.packs, rum.packed());
        let gates = Gates::new(&rum.run, (rum.w, rum.u), [rum.b, None], packs, SAVED, checkpoint)?;
        Ok(Setting { gates, eta: rum.eta, memory: rum.memory })
    }

    /// Multiply-adds of a rotation per row.
    fn rotation_work(&self) -> usize {
        if self.memory { work(&[6, self.gates.n, self.gates.n]) } else { work(&[12, self.gates.n]) }
    }
}

/// A memory (B, n, n) after the last step of each sequence, and its cotangents, zeros if absent.
#[derive(Clone, Copy)]
struct Memory<'a, R> {
    last: &'a [R],
    ct: Option<&'a [R]>,
}

/// States (T, B, n), zeros past the end of a sequence; or the last of each sequence, and those at the borders of a
/// checkpoint's segments. `last` takes the memory (B, n, n) after the last step of each sequence, and is empty without
/// one. `saved` takes [`SAVED`] arrays (T, B, n) for a [`backward`] from all states; past the end of a sequence nothing is
/// written.
///
/// ```
/// use isometry_core::activation::Activation;
/// use isometry_core::recurrence::{Run, rum::{self, Rum}};
/// use isometry_core::Budget;
///
/// // R turns e = (0, 1) to tau = (1, 0), so k = e + R h = (1, 1), and h is half the way from (0, 1) to it
/// let (w, u, b) = ([0.0f64; 8], [0.0; 6], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]); // u, tau, e: two of each
/// let run = Run { h0: Some(&[0.0, 1.0]), activation: Activation::Identity, ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let rum = Rum { run, w: &w, u: &u, b: Some(&b), memory: false, r0: None, eta: None };
/// let mut states = [0.0; 2];
/// rum::forward(&rum, &mut states, &mut [], None, &Budget::of(1))?;
/// assert!((states[0] - 0.5).abs() < 1e-15 && (states[1] - 1.0).abs() < 1e-15);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Sizes or lengths that do not fit, an eta that is not positive, marks or a checkpoint of a unit with a memory; lack of memory;
/// [`Error::Interrupted`] once the budget says so.
pub fn forward<'a, R: Real>(
    rum: &Rum<'_, R>,
    written: impl Into<Written<'a, R>>,
    last: &mut [R],
    saved: Option<&mut [R]>,
    budget: &Budget<'_>,
) -> Result<()> {
    let written: Written<'_, R> = written.into();
    rum.check()?;
    rum.check_checkpoint(written.checkpoint())?;
    let each = SAVED * rum.run.n;
    written.check(rum.run.sizes(), (saved.as_ref().map(|saved| saved.len()), each))?;
    rum.check_last("last", last.len())?;
    let setting = Setting::new(rum, written.checkpoint())?;
    want_huge_pages(last);
    match rum.r0 {
        Some(r0) => last.copy_from_slice(r0),
        None => {
            last.fill(R::zero());
            last.chunks_mut(rum.run.n * rum.run.n)
                .for_each(|r| r.iter_mut().step_by(rum.run.n + 1).for_each(|r| *r = R::one()));
        }
    }
    let memory = rum.memory.then_some(Shared(last.as_mut_ptr()));
    let carve = |arena: &mut _| RumCell::carve(arena, &setting, memory);
    // SAFETY: everything has passed its check.
    unsafe { driver::forward(&setting.gates.line, written, (saved, each), budget, carve) }
}

/// The gradients of [`forward`] in the order of [`ARGUMENTS`]. Unwanted gradients are not computed.
///
/// ```
/// use isometry_core::activation::Activation;
/// use isometry_core::argument::wanted;
/// use isometry_core::recurrence::{Cotangent, Run, rum::{self, Outcome, Rum, SAVED}};
/// use isometry_core::Budget;
///
/// // that of `forward`: h_1 = h / 2 + (e + R h) / 2, of which the first number is taken
/// let (w, u, b) = ([0.0f64; 8], [0.0; 6], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]); // u, tau, e: two of each
/// let run = Run { h0: Some(&[0.0, 1.0]), activation: Activation::Identity, ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let rum = Rum { run, w: &w, u: &u, b: Some(&b), memory: false, r0: None, eta: None };
/// let (mut states, mut saved, mut h0_bar) = ([0.0; 2], [0.0; 2 * SAVED], [0.0; 2]);
/// rum::forward(&rum, &mut states, &mut [], Some(&mut saved), &Budget::of(1))?;
/// let ct = Cotangent::Last(&[1.0, 0.0]);
/// let outcome = Outcome { states: (&states).into(), last: &[], saved: &saved, ct, last_ct: None };
/// let mut bars = wanted(rum::ARGUMENTS, [("h0", &mut h0_bar[..])]);
/// rum::backward(&rum, &outcome, &mut bars, &Budget::of(1))?;
/// drop(bars);
/// assert!(h0_bar.iter().all(|x| (x - 0.5).abs() < 1e-15));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`forward`]; gradients of arguments that were not given.
pub fn backward<R: Real>(
    rum: &Rum<'_, R>,
    outcome: &Outcome<'_, R>,
    bars: &mut [Bar<'_, R>],
    budget: &Budget<'_>,
) -> Result<()> {
    rum.check()?;
    let Outcome { states, last, saved, ct, last_ct } = *outcome;
    let checkpoint = states.checkpoint();
    rum.check_checkpoint(checkpoint)?;
    let each = SAVED * rum.run.n;
    states.check(rum.run.sizes(), (saved.len(), each))?;
    rum.check_last("last", last.len())?;
    ct.check(rum.run.sizes(), &states)?;
    last_ct.map_or(Ok(()), |ct| rum.check_last("last_ct", ct.len()))?;
    rum.check_bars(bars)?;
    let setting = Setting::new(rum, checkpoint)?;
    let line = &setting.gates.line;
    let [x, w, u, b, h0, r0, activation_bias, start_state] = rooms(bars);
    let inputs = InputBars { x: x.shared(), weight: u.shared(), bias: b.shared() };
    let rows = ct.rows(line, h0.shared(), start_state.shared());
    let gates = GateBars { ct: rows, w: w.shared(), inputs, activation_bias: activation_bias.shared_real() };
    let wanted = (gates, r0.shared());
    let memory = rum.memory.then_some(Memory { last, ct: last_ct });
    let carve = |arena: &mut _| RumPull::carve(arena, &setting, checkpoint.is_some(), wanted, memory);
    // SAFETY: everything has passed its check.
    unsafe { driver::backward(line, (states, ct), (saved, each), budget, carve) }
}
