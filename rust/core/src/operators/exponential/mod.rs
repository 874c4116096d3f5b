//! The exponential of a batch of skew-symmetric (skew-Hermitian) matrices, W = exp(A), A^H = -A.
//!
//! A is given by its strict upper triangle, row by row, and for a complex type by the imaginary parts of its diagonal.
//! W is unitary, so its gradient needs skew matrices only:
//!
//! ```text
//! A_bar = int_0^1 e^{-tA} K e^{tA} dt,   K = W_bar W^H,   of which the skew part gives the gradients.
//! ```
//!
//! Everything consists of matrix products:
//!
//! * `series`: scaling and squaring, forward and backward, written once over the products of a `Space`
//! * `single`: the products of one matrix, shared by the members of a call
//! * `group`: those of one matrix per lane, for batches of small ones
//! * `batch`: the choice between the two, and the distribution of a batch
//!
//! Real matrices of two and three rows have closed forms instead (`crate::cpu::Rotations`), and so do their logarithms (`recover`).

mod batch;
mod group;
mod recover;
mod series;
mod single;

pub use recover::from_matrix;

use crate::argument::{Argument, Array, Bar, Given, all, argument, part};
use crate::cpu::{Cpu, Form, FormVjp, Law, Rotations};
use crate::error::Result;
use crate::operator::Saves;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::sizes::{check_diagonal, check_len, packed_size, triangles};
use std::ops::Range;

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[argument!("upper", "n(n-1)/2"), argument!("diagonal", "n", real)];

/// A batch of exponentials of n x n matrices: a borrowed view of their parameters.
#[derive(Clone, Copy, Debug)]
pub struct Exponential<'a, T: Scalar> {
    upper: &'a [T],
    diagonal: Option<&'a [T::Real]>,
    batch: usize,
    n: usize,
}

impl<'a, T: Scalar> Exponential<'a, T> {
    /// `upper` is (batch, n (n - 1) / 2), `diagonal` (batch, n) the imaginary parts of the diagonal of a complex A.
    ///
    /// ```
    /// use isometry_core::operators::exponential::Exponential;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// let w = Exponential::new(&[std::f64::consts::FRAC_PI_2], None, 1, 2)?; // A = [[0, pi/2], [-pi/2, 0]]
    /// let mut y = [0.0f64; 2];
    /// w.apply(&[3.0, 5.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!(y.iter().zip([5.0, -3.0]).all(|(y, z)| (y - z).abs() < 1e-15));
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arrays of other lengths, or a diagonal of real matrices.
    pub fn new(upper: &'a [T], diagonal: Option<&'a [T::Real]>, batch: usize, n: usize) -> Result<Self> {
        check_len("upper", upper.len(), &triangles(batch, n))?;
        if let Some(diagonal) = diagonal {
            check_diagonal(T::PARTS == 1, diagonal.len(), batch, n)?;
        }
        Ok(Exponential { upper, diagonal, batch, n })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [upper, diagonal] = all(given)?;
        let [batch, packed] = upper.sizes("upper")?;
        Self::new(upper.own("upper")?, diagonal.real(), batch, packed_size(packed))
    }

    /// The parameters from matrix b on.
    fn from(&self, b: usize) -> (*const T, Option<*const T::Real>) {
        let len = self.upper.len() / self.batch;
        (self.upper[b * len..].as_ptr(), self.diagonal.map(|d| d[b * self.n..].as_ptr()))
    }
}

/// The arrays for the gradients from matrix b on.
#[derive(Clone, Copy)]
struct Targets<T: Scalar> {
    upper: Option<Shared<T>>,
    diagonal: Option<Shared<T::Real>>,
    n: usize,
}

impl<T: Scalar> Targets<T> {
    fn of(bars: &mut [Bar<'_, T>], n: usize) -> Self {
        let mut bars = bars.iter_mut().map(Bar::again);
        let upper = bars.next().and_then(Bar::own).map(|bar| Shared(bar.as_mut_ptr()));
        let diagonal = bars.next().and_then(Bar::real).map(|bar| Shared(bar.as_mut_ptr()));
        Targets { upper, diagonal, n }
    }

    fn at(&self, b: usize) -> (Option<*mut T>, Option<*mut T::Real>) {
        let n = self.n;
        (self.upper.map(|x| x.at(b * (n * (n - 1) / 2))), self.diagonal.map(|x| x.at(b * n)))
    }
}

operator! {
    Exponential, |own, i| [own.batch, own.n, own.n],
    match i {
        0 => Array::Own(own.upper),
        _ => own.diagonal.map_or(Array::None, Array::Real),
    }
}

impl<T: Scalar> Cpu<T> for Exponential<'_, T> {
    fn rotations(&self) -> Option<Rotations<'_, T::Real>> {
        Rotations::of(self.upper, None, Law::Exponential, (self.batch, self.n))
    }

    fn matrix_saves(&self) -> Result<Saves> {
        Ok(Saves::Result)
    }

    fn part(&self, own: Range<usize>, f: &mut dyn FnMut(&dyn Cpu<T>) -> Result<()>) -> Result<bool> {
        let upper = &self.upper[part(self.upper.len(), self.batch, &own)];
        let diagonal = self.diagonal.map(|d| &d[part(d.len(), self.batch, &own)]);
        f(&Exponential { upper, diagonal, batch: own.len(), n: self.n }).map(|()| true)
    }

    fn form(&self, Form { out, budget, .. }: Form<'_, T>) -> Result<()> {
        batch::matrices(self, out, budget.threads)
    }

    fn form_vjp(&self, FormVjp { saved, ct, bars, budget }: FormVjp<'_, '_, T>) -> Result<()> {
        batch::gradients(self, saved.unwrap_or_default(), ct, Targets::of(bars, self.n), budget.threads)
    }
}
