//! The scaled Cayley transform of a batch of skew-symmetric (skew-Hermitian) matrices,
//!
//! ```text
//! W = (I + A)^-1 (I - A) D = (2 S - I) D,   S = (I + A)^-1,   A^H = -A.
//! ```
//!
//! A is given by its strict upper triangle, row by row, and for a complex type by the imaginary parts of its diagonal;
//! the last factor D holds fixed signs or trainable phases. The inverse S consists of matrix products, without pivoting;
//! each W is checked in its epilogue ([`isometry_kernels::cayley::Limits`]), and the few with too large a growth factor
//! are recomputed (`repair`).
//!
//! * `single`: one matrix, vectorised along its rows, shared by the members of a call
//! * `group`: one matrix per lane, for batches of small ones
//! * `forward`, `vjp`: the choice between the two, and the distribution of a batch
//! * `recover`, `choose`: the parameters of a given matrix

mod choose;
mod forward;
mod group;
mod recover;
mod repair;
mod rotvec;
mod single;
#[cfg(test)]
mod tests;
mod vjp;
mod workspace;

pub use recover::from_matrix;
pub use rotvec::from_rotvec;

use super::last::{Last, check_signs};
use crate::argument::{Argument, Array, Given, all, argument, part};
use crate::cpu::{Cpu, Form, FormVjp, Law, Rotations};
use crate::error::Result;
use crate::operator::Saves;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::sizes::{check_diagonal, check_len, packed_size, triangles};
use isometry_kernels::cayley::triangle;
use std::ops::Range;

/// The arguments; D is I, diag(signs) or diag(e^{i phases}).
pub const ARGUMENTS: &[Argument] = &[
    argument!("upper", "n(n-1)/2"),
    argument!("diagonal", "n", real),
    argument!("signs", "n", real, fixed, group "last"),
    argument!("phases", "n", angles, group "last"),
];

/// A batch of n x n Cayley transforms: a borrowed view of their parameters.
#[derive(Clone, Copy, Debug)]
pub struct Cayley<'a, T: Scalar> {
    upper: &'a [T],
    diagonal: Option<&'a [T::Real]>,
    last: Last<'a, T::Real>,
    batch: usize,
    n: usize,
}

impl<'a, T: Scalar> Cayley<'a, T> {
    /// `upper` is (batch, n (n - 1) / 2), `diagonal` (batch, n) the imaginary parts of the diagonal of a complex A,
    /// `last` the factor D.
    ///
    /// ```
    /// use isometry_core::operators::{Last, cayley::Cayley};
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// let w = Cayley::new(&[1.0], None, Last::None, 1, 2)?; // A = [[0, 1], [-1, 0]]
    /// let mut y = [0.0f64; 2];
    /// w.apply(&[3.0, 5.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!(y.iter().zip([-5.0, 3.0]).all(|(y, z)| (y - z).abs() < 1e-15));
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arrays of other lengths, a diagonal of real matrices, phases of a real type, or signs other than +1 and -1.
    pub fn new(
        upper: &'a [T],
        diagonal: Option<&'a [T::Real]>,
        last: Last<'a, T::Real>,
        batch: usize,
        n: usize,
    ) -> Result<Self> {
        check_len("upper", upper.len(), &triangles(batch, n))?;
        if let Some(diagonal) = diagonal {
            check_diagonal(T::PARTS == 1, diagonal.len(), batch, n)?;
        }
        last.check::<T>(batch, n)?;
        if let Last::Signs(signs) = last {
            check_signs(signs)?;
        }
        Ok(Cayley { upper, diagonal, last, batch, n })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [upper, diagonal, signs, phases] = all(given)?;
        let [batch, packed] = upper.sizes("upper")?;
        let last = Last::of(Last::Signs, signs, phases)?;
        Self::new(upper.own("upper")?, diagonal.real(), last, batch, packed_size(packed))
    }

    /// The strict upper triangle of matrix b.
    fn upper_of(&self, b: usize) -> &'a [T] {
        let len = triangle::len(self.n);
        &self.upper[b * len..(b + 1) * len]
    }

    /// The diagonal of matrix b.
    fn diagonal_of(&self, b: usize) -> Option<&'a [T::Real]> {
        self.diagonal.map(|d| &d[b * self.n..(b + 1) * self.n])
    }
}

/// Refuses finite signs other than +1 and -1.
pub(crate) fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [_, _, signs, _] = all(given)?;
    signs.real().map_or(Ok(()), check_signs)
}

operator! {
    Cayley, |own, i| [own.batch, own.n, own.n],
    match i {
        0 => Array::Own(own.upper),
        1 => own.diagonal.map_or(Array::None, Array::Real),
        _ => own.last.array(i == 3),
    }
}

impl<T: Scalar> Cpu<T> for Cayley<'_, T> {
    fn rotations(&self) -> Option<Rotations<'_, T::Real>> {
        Rotations::of(self.upper, self.last.numbers(), Law::Cayley, (self.batch, self.n))
    }

    fn matrix_saves(&self) -> Result<Saves> {
        Ok(Saves::Result)
    }

    fn part(&self, own: Range<usize>, f: &mut dyn FnMut(&dyn Cpu<T>) -> Result<()>) -> Result<bool> {
        let upper = &self.upper[part(self.upper.len(), self.batch, &own)];
        let diagonal = self.diagonal.map(|d| &d[part(d.len(), self.batch, &own)]);
        let last = self.last.part(self.batch, &own);
        f(&Cayley { upper, diagonal, last, batch: own.len(), n: self.n }).map(|()| true)
    }

    fn form(&self, Form { out, budget, .. }: Form<'_, T>) -> Result<()> {
        // SAFETY: the matrices fill `out`, which is borrowed exclusively.
        unsafe { forward::matrices(self, Shared(out.as_mut_ptr()), budget.threads) }
    }

    fn form_vjp(&self, FormVjp { saved, ct, bars, budget }: FormVjp<'_, '_, T>) -> Result<()> {
        vjp::matrix_vjp(self, saved.unwrap_or_default(), ct, bars, budget.threads)
    }
}
