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

use super::call::{Call, Outcome};
use super::declaration::Declaration;
use super::driver::{Backward, Forward, want_huge_pages};
use super::parts::Gates;
use super::time::{Checkpoint, Run, refuse_undoing};
use super::unit::Unit;
use crate::argument::{Argument, Bar, argument};
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::sizes::{check_len, work};
use crate::transition::{Component, Needs};
use cell::RumCell;
use isometry_kernels::recurrence::heard_len;
use pull::RumPull;
use std::mem::take;

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
    packs: &[(1, &[2]), (2, &[2, 1])],
    ..Declaration::new("rum", ARGUMENTS)
};

/// The arguments of a rotational unit.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::activation::Activation;
/// use isometry_core::argument::wanted;
/// use isometry_core::recurrence::{Cotangent, Outcome, Run, Unit, rum::{self, Rum, SAVED}};
///
/// // R turns e = (0, 1) to tau = (1, 0), so k = e + R h = (1, 1), and h is half the way from (0, 1) to it
/// let (w, u, b) = ([0.0f64; 8], [0.0; 6], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]); // u, tau, e: two of each
/// let run = Run { h0: Some(&[0.0, 1.0]), activation: Activation::Identity, ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let rum = Rum { run, w: &w, u: &u, b: Some(&b), memory: false, r0: None, eta: None };
/// let (mut states, mut saved, mut h0_bar) = ([0.0; 2], [0.0; 2 * SAVED], [0.0; 2]);
/// rum.forward((&mut states).into(), &mut [], Some(&mut saved), &Budget::of(1))?;
/// assert!((states[0] - 0.5).abs() < 1e-15 && (states[1] - 1.0).abs() < 1e-15);
/// // h_1 = h / 2 + (e + R h) / 2, of which the first number is taken
/// let ct = Cotangent::Last(&[1.0, 0.0]);
/// let outcome = Outcome { states: (&states).into(), last: &[], saved: &saved, ct, last_ct: None };
/// rum.backward(&outcome, &mut wanted(rum::ARGUMENTS, [("h0", &mut h0_bar[..])]), &mut [], &Budget::of(1))?;
/// assert!(h0_bar.iter().all(|x| (x - 0.5).abs() < 1e-15));
/// # Ok::<(), isometry_core::Error>(())
/// ```
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

impl<R: Real> Rum<'_, R> {
    /// Refuses the last memory of another size, or one without a memory.
    fn check_last(&self, argument: &'static str, len: usize) -> Result<()> {
        let Run { batch, n, .. } = self.run;
        if self.memory { check_len(argument, len, &[batch, n, n]) } else { check_len(argument, len, &[0]) }
    }
}

impl<'a, R: Real> Unit<'a, R> for Rum<'a, R> {
    fn of(call: &Call<'a, R>, _: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [w, u, b, r0] = call.own();
        let [w, u] = [w, u].map(Option::unwrap_or_default);
        Ok(Rum { run: call.run()?, w, u, b, memory: call.flag(0), r0, eta: call.setting(1).map(R::of) })
    }
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }
    fn run(&self) -> &Run<'a, R> {
        &self.run
    }
    fn own(&self) -> [Option<&'a [R]>; 4] {
        [Some(self.w), Some(self.u), self.b, self.r0]
    }
    fn refuse(&self) -> Result<()> {
        if self.run.starts.is_some() && self.memory {
            return Err(Error::Unsupported("starts: a unit with a memory has no marks".into()));
        }
        if self.r0.is_some() && !self.memory {
            return Err(Error::value("r0", "belongs to a memory only"));
        }
        if self.eta.is_some_and(|eta| eta.is_nan() || eta <= R::zero()) {
            return Err(Error::value("eta", "must be positive"));
        }
        Ok(())
    }
    /// One that would have to keep memories too, or undo steps.
    fn refuse_checkpoint(&self, checkpoint: Option<Checkpoint>) -> Result<()> {
        if checkpoint.is_some() && self.memory {
            return Err(Error::value("checkpoint", "must not be given with a memory"));
        }
        refuse_undoing(checkpoint)
    }

    unsafe fn steps(&self, mut call: Forward<'_, R>) -> Result<()> {
        // taken: the call moves, and moving it would end what is written through its memory
        let (checkpoint, last) = (call.written.checkpoint(), take(&mut call.last));
        self.refuse_checkpoint(checkpoint)?;
        self.check_last("last", last.len())?;
        let setting = Setting::new(self, checkpoint)?;
        want_huge_pages(last);
        match self.r0 {
            Some(r0) => last.copy_from_slice(r0),
            None => {
                last.fill(R::zero());
                last.chunks_mut(self.run.n * self.run.n)
                    .for_each(|r| r.iter_mut().step_by(self.run.n + 1).for_each(|r| *r = R::one()));
            }
        }
        let memory = self.memory.then_some(Shared(last.as_mut_ptr()));
        // SAFETY: the contract of the trait.
        unsafe { call.drive(&setting.gates.line, |arena| RumCell::carve(arena, &setting, memory)) }
    }

    unsafe fn steps_back(&self, mut call: Backward<'_, R>, _: &mut [Bar<'_, R>]) -> Result<()> {
        let (checkpoint, Outcome { last, last_ct: ct, .. }) = (call.checkpoint(), call.outcome);
        self.check_last("last", last.len())?;
        ct.map_or(Ok(()), |ct| self.check_last("last_ct", ct.len()))?;
        let setting = Setting::new(self, checkpoint)?;
        let [w, u, b, r0] = take(&mut call.own).map(Bar::shared);
        let memory = self.memory.then_some(Memory { last, ct });
        // SAFETY: the contract of the trait.
        unsafe {
            let wanted = (call.bars(&setting.gates.line, [w, u, b]), r0);
            let carve = |arena: &mut _| RumPull::carve(arena, &setting, checkpoint.is_some(), wanted, memory);
            call.drive(&setting.gates.line, carve)
        }
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
        let gates = Gates::new(&rum.run, (rum.w, rum.u), [rum.b, None], rum.packs(), SAVED, checkpoint)?;
        Ok(Setting { gates, eta: rum.eta, memory: rum.memory })
    }
}

// SAFETY: the scratch is that of a rotation.
unsafe impl<R: Real> Component<R> for Setting<'_, R> {
    fn needs(&self, _rows: usize) -> Needs {
        let n = self.gates.n;
        let work = if self.memory { work(&[6, n, n]) } else { work(&[12, n]) };
        Needs { work: [work, 0], divisible: false, held: 0, free: heard_len(n) }
    }
}

/// A memory (B, n, n) after the last step of each sequence, and its cotangents, zeros if absent.
#[derive(Clone, Copy)]
struct Memory<'a, R> {
    last: &'a [R],
    ct: Option<&'a [R]>,
}
