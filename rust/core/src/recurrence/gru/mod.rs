//! The gated recurrent unit over a whole sequence, real numbers:
//!
//! ```text
//! z_t = sigma(W_z h_{t-1} + U_z x_t + b_z),      r_t = sigma(W_r h_{t-1} + U_r x_t + b_r)
//! reset before      c_t = phi(W_h (r_t * h_{t-1}) + U_h x_t + b_h)
//! reset after       c_t = phi(r_t * (W_h h_{t-1} + c_h) + U_h x_t + b_h)
//! h_t = z_t * h_{t-1} + (1 - z_t) * c_t
//! ```
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
mod gradients;
mod own;
mod places;
mod pull;
#[cfg(test)]
mod tests;

pub use gradients::GruGradients;

use super::affine::transition;
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
use crate::argument::Bar;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::rows::{self, Rows};
use crate::scalar::Real;
use crate::scratch::Scratch;
use crate::sizes::{check_len, work};
use crate::transition::{Packs, Transition};
use cell::{GruCell, Operands};
use places::Places;
use pull::GruPull;

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
    /// W (3, n, n), or beside a transition W_z and W_r (2, n, n)
    pub w: &'a [R],
    /// W_h, an operator on rows
    pub transition: Option<&'a dyn Cpu<R>>,
    /// U (3, n, d)
    pub u: &'a [R],
    /// b (3, n)
    pub b: Option<&'a [R]>,
    /// (B, n), zeros if absent
    pub h0: Option<&'a [R]>,
    /// Where r acts.
    pub reset: Reset,
    /// c_h (n), with [`Reset::After`] only
    pub hidden_bias: Option<&'a [R]>,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs, one per feature.
    pub activation_bias: Option<&'a [R]>,
    /// Steps of each sequence, not increasing; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
    /// W_z and W_r, W_h if it is part of w, U_z and U_r, U_h, as [`pack`](super::pack) writes them: they are not packed again.
    pub packs: Option<&'a [R]>,
}

impl<'a, R: Real> Gru<'a, R> {
    /// Refuses sizes that do not fit.
    pub fn check(&self) -> Result<()> {
        let Gru { steps, batch, features, n, .. } = *self;
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        check_len("x", self.x.len(), &[steps, batch, features])?;
        check_len("w", self.w.len(), &[self.matrices(), n, n])?;
        self.rows()?;
        check_len("u", self.u.len(), &[3, n, features])?;
        self.b.map_or(Ok(()), |b| check_len("b", b.len(), &[3, n]))?;
        self.h0.map_or(Ok(()), |h0| check_len("h0", h0.len(), &[batch, n]))?;
        if self.hidden_bias.is_some() && self.reset == Reset::Before {
            return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
        }
        self.hidden_bias.map_or(Ok(()), |bias| check_len("hidden_bias", bias.len(), &[n]))?;
        let own = if self.transition.is_some() { 0 } else { n };
        Packs(self.packs).check(&[[2 * n, n], [own, n], [2 * n, features], [n, features]])?;
        Schedule::check(steps, batch, self.lengths)?;
        self.activation.check::<R>(n, self.activation_bias)
    }

    /// Number of matrices in w.
    pub fn matrices(&self) -> usize {
        if self.transition.is_some() { 2 } else { 3 }
    }

    /// W_h, where it is no matrix.
    fn rows(&self) -> Result<Option<&'a dyn Rows<R>>> {
        let Some(operator) = self.transition else { return Ok(None) };
        match transition(operator, self.n)? {
            Transition::Rows(rows) => Ok(Some(rows)),
            _ => Err(Error::Unsupported("this operator serves a gated unit through its matrix only".into())),
        }
    }

    /// Arrays (T, B, n) that forward saves for backward.
    pub fn saved(&self) -> usize {
        if self.reset == Reset::After { 4 } else { 3 }
    }

    /// T, B and n.
    fn sizes(&self) -> [usize; 3] {
        [self.steps, self.batch, self.n]
    }

    /// Refuses saved arrays of another size, or any beside less than all states.
    fn check_saved(&self, len: usize, whole: bool) -> Result<()> {
        check_len("saved", len, &[if whole { self.saved() } else { 0 }, self.steps, self.batch, self.n])
    }

    /// Distance of the rows of bars: an odd number of cache lines, for the gradient of W reads them down their columns.
    fn pitch(&self) -> usize {
        let line = 64 / size_of::<R>();
        ((self.saved() * self.n).div_ceil(line) | 1) * line
    }

    /// Multiply-adds per row: of the products of z and r, and of all those of U.
    fn work(&self) -> [usize; 2] {
        [work(&[2, self.n, self.n]), work(&[3, self.n, self.features])]
    }
}

/// A checked GRU, prepared.
struct Setting<'a, R: Real> {
    gru: Gru<'a, R>,
    line: Timeline<'a, R>,
    /// W_h, where it is no matrix.
    rows: Option<&'a dyn Rows<R>>,
    phi: RowActivation<R>,
    /// b_z and b_r, b_h, and c_h, each for whole vectors; empty without.
    biases: [Buffer<R>; 3],
}

