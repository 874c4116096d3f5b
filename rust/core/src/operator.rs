//! What an operator is: arguments and a law, and what it does to a batch of rows.
//!
//! A row x is a vector in the last axis; `apply` gives c = W x for every row, that is C = X W^T for the array. An
//! operator of `batch()` matrices takes `batch()` groups of `rows` rows each.

use crate::argument::{Argument, Array, Bar, check_bars};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::operators::{by_rows, through_matrix};
use crate::recurrence::{Route, Transition};
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::sizes::{check_len, size};

/// Whether W or W^H is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// c = W x
    Forward,
    /// c = W^H x
    Adjoint,
}

/// What a forward call saves for the backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saves {
    /// Its result, which the backward starts from.
    Result,
    /// Elements of every matrix in an array of its own; 0 where saving does not pay.
    Elements(usize),
}

/// A batch of linear operators: shape, arguments and checks, which every device needs. A borrowed view made per call, its
/// law checked when it was made.
pub trait Operator<T: Scalar>: Send + Sync {
    /// Number of matrices.
    fn batch(&self) -> usize;
    /// (n_out, n_in)
    fn shape(&self) -> (usize, usize);
    /// The list of arguments of the object.
    fn arguments(&self) -> &'static [Argument];
    /// The array of the i-th argument.
    fn argument(&self, i: usize) -> Array<'_, T>;

    /// Sizes of a row (n_in, n_out) on one side.
    fn features(&self, side: Side) -> (usize, usize) {
        let (p, q) = self.shape();
        if side == Side::Forward { (q, p) } else { (p, q) }
    }

    /// Checks the sizes of the arrays of [`Cpu::apply`].
    fn check_rows(&self, x: &[T], rows: usize, side: Side, out: &[T]) -> Result<()> {
        let (from, into) = self.features(side);
        check_len("x", x.len(), &[self.batch(), rows, from])?;
        check_len("out", out.len(), &[self.batch(), rows, into])
    }

    /// Checks the sizes of the arrays of [`Cpu::apply_vjp`].
    fn check_pull(&self, x: &[T], ct: &[T], rows: usize, side: Side, x_bar: Option<&[T]>) -> Result<()> {
        let (from, into) = self.features(side);
        check_len("x", x.len(), &[self.batch(), rows, from])?;
        check_len("ct", ct.len(), &[self.batch(), rows, into])?;
        x_bar.map_or(Ok(()), |x_bar| check_len("x_bar", x_bar.len(), &[x.len()]))
    }

    /// Checks the size of an array of matrices.
    fn check_matrix(&self, argument: &'static str, matrix: &[T]) -> Result<()> {
        let (p, q) = self.shape();
        check_len(argument, matrix.len(), &[self.batch(), p, q])
    }

    /// Checks an array that holds what a forward call saved.
    fn check_saved(&self, saved: Option<&[T]>, saves: Result<Saves>) -> Result<()> {
        let Some(saved) = saved else { return Ok(()) };
        match saves? {
            Saves::Result => self.check_matrix("saved", saved),
            Saves::Elements(0) => Err(Error::value("saved", "was given for a call that saves nothing")),
            Saves::Elements(len) => check_len("saved", saved.len(), &[self.batch(), len]),
        }
    }

    /// Checks gradients against the arguments.
    fn check_bars(&self, bars: &[Bar<'_, T>]) -> Result<()> {
        check_bars(self.arguments(), |i| self.argument(i), bars)
    }
}

/// An operator on the CPU. Outputs are overwritten. Applying goes through the matrix unless the object does better.
pub trait Cpu<T: Scalar>: Operator<T> {
    /// What [`Cpu::matrix`] saves.
    fn matrix_saves(&self) -> Result<Saves> {
        Ok(Saves::Elements(0))
    }

    /// Writes the matrices, (batch, n_out, n_in) row-major, by the cheapest route; `saved` is room for what it saves.
    fn matrix(&self, out: &mut [T], saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()>;

    /// Pulls the cotangent of the matrices, (batch, n_out, n_in), back to the arguments. Saved values change no bit.
    fn matrix_vjp(
        &self,
        saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()>;

    /// How it serves as the transition of a recurrence, step by step; None where it is to go through its matrix.
    fn transition(&self) -> Option<Transition<'_, T>> {
        None
    }

    /// The cheaper way for a recurrence of so many steps and sequences.
    fn route(&self, _steps: usize, _batch: usize) -> Route {
        Route::Dense
    }

    /// It on rows, if that is how it steps; [`Cpu::apply`] then goes row by row too, otherwise through the matrix.
    fn rows(&self) -> Option<&dyn Rows<T>> {
        match self.transition() {
            Some(Transition::Rows(rows)) => Some(rows),
            _ => None,
        }
    }

    /// What [`Cpu::apply`] saves: W, where it goes through the matrix.
    fn apply_saves(&self, _rows: usize, _side: Side) -> Result<Saves> {
        if self.rows().is_some() {
            return Ok(Saves::Elements(0));
        }
        let (p, q) = self.shape();
        Ok(Saves::Elements(size("saved", &[p, q])?))
    }

    /// Applies W or W^H to `rows` rows per matrix: x (batch, rows, n_in) -> out (batch, rows, n_out), or back.
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
        match self.rows() {
            Some(operator) => by_rows::apply(operator, x, rows, side, out, budget),
            None => through_matrix::apply(self, x, rows, side, out, saved, budget),
        }
    }

    /// Pulls the cotangent of [`Cpu::apply`] back to the arguments and to x. Saved values change no bit.
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
        match self.rows() {
            Some(operator) => by_rows::apply_vjp(operator, (x, ct), rows, side, bars, x_bar, budget),
            None => through_matrix::apply_vjp(self, saved, x, ct, rows, side, bars, x_bar, budget),
        }
    }
}
