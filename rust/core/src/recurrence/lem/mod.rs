//! The long expressive memory of Rusch, Mishra, Erichson and Mahoney (arXiv 2110.04744, equation 3) over a whole sequence, real
//! numbers:
//!
//! ```text
//! s_1, s_2 = sigma(W_1 y_{t-1} + U_1 x_t + b_1), sigma(W_2 y_{t-1} + U_2 x_t + b_2)
//! t_z = tanh(W_z y_{t-1} + U_z x_t + b_z),    z_t = (1 - dt s_1) * z_{t-1} + dt s_1 * t_z
//! t_y = tanh(W_y z_t + U_y x_t + b_y),        y_t = (1 - dt s_2) * y_{t-1} + dt s_2 * t_y
//! ```
//!
//! A state is (y, z), 2n numbers. Forward saves s_1, s_2, t_z and t_y for backward ([`SAVED`]). W_y sees the new z, so a step has two
//! products, one after the other, in both directions. Backward, with the cotangents y_bar and z_bar of y_t and z_t and q for those of
//! the arguments,
//!
//! ```text
//! q_y = dt s_2 (1 - t_y^2) * y_bar,    q_2 = dt s_2 (1 - s_2) * (t_y - y_{t-1}) * y_bar
//! k = z_bar + W_y^T q_y
//! q_z = dt s_1 (1 - t_z^2) * k,        q_1 = dt s_1 (1 - s_1) * (t_z - z_{t-1}) * k
//! y_bar_{t-1} = (1 - dt s_2) * y_bar + W_1^T q_1 + W_2^T q_2 + W_z^T q_z,    z_bar_{t-1} = (1 - dt s_1) * k
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
use cell::LemCell;
use pull::LemPull;

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 4;

/// The arrays in the order of their gradients; there is no bias of an activation.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "4 n n"),
    argument!("u", "4 n d"),
    argument!("b", "4 n", optional),
    argument!("h0", "B 2n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B 2n", optional),
];

pub(super) const DECLARATION: Declaration =
    Declaration { settings: &["dt"], width: 2, saved: SAVED, ..Declaration::new("lem", ARGUMENTS) };

/// The arguments of a long expressive memory.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::recurrence::{Run, Unit, lem::Lem};
///
/// // without weights the gates are 1/2: with dt = 1 both parts are halved
/// let run = Run { h0: Some(&[1.0f64, -2.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let lem = Lem { run, w: &[0.0; 4], u: &[0.0; 4], b: None, dt: 1.0 };
/// let mut states = [0.0; 2];
/// Unit::forward(&lem, (&mut states).into(), &mut [], None, &Budget::of(1))?;
/// assert_eq!(states, [0.5, -1.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Lem<'a, R: Real> {
    /// What every cell has. Its state size is 2n: y and z, also in h0 and in the state before marked steps. The activation is tanh.
    /// `packs` are W_1, W_2 and W_z, W_y, and U in the same two parts.
    pub run: Run<'a, R>,
    /// W_1, W_2, W_z and W_y (4, n, n)
    pub w: &'a [R],
    /// U (4, n, d), in the same order
    pub u: &'a [R],
    /// b (4, n)
    pub b: Option<&'a [R]>,
    /// The longest step.
    pub dt: R,
}

impl<'a, R: Real> Lem<'a, R> {
    /// As a cell of pairs.
    fn pair(&self) -> PairArrays<'a, R> {
        let Lem { run, w, u, b, .. } = *self;
        PairArrays { run, w, u, b, matrices: [4, 4] }
    }

    /// Sizes of the operands that the caller may have packed.
    fn packed(&self) -> [[usize; 2]; 4] {
        let (n, features) = (self.run.n / 2, self.run.features);
        [[3 * n, n], [n, n], [3 * n, features], [n, features]]
    }
}

impl<'a, R: Real> Unit<'a, R> for Lem<'a, R> {
    fn of(call: &Call<'a, R>, _: Option<&'a dyn Cpu<R>>) -> Result<Self> {
        let [_, w, u, b] = call.arrays();
        let [w, u] = [w, u].map(|array| array.unwrap_or(&[]));
        let dt = R::of(call.setting(0).unwrap_or(f64::NAN));
        Ok(Lem { run: call.run()?, w, u, b, dt })
    }

    fn check(&self) -> Result<()> {
        self.pair().check()?;
        if !self.dt.is_finite() {
            return Err(Error::value("dt", "must be a finite number"));
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
        let carve = |arena: &mut _| LemCell::carve(arena, &setting);
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
        let carve = |arena: &mut _| LemPull::carve(arena, &setting, checkpoint.is_some(), wanted);
        // SAFETY: everything has passed its check.
        unsafe { driver::backward(&setting.pairs.line, (states, ct), (saved, each), budget, carve) }
    }
}

/// A checked memory, prepared.
struct Setting<'a, R: Real> {
    pairs: Pairs<'a, R>,
    /// W_1, W_2 and W_z, W_y, and U in the same two parts, where the caller has packed them.
    packs: [Option<&'a [R]>; 4],
    dt: R,
}

impl<'a, R: Real> Setting<'a, R> {
    /// From a memory that has passed its check.
    fn new(lem: &Lem<'a, R>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let packs = each_pack::<R, 4>(lem.run.packs, lem.packed());
        Ok(Setting { pairs: lem.pair().prepared(checkpoint)?, packs, dt: lem.dt })
    }

    /// The matrices of y, and that of z.
    fn matrices(&self) -> [&'a [R]; 2] {
        let (of_y, of_z) = self.pairs.w.split_at(3 * self.pairs.n * self.pairs.n);
        [of_y, of_z]
    }
}