impl<'a, R: Real> Setting<'a, R> {
    /// From a GRU that has passed its check.
    fn new(gru: &Gru<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let Gru { steps, batch, features, n, lengths, reverse, .. } = *gru;
        let [gates, own] = [gru.b.map(|b| &b[..2 * n]), gru.b.map(|b| &b[2 * n..])];
        let biases = [padded(gates)?, padded(own)?, padded(gru.hidden_bias)?];
        let schedule = Schedule::new(steps, batch, lengths, reverse)?.under(checkpoint);
        let phi = RowActivation::new::<R>(gru.activation, n, gru.activation_bias)?;
        let line = Timeline { schedule, x: gru.x, features, h0: gru.h0, width: n };
        Ok(Setting { gru: *gru, line, rows: gru.rows()?, phi, biases })
    }
}

/// States (T, B, n), zeros past the end of a sequence; or the last of each sequence, and those at the borders of a
/// checkpoint's segments. `saved` takes [`Gru::saved`] arrays (T, B, n) for a [`backward`] from all states; past the end
/// of a sequence nothing is written.
pub fn forward<'a, R: Real>(
    gru: &Gru<'_, R>,
    written: impl Into<Written<'a, R>>,
    saved: Option<&mut [R]>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let mut written: Written<'_, R> = written.into();
    gru.check()?;
    written.check(gru.sizes(), gru.saved())?;
    saved.as_ref().map_or(Ok(()), |saved| gru.check_saved(saved.len(), written.states.is_some()))?;
    let setting = Setting::new(gru, written.checkpoint())?;
    let (line, schedule) = (&setting.line, &setting.line.schedule);
    let one_step = if saved.is_none() { gru.saved() } else { 0 };
    let places = Scratch::new(|arena| {
        let operands = Operands::carve(arena, &setting);
        let space = Space::forward(arena, schedule, line.width, written.states.is_none(), one_step);
        let own = operands.own.step();
        let load = (operands.work(&setting), own.divisible());
        let room = Room::carve(arena, schedule, load, own.scratch(0), threads);
        (operands, space, room)
    })?;
    let (operands, space, room) = &*places;
    // SAFETY: the memory was cut for this call.
    unsafe { operands.own.step().fill() };
    let outputs = written.outputs(line, gru.saved());
    let [states, saved] = [written.states, saved].map(|array| {
        array.map(|array| {
            want_huge_pages(array);
            &*array
        })
    });
    let frames = space.frames(schedule, line.width, states, saved);
    let cell = GruCell { setting: &setting, operands };
    forth::forward(&cell, room, schedule, (&frames, &outputs), cancel)
}

/// The gradients of [`forward`] for the cotangents of what it returned. Gradients that are None are not computed; those
/// of the transition's arguments go to `bars`. `saved` is what forward wrote, empty with a checkpoint.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
pub fn backward<'a, R: Real>(
    gru: &Gru<'_, R>,
    kept: impl Into<Kept<'a, R>>,
    saved: &[R],
    ct: impl Into<Cotangent<'a, R>>,
    mut gradients: GruGradients<'_, R>,
    bars: &mut [Bar<'_, R>],
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let (kept, ct): (Kept<'_, R>, Cotangent<'_, R>) = (kept.into(), ct.into());
    let checkpoint = kept.checkpoint();
    gru.check()?;
    kept.check(gru.sizes(), gru.saved())?;
    gru.check_saved(saved.len(), checkpoint.is_none())?;
    ct.check(gru.sizes())?;
    gradients.check(gru)?;
    gru.transition.map_or(Ok(()), |transition| transition.check_bars(bars))?;
    refuse_undoing(checkpoint)?;
    let setting = Setting::new(gru, checkpoint)?;
    setting.rows.map_or(Ok(()), |rows| rows.check_bars(bars))?;
    let (line, schedule) = (&setting.line, &setting.line.schedule);
    let (halves, wants) = (in_halves(schedule, true), gradients.wants());
    let mut sums = Buffer::zeroed(setting.rows.map_or(0, Rows::sums))?;
    let w_bar = gradients.w.take().map(|bar| Shared(bar.as_mut_ptr()));
    let own_bar = if setting.rows.is_some() {
        bars.iter().any(|bar| !matches!(bar, Bar::None)).then(|| Shared(sums.as_mut_ptr()))
    } else {
        w_bar.map(|bar| Shared(bar.at(2 * gru.n * gru.n)))
    };
    let places = Scratch::new(|arena| {
        let places = Places::carve(arena, &setting, (own_bar, halves), &wants);
        let again = checkpoint.map(|_| Operands::carve(arena, &setting));
        let space = Space::backward(arena, schedule, line.width, checkpoint, gru.saved());
        let forth = again.as_ref().map_or(0, |again| again.own.step().scratch(0));
        let own = places.scratch(&setting).max(forth);
        let load = (places.work(&setting), places.own.step().divisible());
        let room = Room::carve(arena, schedule, load, own, threads);
        (places, again, space, room)
    })?;
    let (places, again, space, room) = &*places;
    let again = again.as_ref().map(|operands| GruCell { setting: &setting, operands });
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
        places.own.step().fill();
        if let Some(again) = &again {
            again.operands.own.step().fill();
        }
        let ct = ct.rows(line.stride());
        let pull = GruPull::new(&setting, places, halves, again.as_ref(), ct, w_bar, gradients);
        back::backward(&pull, room, schedule, (&frames, replay.as_ref()), cancel)?;
    }
    setting.rows.map_or(Ok(()), |rows| rows::deal(rows, &mut sums, bars))
}
