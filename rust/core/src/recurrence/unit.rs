//! The law of a cell: its declaration and its steps, and the checks and calls that follow from them for every cell.

use super::call::{Call, OWN, Outcome};
use super::declaration::{Declaration, MOST};
use super::driver::{Backward, Forward, Written};
use super::time::{Checkpoint, Run, refuse_undoing};
use crate::activation::Activation;
use crate::argument::{Array, Bar, check_bars, rooms};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::scalar::{Scalar, parts, parts_mut};
use crate::transition::next_pack;
use std::mem::take;

/// A cell with its arguments, as calls by its name use it.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::argument::wanted;
/// use isometry_core::recurrence::{Outcome, Run, Unit, lstm::{self, Lstm, SAVED}};
///
/// // without weights i, f and o are 1/2 and g is 0: c is halved
/// let (run, budget) = (Run { h0: Some(&[0.0f64, 1.0]), ..Run::new([1, 1, 1, 2], &[0.0]) }, Budget::of(1));
/// let lstm = Lstm { run, w: &[0.0; 4], u: &[0.0; 4], b: None };
/// let (mut states, mut saved, mut h0_bar) = ([0.0; 2], [0.0; SAVED], [0.0; 2]);
/// lstm.forward((&mut states).into(), &mut [], Some(&mut saved), &budget)?;
/// assert_eq!(states[1], 0.5);
/// let ct = [0.0, 1.0];
/// let outcome = Outcome { states: (&states).into(), last: &[], saved: &saved, ct: (&ct).into(), last_ct: None };
/// lstm.backward(&outcome, &mut wanted(lstm::ARGUMENTS, [("h0", &mut h0_bar[..])]), &mut [], &budget)?;
/// assert_eq!(h0_bar, [0.0, 0.5]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
pub trait Unit<'a, T: Scalar>: Sized {
    /// From a call and the operator of its transition.
    ///
    /// # Errors
    /// Arrays that are missing or do not fit.
    fn of(call: &Call<'a, T>, operator: Option<&'a dyn Cpu<T>>) -> Result<Self>;

    /// What the core says of it.
    fn declaration(&self) -> &'static Declaration;

    /// What every cell has.
    fn run(&self) -> &Run<'a, T>;

    /// The arrays of its own, in the order of its arguments.
    #[doc(hidden)]
    fn own(&self) -> [Option<&'a [T]>; OWN];

    /// Its operator, if it has one.
    fn operator(&self) -> Option<&'a dyn Cpu<T>> {
        None
    }

    /// Numbers of each unit that it saves for backward at a step.
    fn saves(&self) -> usize {
        self.declaration().saved
    }

    /// Refuses what its declaration allows, but the law does not.
    #[doc(hidden)]
    fn refuse(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses a checkpoint that backward could not start from.
    #[doc(hidden)]
    fn refuse_checkpoint(&self, checkpoint: Option<Checkpoint>) -> Result<()> {
        refuse_undoing(checkpoint)
    }

    /// Prepares what its steps read, and drives its cell forward.
    ///
    /// # Safety
    /// The arrays of the call and those of the cell have passed their checks.
    #[doc(hidden)]
    unsafe fn steps(&self, call: Forward<'_, T>) -> Result<()>;

    /// The same backward; gradients of the operator's arguments go to `of_operator`.
    ///
    /// # Safety
    /// As for `steps`.
    #[doc(hidden)]
    unsafe fn steps_back(&self, call: Backward<'_, T>, of_operator: &mut [Bar<'_, T>]) -> Result<()>;

    /// Refuses sizes and values that do not fit.
    ///
    /// # Errors
    /// The first that does not.
    fn check(&self) -> Result<()> {
        let (declaration, run) = (self.declaration(), self.run());
        if !run.n.is_multiple_of(declaration.width) {
            return Err(Error::shape("n", "an even state size, that of both parts", run.n.to_string()));
        }
        run.check()?;
        let sizes = self.axes();
        for (i, array) in declaration.own().zip(self.own()) {
            array.map_or(Ok(()), |array| declaration.check_len(i, array.len(), sizes))?;
        }
        self.refuse()?;
        run.packs.map_or(Ok(()), |packs| declaration.check_packs::<T>(packs.len(), sizes))
    }

    /// Refuses gradients that do not fit the arguments.
    ///
    /// # Errors
    /// The first that does not.
    fn check_bars(&self, bars: &[Bar<'_, T>]) -> Result<()> {
        let Declaration { arguments, h0_at, .. } = *self.declaration();
        let (Run { x, h0, activation_bias, starts, .. }, own) = (*self.run(), self.own());
        let held = |i: usize| match arguments.len() - i {
            _ if i == 0 => Array::Own(x),
            _ if i == h0_at => Array::own(h0),
            1 => Array::own(starts.and_then(|starts| starts.state)),
            2 => Array::real(activation_bias),
            _ => Array::own(own[i - 1 - usize::from(i > h0_at)]),
        };
        check_bars(arguments, held, bars)
    }

    /// Fills the states, the memory (B, n, n), empty without one, and if wanted what is saved for backward, arrays (T, B, n).
    ///
    /// # Errors
    /// Sizes, lengths or values that do not fit; lack of memory; [`Error::Interrupted`] once the budget says so.
    fn forward(
        &self,
        written: Written<'_, T>,
        last: &mut [T],
        saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check()?;
        let (run, each) = (self.run(), self.saves() * self.axes()[3]);
        let saved = saved.filter(|_| each > 0);
        written.check(run.sizes(), (saved.as_ref().map(|saved| saved.len()), each))?;
        // SAFETY: everything has passed its check.
        unsafe { self.steps(Forward { written, last, saved: (saved.map(parts_mut), each), budget }) }
    }

    /// The gradients of the cell's arguments, and of those of the operator. Unwanted gradients are not computed.
    ///
    /// # Errors
    /// As for `forward`; gradients of arguments that were not given, a checkpoint whose steps cannot be undone.
    fn backward(
        &self,
        outcome: &Outcome<'_, T>,
        bars: &mut [Bar<'_, T>],
        of_operator: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check()?;
        let (sizes, each) = (self.run().sizes(), self.saves() * self.axes()[3]);
        let saved = if each > 0 { outcome.saved } else { &[] };
        outcome.states.check(sizes, (saved.len(), each))?;
        outcome.ct.check(sizes, &outcome.states)?;
        self.check_bars(bars)?;
        self.operator().map_or(Ok(()), |operator| operator.check_bars(of_operator))?;
        self.refuse_checkpoint(outcome.states.checkpoint())?;
        let Declaration { arguments, h0_at, .. } = *self.declaration();
        let (mut own, mut rooms) = (self.declaration().own(), rooms::<T, MOST>(bars));
        let mut room = |i: usize| take(&mut rooms[i]);
        let call = Backward {
            outcome: *outcome,
            saved: (parts(saved), each),
            x: room(0),
            own: [(); OWN].map(|()| own.next().map_or(Bar::None, &mut room)),
            h0: room(h0_at),
            activation_bias: room(arguments.len() - 2),
            start_state: room(arguments.len() - 1),
            budget,
        };
        // SAFETY: everything has passed its check.
        unsafe { self.steps_back(call, of_operator) }
    }

    /// T, B, d and n.
    #[doc(hidden)]
    fn axes(&self) -> [usize; 4] {
        let Run { steps, batch, features, n, .. } = *self.run();
        [steps, batch, features, n / self.declaration().width]
    }

    /// The operands that the caller has packed, in the order of the declaration, behind them W of an operator that is a matrix.
    #[doc(hidden)]
    fn packs<const N: usize>(&self) -> [Option<&'a [T::Real]>; N] {
        let mut rest = self.run().packs;
        let mut sizes = self.declaration().packed(self.axes());
        [(); N].map(|()| next_pack::<T>(&mut rest, sizes.next()?))
    }

    /// Refuses an activation other than tanh.
    #[doc(hidden)]
    fn tanh_alone(&self) -> Result<()> {
        if self.run().activation != Activation::Tanh || self.run().activation_bias.is_some() {
            return Err(Error::value("activation", "must be tanh, without a bias"));
        }
        Ok(())
    }
}
