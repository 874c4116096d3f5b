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
//! * `recover`: the parameters of a given matrix

mod forward;
mod group;
mod last;
mod recover;
mod repair;
mod single;
#[cfg(test)]
mod tests;
mod vjp;

pub use last::Last;
pub use recover::from_matrix;
pub use vjp::{Gradients, matrix_vjp};

use crate::error::{Error, Result};
use crate::kernels::{Operand, Product};
use crate::operator::{Operator, Side};
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Region, Scratch, most};
use crate::sizes::{check_len, triangles, work};
use isometry_kernels::cayley::triangle;

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
    pub fn new(
        upper: &'a [T],
        diagonal: Option<&'a [T::Real]>,
        last: Last<'a, T::Real>,
        batch: usize,
        n: usize,
    ) -> Result<Self> {
        check_len("upper", upper.len(), &triangles(batch, n))?;
        if let Some(diagonal) = diagonal {
            if T::PARTS == 1 {
                return Err(Error::value("diagonal", "must not be given for a real type: A[j, j] = 0"));
            }
            check_len("diagonal", diagonal.len(), &[batch, n])?;
        }
        last.check::<T>(batch, n)?;
        Ok(Cayley { upper, diagonal, last, batch, n })
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

impl<T: Scalar> Operator<T> for Cayley<'_, T> {
    fn batch(&self) -> usize {
        self.batch
    }

    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn matrix(&self, out: &mut [T], threads: usize) -> Result<()> {
        self.check_matrix("out", out)?;
        // SAFETY: `out` has the size of all matrices and is borrowed exclusively.
        unsafe { forward::matrices(self, Shared(out.as_mut_ptr()), threads) }
    }

    fn apply(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        let n = self.n;
        if out.is_empty() {
            return Ok(());
        }
        let work = work(&[self.batch, rows, n, n, T::PARTS, T::PARTS]);
        let members = parallel::worth(most(threads), work);
        let room = Scratch::new(|arena| {
            let w: Region<T> = arena.take(&[self.batch, n, n]);
            (w, arena.regions(members, &[Product::<T>::scratch(rows, n)]))
        })?;
        let (w, own) = *room;
        // SAFETY: the region has the size of all matrices.
        unsafe { forward::matrices(self, Shared(w.ptr()), threads)? };
        let size = rows * n;
        let to = Shared(out.as_mut_ptr());
        let product = |b: usize| {
            let w = Operand::new(w.at(b * n * n).cast_const(), n);
            // rows: c = W x is C = X W^T, c = W^H x is C = X conj(W)
            let w = if side == Side::Forward { w.t() } else { w.conj() };
            Product::new((rows, n, n), Operand::new(x[b * size..].as_ptr(), n), w, to.at(b * size), n)
        };
        parallel::run(members, &|member| {
            let scratch = own.of(member.id).ptr();
            if self.batch < member.count {
                for b in 0..self.batch {
                    // SAFETY: the slices hold the matrices; `out` is borrowed exclusively; each member has its own
                    // scratch.
                    unsafe { product(b).run(member, scratch) };
                }
            } else {
                Member::alone(|solo| {
                    for b in member.share(self.batch, 1) {
                        // SAFETY: as above; members write disjoint matrices.
                        unsafe { product(b).run(solo, scratch) };
                    }
                });
            }
        });
        Ok(())
    }
}
