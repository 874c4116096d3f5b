//! The affine cell h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b), over any transition W.

mod cell;
mod pull;
mod sequence;
mod undo;

pub use sequence::Sequence;

use super::call::{Call, Outcome};
use super::declaration::Declaration;
use super::driver::{Backward, Cotangent, Forward, Trajectory, Written};
use super::parts::{Drive, padded, transition};
use super::time::{Checkpoint, Run, Timeline, halves};
use super::unit::Unit;
use crate::activation::{Nonlinearity, RowActivation};
use crate::argument::{Argument, Bar, argument};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::{Scalar, parts};
use crate::scratch::Arena;
use crate::transition::Prepared;
use cell::AffineCell;
use pull::AffinePull;
use std::mem::take;
use undo::undoable;

/// The arrays in the order of their gradients.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("input_weight", "n d"),
    argument!("h0", "B n", optional),
    argument!("bias", "n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B n", optional),
];

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["on_input"],
    operator: "transition",
    packs: &[(1, &[1])],
    ..Declaration::new("recurrence", ARGUMENTS)
};

/// The affine cell with its arguments.
#[derive(Clone, Copy)]
pub struct Affine<'a, T: Scalar> {
    /// W
    pub transition: &'a dyn Cpu<T>,
    /// The others.
    pub sequence: Sequence<'a, T>,
}

impl<'a, T: Scalar> Unit<'a, T> for Affine<'a, T> {
    fn of(call: &Call<'a, T>, operator: Option<&'a dyn Cpu<T>>) -> Result<Self> {
        let transition = operator.ok_or_else(|| Error::value("transition", "must be given"))?;
        let [input_weight, bias, ..] = call.own();
        let input_weight = input_weight.unwrap_or_default();
        let sequence = Sequence { run: call.run()?, input_weight, bias, on_input: call.flag(0) };
        Ok(Affine { transition, sequence })
    }
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }
    fn run(&self) -> &Run<'a, T> {
        &self.sequence.run
    }
    fn own(&self) -> [Option<&'a [T]>; 4] {
        [Some(self.sequence.input_weight), self.sequence.bias, None, None]
    }
    fn operator(&self) -> Option<&'a dyn Cpu<T>> {
        Some(self.transition)
    }
    /// One whose steps cannot be undone.
    fn refuse_checkpoint(&self, checkpoint: Option<Checkpoint>) -> Result<()> {
        let undone = checkpoint == Some(Checkpoint::Reversible);
        if undone && !undoable(&self.sequence) {
            return Err(Error::value("activation", "must be the identity or OPLU for steps to be undone"));
        }
        if undone && self.sequence.run.starts.is_some() {
            let reason = "must not be reversible with starts: the states before a mark are lost";
            return Err(Error::value("checkpoint", reason));
        }
        Ok(())
    }

    unsafe fn steps(&self, call: Forward<'_, T>) -> Result<()> {
        let w = transition(self.transition, self.sequence.run.n)?;
        let setting = Setting::new(self, Prepared::forward(w)?, call.written.checkpoint())?;
        // SAFETY: the contract of the trait.
        unsafe { call.drive(&setting.line, |arena| AffineCell::carve(arena, &setting)) }
    }

    unsafe fn steps_back(&self, mut call: Backward<'_, T>, of_operator: &mut [Bar<'_, T>]) -> Result<()> {
        let w = transition(self.transition, self.sequence.run.n)?;
        let checkpoint = call.checkpoint();
        let setting = Setting::new(self, Prepared::backward(w, of_operator)?, checkpoint)?;
        let [input_weight, bias, ..] = take(&mut call.own).map(Bar::shared);
        let halves = setting.w.halves(halves(&setting.line.schedule));
        // SAFETY: the contract of the trait.
        unsafe {
            let bars = call.bars(&setting.line, [None, input_weight, bias]);
            call.drive(&setting.line, |arena| AffinePull::carve(arena, &setting, checkpoint, halves, bars))?;
        }
        setting.w.finish(of_operator)
    }
}

/// A checked sequence, prepared: the rows of each step, the transition, the activation, the biases.
struct Setting<'a, T: Scalar> {
    sequence: Sequence<'a, T>,
    line: Timeline<'a, T::Real>,
    w: Prepared<'a, T>,
    phi: RowActivation<T::Real>,
    /// phi acts on the input part only, and is not the identity.
    on_input: bool,
    /// b for whole vectors; empty without.
    bias: Buffer<T::Real>,
    /// V and W, where the caller has packed them.
    packs: [Option<&'a [T::Real]>; 2],
}

