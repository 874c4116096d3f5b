//! The rotation R(a, b) of the direction of a to that of b, in their plane: with ah = a / ||a||, bh = b / ||b||, w = ah + bh
//! normalised,
//!
//! ```text
//! R = H(w) H(ah),      R ah = bh,      R(b, a) = R(a, b)^T,      det R = 1.
//! ```
//!
//! O(n) per row. Degenerate pairs and the gradient are described with the loops, in
//! [`isometry_kernels::rotation`]. A complex row is two real ones, since R is real.

mod rows;

use crate::argument::{Argument, Array, Given, all, argument};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::sizes::{check_len, size};
use crate::transition::{Route, Workload};

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[argument!("start", "n", real), argument!("end", "n", real)];

/// Rotations of one direction to another.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a, T: Scalar> {
    start: &'a [T::Real],
    end: &'a [T::Real],
    batch: usize,
    n: usize,
}

impl<'a, T: Scalar> Rotation<'a, T> {
    /// A view of vectors (batch, n).
    ///
    /// ```
    /// use isometry_core::operators::rotation::Rotation;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// let w = Rotation::new(&[2.0, 0.0], &[0.0, 3.0], 1, 2)?; // the direction e_0 to e_1
    /// let mut y = [0.0f64; 2];
    /// w.apply(&[1.0, 5.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!(y.iter().zip([-5.0, 1.0]).all(|(y, z)| (y - z).abs() < 1e-15));
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the vectors have other lengths.
    pub fn new(start: &'a [T::Real], end: &'a [T::Real], batch: usize, n: usize) -> Result<Self> {
        check_len("start", start.len(), &[batch, n])?;
        check_len("end", end.len(), &[batch, n])?;
        size("out", &[batch, n, n])?;
        Ok(Rotation { start, end, batch, n })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [start, end] = all(given)?;
        let [batch, n] = start.sizes("start")?;
        end.sizes::<2>("end")?;
        let real = |given: &Given<'a, T>, name| given.real().ok_or(Error::value(name, "must be given, real"));
        Self::new(real(start, "start")?, real(end, "end")?, batch, n)
    }
}

/// Two reflections cost less than any product with W.
pub(crate) fn route(_shapes: &[&[usize]], _workload: Workload) -> Route {
    Route::Factored
}

operator! {
    Rotation, |own, i| [own.batch, own.n, own.n],
    Array::Real(if i == 0 { own.start } else { own.end })
}
