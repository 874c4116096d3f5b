//! The traits of an operator: its arguments and their checks, and its action on a batch of rows.
//!
//! A row x is a vector in the last axis; `apply` gives c = W x for every row, that is C = X W^T for the array. An
//! operator of `batch()` matrices takes `batch()` groups of `rows` rows each.

use crate::argument::{Argument, Array, Bar, check_bars};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::check_len;

/// What a forward call saves for backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saves {
    /// Its result, from which backward starts.
    Result,
    /// Elements of every matrix in an array of its own; 0 where saving does not pay.
    Elements(usize),
}

/// A batch of linear operators: shape, arguments and checks, which every device needs. A borrowed view, made
/// and checked per call.
///
/// ```
/// use isometry_core::operators::dense::Dense;
/// use isometry_core::{Operator, Saves, Side, argument::Array};
///
/// let w = Dense::new(&[1.0, 2.0, 3.0], 1, 1, 3)?; // a matrix 1 x 3
/// assert_eq!((w.sizes(), w.batch(), w.shape()), ([1, 1, 3], 1, (1, 3)));
/// assert_eq!(w.features(Side::Adjoint), (1, 3));
/// assert_eq!(w.arguments()[0].name, "weight");
/// assert!(matches!(w.argument(0), Array::Own([1.0, 2.0, 3.0])));
/// // what an implementation of Cpu calls first
/// w.check_matrix("out", &[0.0; 3])?;
/// w.check_rows(&[0.0; 6], 2, Side::Forward, &[0.0; 2])?;
/// w.check_pull(&[0.0; 6], &[0.0; 2], 2, Side::Forward, None)?;
/// w.check_saved(None, Ok(Saves::Result))?;
/// w.check_bars(&[])?;
/// # Ok::<(), isometry_core::Error>(())
/// ```
pub trait Operator<T: Scalar>: Send + Sync {
    /// Number of matrices, n_out, n_in.
    fn sizes(&self) -> [usize; 3];
    /// The list of arguments of the object.
    fn arguments(&self) -> &'static [Argument];
    /// The array of the i-th argument.
    fn argument(&self, i: usize) -> Array<'_, T>;

    /// Number of matrices.
    fn batch(&self) -> usize {
        self.sizes()[0]
    }

    /// (n_out, n_in)
    fn shape(&self) -> (usize, usize) {
        let [_, p, q] = self.sizes();
        (p, q)
    }

    /// Sizes of a row (n_in, n_out) on one side.
    fn features(&self, side: Side) -> (usize, usize) {
        side.features(self.shape())
    }

    /// Checks the sizes of the arrays of `Cpu::apply`.
    ///
    /// # Errors
    /// [`Error::Shape`] where one has another length.
    fn check_rows(&self, x: &[T], rows: usize, side: Side, out: &[T]) -> Result<()> {
        let (from, into) = self.features(side);
        check_len("x", x.len(), &[self.batch(), rows, from])?;
        check_len("out", out.len(), &[self.batch(), rows, into])
    }

    /// Checks the sizes of the arrays of `Cpu::apply_vjp`.
    ///
    /// # Errors
    /// [`Error::Shape`] where one has another length.
    fn check_pull(&self, x: &[T], ct: &[T], rows: usize, side: Side, x_bar: Option<&[T]>) -> Result<()> {
        let (from, into) = self.features(side);
        check_len("x", x.len(), &[self.batch(), rows, from])?;
        check_len("ct", ct.len(), &[self.batch(), rows, into])?;
        x_bar.map_or(Ok(()), |x_bar| check_len("x_bar", x_bar.len(), &[x.len()]))
    }

    /// Checks the size of an array of matrices.
    ///
    /// # Errors
    /// [`Error::Shape`] where one has another length.
    fn check_matrix(&self, argument: &'static str, matrix: &[T]) -> Result<()> {
        check_len(argument, matrix.len(), &self.sizes())
    }

    /// Checks an array that holds what a forward call saved.
    ///
    /// # Errors
    /// Another length than `saves` says, or an array for a call that saves nothing.
    fn check_saved(&self, saved: Option<&[T]>, saves: Result<Saves>) -> Result<()> {
        let Some(saved) = saved else { return Ok(()) };
        match saves? {
            Saves::Result => self.check_matrix("saved", saved),
            Saves::Elements(0) => Err(Error::value("saved", "was given for a call that saves nothing")),
            Saves::Elements(len) => check_len("saved", saved.len(), &[self.batch(), len]),
        }
    }

    /// Checks gradients against the arguments.
    ///
    /// # Errors
    /// More gradients than arguments, other lengths, and gradients of arguments that were not given or are not trained.
    fn check_bars(&self, bars: &[Bar<'_, T>]) -> Result<()> {
        check_bars(self.arguments(), |i| self.argument(i), bars)
    }
}