impl<'a, T: Scalar> Setting<'a, T> {
    fn new(unit: &Affine<'a, T>, w: Prepared<'a, T>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let (sequence, packs) = (unit.sequence, unit.packs());
        let phi = sequence.run.phi()?;
        let on_input = sequence.on_input && phi.kind != Nonlinearity::Identity;
        let (line, bias) = (sequence.run.timeline(checkpoint)?, padded(sequence.bias.map(parts))?);
        Ok(Setting { sequence, line, w, on_input, phi, bias, packs })
    }

    /// Whether backward recomputes z with W.
    fn recomputes(&self) -> bool {
        !self.sequence.on_input && !self.phi.readable()
    }

    /// V x + b
    fn drive(&self, arena: &mut Arena) -> Drive<'_, T> {
        let Sequence { input_weight, run: Run { n, .. }, .. } = self.sequence;
        Drive::carve(arena, &self.line, (input_weight, n), &self.bias, self.packs[0])
    }
}

/// States (T, B, n) of a recurrence with an operator as W, zeros past the end of a sequence; or the last of each
/// sequence, and those at the borders of a checkpoint's segments.
///
/// ```
/// use isometry_core::activation::Activation;
/// use isometry_core::operators::dense::Dense;
/// use isometry_core::recurrence::{self, Run, Sequence};
/// use isometry_core::Budget;
///
/// // W exchanges the two states, V x_t = (x_t, 0), and phi is the identity
/// let w = Dense::new(&[0.0, 1.0, 1.0, 0.0], 1, 2, 2)?;
/// let run = Run { activation: Activation::Identity, ..Run::new([2, 1, 1, 2], &[3.0, 5.0]) };
/// let sequence = Sequence { run, input_weight: &[1.0, 0.0], bias: None, on_input: false };
/// let mut states = [0.0; 4];
/// recurrence::forward(&w, &sequence, &mut states, &Budget::of(1))?;
/// assert_eq!(states, [3.0, 0.0, 5.0, 3.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Sizes or lengths that do not fit, an operator that is not one n x n matrix; lack of memory; [`Error::Interrupted`] once the
/// budget says so.
pub fn forward<'a, T: Scalar>(
    operator: &dyn Cpu<T>,
    sequence: &Sequence<'_, T>,
    written: impl Into<Written<'a, T>>,
    budget: &Budget<'_>,
) -> Result<()> {
    Affine { transition: operator, sequence: *sequence }.forward(written.into(), &mut [], None, budget)
}

/// The gradients of [`forward`] for the cotangents of what it returned: those of the operator's arguments go to
/// `of_operator`, the others to `bars`, in the order of [`ARGUMENTS`]. Unwanted gradients are not computed.
///
/// ```
/// use isometry_core::activation::Activation;
/// use isometry_core::argument::Bar;
/// use isometry_core::operators::dense::Dense;
/// use isometry_core::recurrence::{self, Cotangent, Run, Sequence};
/// use isometry_core::Budget;
///
/// // that of `forward`; the loss is the second number of the last state, which is x_0
/// let w = Dense::new(&[0.0, 1.0, 1.0, 0.0], 1, 2, 2)?;
/// let run = Run { activation: Activation::Identity, ..Run::new([2, 1, 1, 2], &[3.0, 5.0]) };
/// let sequence = Sequence { run, input_weight: &[1.0, 0.0], bias: None, on_input: false };
/// let (states, ct) = ([3.0, 0.0, 5.0, 3.0], Cotangent::Last(&[0.0, 1.0]));
/// let (mut w_bar, mut x_bar) = ([0.0; 4], [0.0; 2]);
/// let (of_w, bars) = (&mut [Bar::Own(&mut w_bar)], &mut [Bar::Own(&mut x_bar)]);
/// recurrence::backward(&w, of_w, &sequence, &states, ct, bars, &Budget::of(1))?;
/// assert_eq!((w_bar, x_bar), ([0.0, 0.0, 3.0, 0.0], [1.0, 0.0]));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`forward`]; gradients of arguments that were not given, or a checkpoint whose steps cannot be undone.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
pub fn backward<'a, T: Scalar>(
    operator: &dyn Cpu<T>,
    of_operator: &mut [Bar<'_, T>],
    sequence: &Sequence<'_, T>,
    states: impl Into<Trajectory<'a, T>>,
    ct: impl Into<Cotangent<'a, T>>,
    bars: &mut [Bar<'_, T>],
    budget: &Budget<'_>,
) -> Result<()> {
    let outcome = Outcome { states: states.into(), last: &[], saved: &[], ct: ct.into(), last_ct: None };
    Affine { transition: operator, sequence: *sequence }.backward(&outcome, bars, of_operator, budget)
}
