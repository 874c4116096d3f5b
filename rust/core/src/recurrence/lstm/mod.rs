//! The LSTM over a whole sequence, real numbers, with gates in the order of `torch.nn.LSTM`:
//!
//! ```text
//! (i', f', g', o') = W h_{t-1} + U x_t + b
//! i = sigma(i'),  f = sigma(f'),  g = tanh(g'),  o = sigma(o')
//! c_t = f * c_{t-1} + i * g,      h_t = o * tanh(c_t)
//! ```
//!
//! A state is (h, c), 2n numbers: what the driver does to states, it does to both. Forward saves the gates for backward
//! ([`SAVED`]). Backward, with the cotangents h_bar and c_bar of h_t and c_t and a prime for those of the arguments of the gates,
//!
//! ```text
//! s = c_bar + h_bar * o * (1 - tanh(c_t)^2)
//! i' = s * g * i * (1 - i),  f' = s * c_{t-1} * f * (1 - f),  g' = s * i * (1 - g^2),  o' = h_bar * tanh(c_t) * o * (1 - o)
//! h_bar_{t-1} = W^T (i', f', g', o'),    c_bar_{t-1} = s * f
//! ```

mod cell;
mod pull;

use super::call::{Call, Outcome, Unit};
use super::declaration::Declaration;
use super::driver;
use super::driver::ends::{Cotangent, Trajectory, Written};
use super::parts::inputs::InputBars;
use super::parts::pair_pull::PairBars;
use super::parts::pairs::{PairArrays, Pairs};
use super::time::checkpoint::{Checkpoint, refuse_undoing};
use super::time::timeline::Run;
use crate::argument;
use crate::argument::{Argument, Bar, check_bars, rooms};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::Result;
use crate::scalar::Real;
use crate::transition::{check_packs, each_pack};
use cell::LstmCell;
use pull::LstmPull;

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 4;

/// The arrays in the order of their gradients; there is no bias of an activation.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "4n n"),
    argument!("u", "4n d"),
    argument!("b", "4n", optional),
    argument!("h0", "B 2n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B 2n", optional),
];

pub(super) const DECLARATION: Declaration =
    Declaration { width: 2, saved: SAVED, ..Declaration::new("lstm", ARGUMENTS) };

/// The arguments of an LSTM. The order of the gates in w, u and b is i, f, g, o.
#[derive(Clone, Copy)]
pub struct Lstm<'a, R: Real> {
    /// What every cell has. Its state size is 2n: h and c, also in h0 and in the state before marked steps. The activation is tanh.
    /// `packs` are W and U.
    pub run: Run<'a, R>,
    /// W (4n, n)
    pub w: &'a [R],
    /// U (4n, d)
    pub u: &'a [R],
    /// b (4n)
    pub b: Option<&'a [R]>,
}

impl<'a, R: Real> Lstm<'a, R> {
    /// Refuses sizes that do not fit.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        self.pair().check()?;
        check_packs::<R>(self.run.packs, &self.packed())
    }

    /// As a cell of pairs.
    fn pair(&self) -> PairArrays<'a, R> {
        let Lstm { run, w, u, b } = *self;
        PairArrays { run, w, u, b, matrices: [4, 4] }
    }

    /// Sizes of the operands that the caller may have packed.
    fn packed(&self) -> [[usize; 2]; 2] {
        let n = self.run.n / 2;
        [[4 * n, n], [4 * n, self.run.features]]
    }
}

