//! The coupled oscillatory network of Rusch and Mishra (arXiv 2010.00951, equation 3) over a whole sequence, real numbers:
//!
//! ```text
//! t_t = tanh(W_y y_{t-1} + W_z z_{t-1} + U x_t + b)
//! z_t = z_{t-1} + dt (t_t - gamma y_{t-1} - epsilon z_{t-1}),      y_t = y_{t-1} + dt z_t
//! ```
//!
//! A state is (y, z), 2n numbers. Forward saves t, which could be had from the states only up to a factor 1 / dt of their rounding.
//! Backward, with the cotangents y_bar and z_bar of y_t and z_t,
//!
//! ```text
//! k = z_bar + dt y_bar,    q = dt (1 - t_t^2) * k
//! y_bar_{t-1} = y_bar - dt gamma k + W_y^T q,    z_bar_{t-1} = (1 - dt epsilon) k + W_z^T q
//! ```

mod cell;
mod pull;

use super::call::{Call, Outcome, Unit};
use super::declaration::Declaration;
use super::driver;
use super::driver::ends::Written;
use super::parts::inputs::InputBars;
use super::parts::pair_pull::PairBars;
use super::parts::pairs::{PairArrays, Pairs};
use super::time::checkpoint::{Checkpoint, refuse_undoing};
use super::time::timeline::Run;
use crate::argument;
use crate::argument::{Argument, Bar, check_bars, rooms};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::scalar::Real;
use crate::transition::{check_packs, each_pack};
use cell::CornnCell;
use isometry_kernels::recurrence::Oscillator;
use pull::CornnPull;

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 1;

/// The arrays in the order of their gradients; there is no bias of an activation.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "2 n n"),
    argument!("u", "n d"),
    argument!("b", "n", optional),
    argument!("h0", "B 2n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B 2n", optional),
];

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["dt", "gamma", "epsilon"],
    width: 2,
    saved: SAVED,
    ..Declaration::new("cornn", ARGUMENTS)
};

/// The arguments of a network of oscillators.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::recurrence::{Run, Unit, cornn::Cornn};
///
/// // without weights, a damped oscillator: z_1 = z_0 - (y_0 + z_0 / 2) / 2, and y_1 = y_0 + z_1 / 2
/// let run = Run { h0: Some(&[1.0f64, 0.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let cornn = Cornn { run, w: &[0.0; 2], u: &[0.0], b: None, dt: 0.5, gamma: 1.0, epsilon: 0.5 };
/// let mut states = [0.0; 2];
/// Unit::forward(&cornn, (&mut states).into(), &mut [], None, &Budget::of(1))?;
/// assert_eq!(states, [0.75, -0.5]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Cornn<'a, R: Real> {
    /// What every cell has. Its state size is 2n: y and z, also in h0 and in the state before marked steps. The activation is tanh.
    /// `packs` are W_y, W_z and U.
    pub run: Run<'a, R>,
    /// W_y and W_z (2, n, n)
    pub w: &'a [R],
    /// U (n, d)
    pub u: &'a [R],
    /// b (n)
    pub b: Option<&'a [R]>,
    /// The length of a step.
    pub dt: R,
    /// The factor of y.
    pub gamma: R,
    /// The factor of z.
    pub epsilon: R,
}

impl<'a, R: Real> Cornn<'a, R> {
    /// As a cell of pairs.
    fn pair(&self) -> PairArrays<'a, R> {
        let Cornn { run, w, u, b, .. } = *self;
        PairArrays { run, w, u, b, matrices: [2, 1] }
    }

    /// Sizes of the operands that the caller may have packed.
    fn packed(&self) -> [[usize; 2]; 3] {
        let n = self.run.n / 2;
        [[n, n], [n, n], [n, self.run.features]]
    }
}

impl<'a, R: Real> Unit<'a, R> for Cornn<'a, R> {
    fn of(call: &Call<'a, R>, _: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [_, w, u, b] = call.arrays();
        let [w, u] = [w, u].map(|array| array.unwrap_or(&[]));
        let [dt, gamma, epsilon] = [0, 1, 2].map(|i| R::of(call.setting(i).unwrap_or(f64::NAN)));
        Ok(Cornn { run: call.run()?, w, u, b, dt, gamma, epsilon })
    }

    fn check(&self) -> Result<()> {
        self.pair().check()?;
        for (name, value) in [("dt", self.dt), ("gamma", self.gamma), ("epsilon", self.epsilon)] {
            if !value.is_finite() {
                return Err(Error::value(name, "must be a finite number"));
            }
        }
        check_packs::<R>(self.run.packs, &self.packed())
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
        self.check()?;
        let each = SAVED * self.pair().n();
        written.check(self.run.sizes(), (saved.as_ref().map(|saved| saved.len()), each))?;
        let setting = Setting::new(self, written.checkpoint())?;
        let carve = |arena: &mut _| CornnCell::carve(arena, &setting);
        // SAFETY: everything has passed its check.
        unsafe { driver::forward(&setting.pairs.line, written, (saved, each), budget, carve) }
    }

    fn backward(
        &self,
        outcome: &Outcome<'_, R>,
        bars: &mut [Bar<'_, R>],
        _: &mut [Bar<'_, R>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        let Outcome { states, saved, ct, .. } = *outcome;
        let checkpoint = states.checkpoint();
        self.check()?;
        let each = SAVED * self.pair().n();
        states.check(self.run.sizes(), (saved.len(), each))?;
        ct.check(self.run.sizes(), &states)?;
        self.check_bars(bars)?;
        refuse_undoing(checkpoint)?;
        let setting = Setting::new(self, checkpoint)?;
        let [x, w, u, b, h0, _, start_state] = rooms(bars);
        let inputs = InputBars { x: x.shared(), weight: u.shared(), bias: b.shared() };
        let rows = ct.rows(&setting.pairs.line, h0.shared(), start_state.shared());
        let wanted = PairBars { ct: rows, w: w.shared(), inputs };
        let carve = |arena: &mut _| CornnPull::carve(arena, &setting, checkpoint.is_some(), wanted);
        // SAFETY: everything has passed its check.
        unsafe { driver::backward(&setting.pairs.line, (states, ct), (saved, each), budget, carve) }
    }
}

/// A checked network, prepared.
struct Setting<'a, R: Real> {
    pairs: Pairs<'a, R>,
    /// W_y, W_z and U, where the caller has packed them.
    packs: [Option<&'a [R]>; 3],
    law: Oscillator<R>,
}

impl<'a, R: Real> Setting<'a, R> {
    /// From a network that has passed its check.
    fn new(cornn: &Cornn<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let &Cornn { run, dt, gamma, epsilon, .. } = cornn;
        let packs = each_pack::<R, 3>(run.packs, cornn.packed());
        let law = Oscillator { dt, gamma, epsilon };
        Ok(Setting { pairs: cornn.pair().prepared(checkpoint)?, packs, law })
    }

    /// W_y and W_z.
    fn matrices(&self) -> [&'a [R]; 2] {
        let (w_y, w_z) = self.pairs.w.split_at(self.pairs.n * self.pairs.n);
        [w_y, w_z]
    }
}
