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
mod gradients;
mod places;
mod pull;
#[cfg(test)]
mod tests;

pub use gradients::RumGradients;

use super::ends::{Cotangent, Kept, Written};
use super::frame::Space;
use super::padded::padded;
use super::plan::{Checkpoint, refuse_undoing};
use super::replay::Replay;
use super::schedule::Schedule;
use super::sharing::Room;
use super::timeline::{Timeline, in_halves};
use super::{backward as back, forward as forth, pages::want_huge_pages};
use crate::activation::{Activation, RowActivation};
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::Real;
use crate::scratch::Scratch;
use crate::sizes::{check_len, work};
use crate::transition::Packs;
use cell::{Operands, RumCell};
use isometry_kernels::recurrence::heard_len;
use places::Places;
use pull::RumPull;

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 4;

/// The arguments of a rotational unit.
#[derive(Clone, Copy)]
pub struct Rum<'a, R: Real> {
    /// T
    pub steps: usize,
    /// B
    pub batch: usize,
    /// d
    pub features: usize,
    /// State size.
    pub n: usize,
    /// (T, B, d)
    pub x: &'a [R],
    /// W (2n, n): rows of u, then of tau
    pub w: &'a [R],
    /// U (3n, d): rows of u, tau, e
    pub u: &'a [R],
    /// b (3n)
    pub b: Option<&'a [R]>,
    /// (B, n), zeros if absent
    pub h0: Option<&'a [R]>,
    /// Whether each sequence has a matrix of its own that all its rotations multiply.
    pub memory: bool,
    /// (B, n, n), identities if absent; with a memory only
    pub r0: Option<&'a [R]>,
    /// The length of the states, if they are normalised.
    pub eta: Option<R>,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs, one per feature.
    pub activation_bias: Option<&'a [R]>,
    /// Steps of each sequence, not increasing; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
    /// W, U_ut, U_e, as [`pack`](super::pack) writes them: they are not packed again.
    pub packs: Option<&'a [R]>,
}

impl<R: Real> Rum<'_, R> {
    /// Refuses sizes that do not fit.
    pub fn check(&self) -> Result<()> {
        let Rum { steps, batch, features, n, .. } = *self;
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        check_len("x", self.x.len(), &[steps, batch, features])?;
        check_len("w", self.w.len(), &[2, n, n])?;
        check_len("u", self.u.len(), &[3, n, features])?;
        self.b.map_or(Ok(()), |b| check_len("b", b.len(), &[3, n]))?;
        self.h0.map_or(Ok(()), |h0| check_len("h0", h0.len(), &[batch, n]))?;
        if self.r0.is_some() && !self.memory {
            return Err(Error::value("r0", "belongs to a memory only"));
        }
        self.r0.map_or(Ok(()), |r0| self.check_memory("r0", r0.len()))?;
        if self.eta.is_some_and(|eta| eta.is_nan() || eta <= R::zero()) {
            return Err(Error::value("eta", "must be positive"));
        }
        Packs(self.packs).check(&[[2 * n, n], [2 * n, features], [n, features]])?;
        Schedule::check(steps, batch, self.lengths)?;
        self.activation.check::<R>(n, self.activation_bias)
    }

    /// T, B and n.
    fn sizes(&self) -> [usize; 3] {
        [self.steps, self.batch, self.n]
    }

    /// Refuses saved arrays of another size, or any beside less than all states.
    fn check_saved(&self, len: usize, whole: bool) -> Result<()> {
        check_len("saved", len, &[if whole { SAVED } else { 0 }, self.steps, self.batch, self.n])
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
        check_len(argument, len, &[self.batch, self.n, self.n])
    }

    /// Refuses the last memory of another size, or one without a memory.
    fn check_last(&self, argument: &'static str, len: usize) -> Result<()> {
        if self.memory { self.check_memory(argument, len) } else { check_len(argument, len, &[0]) }
    }

    /// Distance of the rows of bars: an odd number of cache lines, for the gradient of W reads them down their columns.
    fn pitch(&self) -> usize {
        let line = 64 / size_of::<R>();
        ((3 * self.n).div_ceil(line) | 1) * line
    }

    /// Multiply-adds per row: those that depend on n only, and those of the products of U.
    fn work(&self) -> [usize; 2] {
        let memory = if self.memory { work(&[6, self.n, self.n]) } else { work(&[12, self.n]) };
        [work(&[2, self.n, self.n]).saturating_add(memory), work(&[3, self.n, self.features])]
    }
}

/// A checked unit, prepared.
struct Setting<'a, R: Real> {
    rum: Rum<'a, R>,
    line: Timeline<'a, R>,
    phi: RowActivation<R>,
    /// b of u and tau, and of e, each for whole vectors; empty without.
    biases: [Buffer<R>; 2],
}

impl<'a, R: Real> Setting<'a, R> {
    fn new(rum: &Rum<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let Rum { steps, batch, features, n, lengths, reverse, .. } = *rum;
        let biases = [padded(rum.b.map(|b| &b[..2 * n]))?, padded(rum.b.map(|b| &b[2 * n..]))?];
        let schedule = Schedule::new(steps, batch, lengths, reverse)?.under(checkpoint);
        let phi = RowActivation::new::<R>(rum.activation, n, rum.activation_bias)?;
        let line = Timeline { schedule, x: rum.x, features, h0: rum.h0, width: n };
        Ok(Setting { rum: *rum, line, phi, biases })
    }
}