impl<'a, R: Real> Unit<'a, R> for Lstm<'a, R> {
    fn of(call: &Call<'a, R>, _: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [_, w, u, b] = call.arrays();
        let [w, u] = [w, u].map(|array| array.unwrap_or(&[]));
        Ok(Lstm { run: call.run()?, w, u, b })
    }

    fn check(&self) -> Result<()> {
        self.check()
    }

    fn check_bars(&self, bars: &[Bar<'_, R>]) -> Result<()> {
        let held = self.pair().arrays();
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
        _: &mut [Bar<'_, R>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        let Outcome { states, saved, ct, .. } = *outcome;
        backward(self, states, saved, ct, bars, budget)
    }
}

/// A checked LSTM, prepared.
struct Setting<'a, R: Real> {
    pairs: Pairs<'a, R>,
    /// W and U, where the caller has packed them.
    packs: [Option<&'a [R]>; 2],
}

impl<'a, R: Real> Setting<'a, R> {
    /// From an LSTM that has passed its check.
    fn new(lstm: &Lstm<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let packs = each_pack::<R, 2>(lstm.run.packs, lstm.packed());
        Ok(Setting { pairs: lstm.pair().prepared(checkpoint)?, packs })
    }
}

/// States (T, B, 2n), h and c, zeros past the end of a sequence; or the last of each sequence, and those at the borders of a
/// checkpoint's segments. `saved` takes [`SAVED`] arrays (T, B, n) for a [`backward`] from all states; past the end of a
/// sequence nothing is written.
///
/// ```
/// use isometry_core::recurrence::{Run, lstm::{self, Lstm}};
/// use isometry_core::Budget;
///
/// // without weights all gates are 1/2 and g = 0: c is halved, h = tanh(c) / 2
/// let run = Run { h0: Some(&[0.0, 1.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let (lstm, mut states) = (Lstm { run, w: &[0.0; 4], u: &[0.0; 4], b: None }, [0.0f64; 2]);
/// lstm::forward(&lstm, &mut states, None, &Budget::of(1))?;
/// assert!((states[0] - 0.5f64.tanh() / 2.0).abs() < 1e-15 && states[1] == 0.5);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Sizes or lengths that do not fit, an odd number of states, an activation other than tanh; lack of memory;
/// [`Error::Interrupted`](crate::Error::Interrupted) once the budget says so.
pub fn forward<'a, R: Real>(
    lstm: &Lstm<'_, R>,
    written: impl Into<Written<'a, R>>,
    saved: Option<&mut [R]>,
    budget: &Budget<'_>,
) -> Result<()> {
    let written: Written<'_, R> = written.into();
    lstm.check()?;
    let each = SAVED * lstm.pair().n();
    written.check(lstm.run.sizes(), (saved.as_ref().map(|saved| saved.len()), each))?;
    let setting = Setting::new(lstm, written.checkpoint())?;
    let carve = |arena: &mut _| LstmCell::carve(arena, &setting);
    // SAFETY: everything has passed its check.
    unsafe { driver::forward(&setting.pairs.line, written, (saved, each), budget, carve) }
}

/// The gradients of [`forward`] for the cotangents of what it returned, in the order of [`ARGUMENTS`]. Unwanted gradients are not
/// computed. `saved` is what forward wrote, empty with a checkpoint.
///
/// ```
/// use isometry_core::argument::wanted;
/// use isometry_core::recurrence::{Cotangent, Run, lstm::{self, Lstm, SAVED}};
/// use isometry_core::Budget;
///
/// // that of `forward`: c_1 = c_0 / 2
/// let (budget, run) = (Budget::of(1), Run { h0: Some(&[0.0, 1.0]), ..Run::new([1, 1, 1, 2], &[0.0]) });
/// let lstm = Lstm { run, w: &[0.0; 4], u: &[0.0; 4], b: None };
/// let (mut states, mut saved, mut h0_bar) = ([0.0f64; 2], [0.0; SAVED], [0.0; 2]);
/// lstm::forward(&lstm, &mut states, Some(&mut saved), &budget)?;
/// let mut bars = wanted(lstm::ARGUMENTS, [("h0", &mut h0_bar[..])]);
/// lstm::backward(&lstm, &states, &saved, Cotangent::Last(&[0.0, 1.0]), &mut bars, &budget)?;
/// drop(bars);
/// assert_eq!(h0_bar, [0.0, 0.5]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`forward`]; gradients of arguments that were not given, or a checkpoint that undoes steps.
pub fn backward<'a, R: Real>(
    lstm: &Lstm<'_, R>,
    states: impl Into<Trajectory<'a, R>>,
    saved: &[R],
    ct: impl Into<Cotangent<'a, R>>,
    bars: &mut [Bar<'_, R>],
    budget: &Budget<'_>,
) -> Result<()> {
    let (states, ct): (Trajectory<'_, R>, Cotangent<'_, R>) = (states.into(), ct.into());
    let checkpoint = states.checkpoint();
    lstm.check()?;
    let each = SAVED * lstm.pair().n();
    states.check(lstm.run.sizes(), (saved.len(), each))?;
    ct.check(lstm.run.sizes(), &states)?;
    lstm.check_bars(bars)?;
    refuse_undoing(checkpoint)?;
    let setting = Setting::new(lstm, checkpoint)?;
    let [x, w, u, b, h0, _, start_state] = rooms(bars);
    let inputs = InputBars { x: x.shared(), weight: u.shared(), bias: b.shared() };
    let rows = ct.rows(&setting.pairs.line, h0.shared(), start_state.shared());
    let wanted = PairBars { ct: rows, w: w.shared(), inputs };
    let carve = |arena: &mut _| LstmPull::carve(arena, &setting, checkpoint.is_some(), wanted);
    // SAFETY: everything has passed its check.
    unsafe { driver::backward(&setting.pairs.line, (states, ct), (saved, each), budget, carve) }
}
