//! The affine cell h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b), over any transition W.

mod cell;
mod pull;
mod sequence;
mod undo;

pub use sequence::Sequence;

use super::call::{Call, Outcome, Unit};
use super::declaration::Declaration;
use super::driver;
use super::driver::ends::{Cotangent, CtRows, Trajectory, Written};
use super::parts::drive::Drive;
use super::parts::inputs::InputBars;
use super::parts::padded::padded;
use super::parts::transition::transition;
use super::time::checkpoint::Checkpoint;
use super::time::halves::halves;
use super::time::timeline::{Run, Timeline};
use crate::activation::{Nonlinearity, RowActivation};
use crate::argument;
use crate::argument::{Argument, Bar, rooms};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::scalar::{Scalar, parts, parts_mut};
use crate::scratch::Arena;
use crate::transition::Prepared;
use cell::AffineCell;
use pull::AffinePull;
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
        let sequence = Sequence::of(call)?;
        Ok(Affine { transition, sequence })
    }

    fn check(&self) -> Result<()> {
        self.sequence.check()
    }

    fn check_bars(&self, bars: &[Bar<'_, T>]) -> Result<()> {
        self.sequence.check_bars(bars)
    }

    fn forward(
        &self,
        written: Written<'_, T>,
        _: &mut [T],
        _: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        forward(self.transition, &self.sequence, written, budget)
    }

    fn backward(
        &self,
        outcome: &Outcome<'_, T>,
        bars: &mut [Bar<'_, T>],
        of_operator: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        let Outcome { states, ct, .. } = *outcome;
        backward(self.transition, of_operator, &self.sequence, states, ct, bars, budget)
    }
}

/// What a backward pass reads and writes, besides the states and the transition.
#[derive(Clone, Copy)]
struct AffineBars<'a, T: Scalar> {
    ct: CtRows<'a, T::Real>,
    inputs: InputBars<T>,
    activation_bias: Option<(Shared<T::Real>, usize)>,
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
}

impl<'a, T: Scalar> Setting<'a, T> {
    fn new(sequence: &Sequence<'a, T>, w: Prepared<'a, T>, checkpoint: Option<Checkpoint>) -> Result<Self> {
        let phi = sequence.run.phi()?;
        let on_input = sequence.on_input && phi.kind != Nonlinearity::Identity;
        let (line, bias) = (sequence.run.timeline(checkpoint)?, padded(sequence.bias.map(parts))?);
        Ok(Setting { sequence: *sequence, line, w, on_input, phi, bias })
    }

    /// Whether backward recomputes z with W.
    fn recomputes(&self) -> bool {
        !self.sequence.on_input && !self.phi.readable()
    }

    /// V x + b
    fn drive(&self, arena: &mut Arena) -> Drive<'_, T> {
        let Sequence { input_weight, run: Run { n, .. }, .. } = self.sequence;
        Drive::carve(arena, &self.line, (input_weight, n), &self.bias, self.sequence.packed()[0])
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
    let written: Written<'_, T> = written.into();
    sequence.check()?;
    let w = transition(operator, sequence.run.n)?;
    written.check(sequence.run.sizes(), (None, 0))?;
    let setting = Setting::new(sequence, Prepared::forward(w)?, written.checkpoint())?;
    let carve = |arena: &mut _| AffineCell::carve(arena, &setting);
    // SAFETY: everything has passed its check.
    unsafe { driver::forward(&setting.line, written, (None, 0), budget, carve) }
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
    let (states, ct): (Trajectory<'_, T>, Cotangent<'_, T>) = (states.into(), ct.into());
    sequence.check()?;
    let w = transition(operator, sequence.run.n)?;
    operator.check_bars(of_operator)?;
    states.check(sequence.run.sizes(), (0, 0))?;
    ct.check(sequence.run.sizes(), &states)?;
    sequence.check_bars(bars)?;
    let checkpoint = states.checkpoint();
    if checkpoint == Some(Checkpoint::Reversible) && !undoable(sequence) {
        return Err(Error::value("activation", "must be the identity or OPLU for steps to be undone"));
    }
    if checkpoint == Some(Checkpoint::Reversible) && sequence.run.starts.is_some() {
        return Err(Error::value(
            "checkpoint",
            "must not be reversible with starts: the states before a mark are lost",
        ));
    }
    let setting = Setting::new(sequence, Prepared::backward(w, of_operator)?, checkpoint)?;
    let line = &setting.line;
    let [x, input_weight, h0, bias, activation_bias, start_state] = rooms(bars);
    let state = |bar: Bar<'_, T>| bar.own().map(|bar| Shared(parts_mut(bar).as_mut_ptr()));
    let wanted = AffineBars {
        ct: ct.rows(line, state(h0), state(start_state)),
        inputs: InputBars { x: x.shared(), weight: input_weight.shared(), bias: bias.shared() },
        activation_bias: activation_bias.shared_real(),
    };
    let halves = setting.w.halves(halves(&line.schedule));
    let carve = |arena: &mut _| AffinePull::carve(arena, &setting, checkpoint, halves, wanted);
    // SAFETY: everything has passed its check.
    unsafe { driver::backward(line, (states, ct), (&[], 0), budget, carve)? };
    setting.w.finish(of_operator)
}