/// States (T, B, n), zeros past the end of a sequence; or the last of each sequence, and those at the borders of a
/// checkpoint's segments. `last` takes the memory (B, n, n) after the last step of each sequence, and is empty without
/// one. `saved` takes [`SAVED`] arrays (T, B, n) for a [`backward`] from all states; past the end of a sequence nothing is
/// written.
pub fn forward<'a, R: Real>(
    rum: &Rum<'_, R>,
    written: impl Into<Written<'a, R>>,
    last: &mut [R],
    saved: Option<&mut [R]>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let mut written: Written<'_, R> = written.into();
    rum.check()?;
    rum.check_checkpoint(written.checkpoint())?;
    written.check(rum.sizes(), SAVED)?;
    rum.check_last("last", last.len())?;
    saved.as_ref().map_or(Ok(()), |saved| rum.check_saved(saved.len(), written.states.is_some()))?;
    let setting = Setting::new(rum, written.checkpoint())?;
    let (line, schedule) = (&setting.line, &setting.line.schedule);
    let one_step = if saved.is_none() { SAVED } else { 0 };
    let places = Scratch::new(|arena| {
        let operands = Operands::carve(arena, &setting);
        let space = Space::forward(arena, schedule, line.width, written.states.is_none(), one_step);
        let [w, u] = rum.work();
        let load = (w.saturating_add(u), false);
        (operands, space, Room::carve(arena, schedule, load, heard_len(rum.n), threads))
    })?;
    let (operands, space, room) = &*places;
    want_huge_pages(last);
    match rum.r0 {
        Some(r0) => last.copy_from_slice(r0),
        None => {
            last.fill(R::zero());
            last.chunks_mut(rum.n * rum.n)
                .for_each(|r| r.iter_mut().step_by(rum.n + 1).for_each(|r| *r = R::one()));
        }
    }
    let outputs = written.outputs(line, SAVED);
    let [states, saved] = [written.states, saved].map(|array| {
        array.map(|array| {
            want_huge_pages(array);
            &*array
        })
    });
    let frames = space.frames(schedule, line.width, states, saved);
    let memory = if rum.memory { last.as_mut_ptr() } else { std::ptr::null_mut() };
    let cell = RumCell { setting: &setting, operands, memory };
    forth::forward(&cell, room, schedule, (&frames, &outputs), cancel)
}

/// The results of [`forward`], and their cotangents.
#[derive(Clone, Copy)]
pub struct Outcome<'a, R> {
    /// The states.
    pub states: Kept<'a, R>,
    /// Memory (B, n, n), empty without one.
    pub last: &'a [R],
    /// [`SAVED`] arrays (T, B, n), empty with a checkpoint.
    pub saved: &'a [R],
    /// Cotangents of the states, or of the last ones.
    pub ct: Cotangent<'a, R>,
    /// Cotangents of the memory, zeros if absent.
    pub last_ct: Option<&'a [R]>,
}

/// The gradients of [`forward`]; those that are None are not computed.
pub fn backward<R: Real>(
    rum: &Rum<'_, R>,
    outcome: &Outcome<'_, R>,
    gradients: RumGradients<'_, R>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    rum.check()?;
    let Outcome { states: kept, last, saved, ct, last_ct } = *outcome;
    let checkpoint = kept.checkpoint();
    rum.check_checkpoint(checkpoint)?;
    kept.check(rum.sizes(), SAVED)?;
    rum.check_last("last", last.len())?;
    rum.check_saved(saved.len(), checkpoint.is_none())?;
    ct.check(rum.sizes())?;
    last_ct.map_or(Ok(()), |ct| rum.check_last("last_ct", ct.len()))?;
    gradients.check(rum)?;
    let setting = Setting::new(rum, checkpoint)?;
    let (line, schedule) = (&setting.line, &setting.line.schedule);
    let (halves, wants) = (in_halves(schedule, true), gradients.wants());
    let places = Scratch::new(|arena| {
        let places = Places::carve(arena, &setting, halves, &wants);
        let again = checkpoint.map(|_| Operands::carve(arena, &setting));
        let space = Space::backward(arena, schedule, line.width, checkpoint, SAVED);
        let room = Room::carve(arena, schedule, (rum.work()[0], false), places.scratch(&setting), threads);
        (places, again, space, room)
    })?;
    let (places, again, space, room) = &*places;
    let memory = std::ptr::null_mut();
    let again = again.as_ref().map(|operands| RumCell { setting: &setting, operands, memory });
    let saved = checkpoint.is_none().then_some(saved);
    let frames = space.frames(schedule, line.width, kept.states(), saved);
    let replay = kept.marks().zip(again.as_ref()).map(|([marks, _], cell)| Replay {
        cell,
        frames: &frames,
        segments: space.segments,
        marks: marks.as_ptr(),
        undo: None,
    });
    // SAFETY: the memory was cut for this call and these gradients; the arrays have their sizes.
    unsafe {
        let pull = RumPull::new(&setting, places, halves, again.as_ref(), outcome, gradients);
        back::backward(&pull, room, schedule, (&frames, replay.as_ref()), cancel)
    }
}
