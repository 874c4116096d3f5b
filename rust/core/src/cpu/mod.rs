//! Operators on the CPU: their matrices, their application to rows, the gradients of both, and their steps in
//! a recurrence.

mod blocks;
mod calls;
mod rotations;
pub(crate) mod through_matrix;

pub use blocks::Blocks;
pub use calls::{Act, ActVjp, Form, FormVjp};
pub(crate) use rotations::Law;
pub use rotations::Rotations;

use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::{Operator, Saves};
use crate::rows::{self, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::size;
use crate::transition::Transition;
use std::ops::Range;

/// An operator on the CPU. Outputs are overwritten. An object implements either [`Cpu::rows`], from which all
/// else follows, or [`Cpu::matrix`] and [`Cpu::matrix_vjp`]; it is then applied through the matrix unless it
/// overrides [`Cpu::apply`].
///
/// An operator of one's own, W = s I, in safe code. It is applied, and works in a recurrence, through its matrix; [`Rows`] has an
/// example of one that acts on rows.
///
/// ```
/// use isometry_core::argument::{Argument, Array, Bar};
/// use isometry_core::{Budget, Cpu, Operator, Result, Side, argument};
///
/// struct Scaled<'a>(&'a [f64; 1], usize);
///
/// impl Operator<f64> for Scaled<'_> {
///     fn sizes(&self) -> [usize; 3] { [1, self.1, self.1] }
///     fn arguments(&self) -> &'static [Argument] { const { &[argument!("scale", "")] } }
///     fn argument(&self, _i: usize) -> Array<'_, f64> { Array::Own(self.0) }
/// }
/// impl Cpu<f64> for Scaled<'_> {
///     fn matrix(&self, out: &mut [f64], _saved: Option<&mut [f64]>, _budget: &Budget<'_>) -> Result<()> {
///         self.check_matrix("out", out)?;
///         out.fill(0.0);
///         out.iter_mut().step_by(self.1 + 1).for_each(|entry| *entry = self.0[0]);
///         Ok(())
///     }
///     fn matrix_vjp(
///         &self, _saved: Option<&[f64]>, ct: &[f64], bars: &mut [Bar<'_, f64>], _budget: &Budget<'_>,
///     ) -> Result<()> {
///         self.check_matrix("ct", ct)?;
///         self.check_bars(bars)?;
///         if let Some(bar) = bars.first_mut().and_then(|bar| bar.again().own()) {
///             bar[0] = ct.iter().step_by(self.1 + 1).sum();
///         }
///         Ok(())
///     }
/// }
///
/// let (w, budget) = (Scaled(&[3.0], 2), Budget::of(1));
/// let (mut y, mut scale_bar, mut x_bar) = ([0.0; 2], [0.0], [0.0; 2]);
/// w.apply(&[1.0, 2.0], 1, Side::Forward, &mut y, None, &budget)?;
/// assert_eq!(y, [3.0, 6.0]);
/// let (ct, bars) = ([1.0, 1.0], &mut [Bar::Own(&mut scale_bar)]);
/// w.apply_vjp(None, &[1.0, 2.0], &ct, 1, Side::Forward, bars, Some(&mut x_bar), &budget)?;
/// assert_eq!((scale_bar, x_bar), ([3.0], [3.0, 3.0]));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// What a forward call saves shortens the backward call, and changes no bit of it:
///
/// ```
/// use isometry_core::argument::Bar;
/// use isometry_core::operators::exponential::Exponential;
/// use isometry_core::{Budget, Cpu, Saves};
///
/// let (w, mut matrix, budget) = (Exponential::new(&[0.3; 6], None, 1, 4)?, [0.0f64; 16], Budget::of(1));
/// assert_eq!(w.matrix_saves()?, Saves::Result);
/// w.matrix(&mut matrix, None, &budget)?;
/// let (mut shorter, mut longer) = ([0.0; 6], [0.0; 6]);
/// w.matrix_vjp(Some(&matrix), &[1.0; 16], &mut [Bar::Own(&mut shorter)], &budget)?;
/// w.matrix_vjp(None, &[1.0; 16], &mut [Bar::Own(&mut longer)], &budget)?;
/// assert_eq!(shorter, longer);
/// # Ok::<(), isometry_core::Error>(())
/// ```
pub trait Cpu<T: Scalar>: Operator<T> {
    /// Its action on rows, if it acts on them without a matrix.
    fn rows(&self) -> Option<&dyn Rows<T>> {
        None
    }

    /// Its closed form, if its matrices are rotations of the plane or of space: then each turns a single vector without a matrix.
    #[doc(hidden)]
    fn rotations(&self) -> Option<Rotations<'_, T::Real>> {
        None
    }

    /// What [`Cpu::matrix`] saves.
    ///
    /// # Errors
    /// Where the size of what is saved overflows.
    fn matrix_saves(&self) -> Result<Saves> {
        Ok(Saves::Elements(0))
    }

    /// Writes the matrices, (batch, n_out, n_in) row-major, by the cheapest route; `saved` receives what is
    /// saved for backward.
    ///
    /// # Errors
    /// Arrays of other lengths, and lack of memory; [`Error::Unsupported`] from an operator with neither a matrix nor rows.
    fn matrix(&self, out: &mut [T], saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        self.check_saved(saved.as_deref(), self.matrix_saves())?;
        match self.rotations() {
            Some(rotations) => rotations.matrices(out, budget.threads),
            None => self.form(Form { out, saved, budget }),
        }
    }

    /// [`Cpu::matrix`] after its checks.
    #[doc(hidden)]
    fn form(&self, Form { out, budget, .. }: Form<'_, T>) -> Result<()> {
        rows::matrix(self.rows().ok_or_else(lacking)?, out, budget)
    }

    /// Pulls the cotangent of the matrices, (batch, n_out, n_in), back to the arguments. Saved values change no bit.
    ///
    /// # Errors
    /// As for [`Cpu::matrix`]; gradients that do not fit the arguments.
    fn matrix_vjp(
        &self,
        saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        let saves = self.matrix_saves()?;
        self.check_matrix("ct", ct)?;
        self.check_saved(saved, Ok(saves))?;
        self.check_bars(bars)?;
        if let Some(rotations) = self.rotations() {
            return rotations.pull_matrices(ct, bars, budget.threads);
        }
        let again = if saved.is_none() && saves == Saves::Result { ct.len() } else { 0 };
        let mut again = Buffer::zeroed(again)?;
        if !again.is_empty() {
            self.matrix(&mut again, None, budget)?;
        }
        self.form_vjp(FormVjp {
            saved: saved.or(Some(&again[..]).filter(|_| saves == Saves::Result)),
            ct,
            bars,
            budget,
        })
    }

    /// [`Cpu::matrix_vjp`] after its checks; `saved` has the matrices if the forward call saves them.
    #[doc(hidden)]
    fn form_vjp(&self, FormVjp { ct, bars, budget, .. }: FormVjp<'_, '_, T>) -> Result<()> {
        rows::matrix_vjp(self.rows().ok_or_else(lacking)?, ct, bars, budget)
    }

    /// Its steps as the transition of a recurrence; None where the recurrence uses its matrix.
    fn transition(&self) -> Option<Transition<'_, T>> {
        self.rows().map(Transition::Rows)
    }

    /// Calls `f` with the operators `own` of the stack; returns false, and does not call it, where a stack is not divided.
    #[doc(hidden)]
    fn part(&self, _own: Range<usize>, _f: &mut dyn FnMut(&dyn Cpu<T>) -> Result<()>) -> Result<bool> {
        Ok(false)
    }

    /// What [`Cpu::apply`] saves: W, if it goes through the matrix.
    ///
    /// # Errors
    /// Where the size of what is saved overflows.
    fn apply_saves(&self, rows: usize, _side: Side) -> Result<Saves> {
        if self.rows().is_some() || (rows == 1 && self.rotations().is_some()) {
            return Ok(Saves::Elements(0));
        }
        let (p, q) = self.shape();
        Ok(Saves::Elements(size("saved", &[p, q])?))
    }

    /// Applies W or W^H to `rows` rows per matrix: x (batch, rows, n_in) -> out (batch, rows, n_out), or back.
    ///
    /// # Errors
    /// Arrays of other lengths, and lack of memory.
    fn apply(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        self.check_saved(saved.as_deref(), self.apply_saves(rows, side))?;
        match (self.rows(), self.rotations()) {
            (Some(operator), _) => rows::apply(operator, x, rows, side, out, budget),
            (None, Some(rotations)) if rows == 1 => rotations.apply(x, side, out, budget.threads),
            _ => self.act(Act { x, rows, side, out, saved, budget }),
        }
    }

    /// [`Cpu::apply`] after its checks, of an operator without rows.
    #[doc(hidden)]
    fn act(&self, call: Act<'_, T>) -> Result<()> {
        through_matrix::apply(self, call)
    }

    /// Pulls the cotangent of [`Cpu::apply`] back to the arguments and to x. Saved values change no bit.
    ///
    /// # Errors
    /// As for [`Cpu::apply`]; gradients that do not fit the arguments.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
    fn apply_vjp(
        &self,
        saved: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_pull(x, ct, rows, side, x_bar.as_deref())?;
        self.check_saved(saved, self.apply_saves(rows, side))?;
        self.check_bars(bars)?;
        match (self.rows(), self.rotations()) {
            (Some(operator), _) => rows::apply_vjp(operator, (x, ct), rows, side, bars, x_bar, budget),
            (None, Some(rotations)) if rows == 1 => {
                rotations.pull((x, ct), side, bars, x_bar, budget.threads)
            }
            _ => self.act_vjp(ActVjp { saved, x, ct, rows, side, bars, x_bar, budget }),
        }
    }

    /// [`Cpu::apply_vjp`] after its checks, of an operator without rows.
    #[doc(hidden)]
    fn act_vjp(&self, call: ActVjp<'_, '_, T>) -> Result<()> {
        through_matrix::apply_vjp(self, call)
    }
}

fn lacking() -> Error {
    Error::Unsupported("this operator has neither a matrix nor rows".into())
}
