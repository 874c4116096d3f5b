//! The scaled Cayley transform of a batch of skew-symmetric (skew-Hermitian) matrices on the device,
//!
//! ```text
//! W = (I + A)^-1 (I - A) D = (2 S - I) D,   S = (I + A)^-1,   A^H = -A,
//! ```
//!
//! and its gradient from W and its cotangent G,
//!
//! ```text
//! C = W + D,  Z = C (G^H C),  U = Z D^* / 2,  upper_ij = U_ij - conj(U_ji),  diagonal_j = Im U_jj,
//! phases_j = sum_i Im(G_ij conj(W_ij)).
//! ```
//!
//! * `small`: n <= 64, one dispatch for all matrices, each in the registers of a part of a workgroup
//! * `large`: elimination by blocks, and products

pub(crate) mod large;
mod range;
pub(crate) mod small;
#[cfg(test)]
mod tests;

pub(crate) use range::holds;

use crate::device::{Record, index};
use crate::last::Last;
use crate::operator::Operator;
use crate::{Array, Field};
use isometry_core::internal::sizes::{check_diagonal, check_len, triangles, work};
use isometry_core::operators::cayley::ARGUMENTS;
use isometry_core::{Error, Result};

/// A batch of n x n Cayley transforms: a view of their parameters.
///
/// The accuracy of W depends on the 2-norm |A|. The table shows e(W) = max|W^H W - I| / (n eps), and the
/// distance of W from the exact matrix in the Frobenius norm and in units of eps sqrt(1 + |A|^2) >= eps
/// cond(I + A): the worst of both fields and n = 2 to 200, where A is full (random), has one block beside the
/// diagonal, also with singular values over four decades, or has rank two; or else half of the rows and
/// columns of A are 0.
///
/// | n | A | \|A\| up to | e(W) below | distance below |
/// |---|---|---|---|---|
/// | up to 64 | any of these | 1e3 | 0.5 | 13 |
/// | | | 1e4 | 1 | 13 |
/// | | | 3e4 | 10 | 13 |
/// | above 64 | full, one block, rank two | 1e3 | 0.1 | 23 |
/// | | half of A is 0 | 100 | 0.1 | 11 |
/// | | | 300 | 3 | 140 |
///
/// Beyond these bounds float32 cannot represent I + A, and W is not unitary for some A, without an error. If
/// the arrays are the caller's, the CPU computes these matrices ([`holds`]).
#[derive(Clone, Debug)]
pub struct Cayley<'a> {
    upper: &'a Array,
    diagonal: Option<&'a Array>,
    last: Option<Last>,
    batch: usize,
    n: usize,
}

/// Gradients of upper and diagonal; the diagonal has no elements if A has none.
struct Bars {
    upper: Array,
    diagonal: Array,
}

impl<'a> Cayley<'a> {
    /// `upper` is (batch, n (n - 1) / 2) of the numbers of W, `diagonal` (batch, n) the real numbers d of A_jj = i d_j of a complex
    /// A, `last` the factor D of signs or phases.
    pub fn new(upper: &'a Array, diagonal: Option<&'a Array>, last: Option<Last>, n: usize) -> Result<Self> {
        let &[batch, _] = upper.shape() else {
            return Err(Error::shape("upper", "(batch, n (n - 1) / 2)", format!("{:?}", upper.shape())));
        };
        check_len("upper", upper.len(), &triangles(batch, n))?;
        if let Some(diagonal) = diagonal {
            check_diagonal(upper.field() == Field::Real, diagonal.len(), batch, n)?;
            diagonal.check_real("diagonal", upper.context())?;
        }
        if let Some(last) = &last {
            let name = if last.are_phases() { "phases" } else { "signs" };
            check_len(name, last.factors().len(), &[batch, n])?;
            upper.fits(name, last.factors())?;
        }
        index(work(&[batch, n, n]), format_args!("{batch} x {n} x {n} numbers"))?;
        Ok(Cayley { upper, diagonal, last, batch, n })
    }

    /// e of D, and whether D is given: an array is bound in any case.
    fn factors(&self) -> (&Array, u32) {
        self.last.as_ref().map_or((self.upper, 0), |last| (last.factors(), 1))
    }

    /// Writes e.
    fn prepare(&self, record: &mut Record<'_>) -> Result<()> {
        self.last.as_ref().map_or(Ok(()), |last| last.prepare(record))
    }

    /// The diagonal of A, and whether there is one.
    fn diagonal(&self) -> (&'a Array, u32) {
        self.diagonal.map_or((self.upper, 0), |diagonal| (diagonal, 1))
    }

    fn room(&self) -> Result<Array> {
        Array::room(self.context(), self.field(), &[self.batch, self.n, self.n])
    }

    fn bars(&self) -> Result<Bars> {
        let (context, all) = (self.context(), [self.batch, self.n]);
        let diagonal = if self.diagonal.is_some() { &all[..] } else { &[0] };
        Ok(Bars {
            upper: Array::room(context, self.field(), self.upper.shape())?,
            diagonal: Array::room(context, Field::Real, diagonal)?,
        })
    }
}

impl Operator for Cayley<'_> {
    fn like(&self) -> &Array {
        self.upper
    }
    fn sizes(&self) -> [usize; 3] {
        [self.batch, self.n, self.n]
    }

    fn record_matrix(&self, record: &mut Record<'_>) -> Result<Array> {
        let w = self.room()?;
        if w.is_empty() {
            return Ok(w);
        }
        self.prepare(record)?;
        match self.n <= small::MOST {
            true => small::matrix(self, record, &w)?,
            false => large::matrix(self, record, &w)?,
        }
        Ok(w)
    }

    fn record_matrix_vjp(
        &self,
        record: &mut Record<'_>,
        w: Option<&Array>,
        ct: &Array,
        wanted: &[bool],
    ) -> Result<Vec<Option<Array>>> {
        let &[upper, diagonal, _, phases] = wanted else {
            return Err(Error::shape("wanted", ARGUMENTS.len().to_string(), wanted.len()));
        };
        let phases = self.last.as_ref().filter(|last| phases && last.are_phases());
        let bars = self.bars()?;
        let diagonal = diagonal && self.diagonal.is_some();
        let mut phases_bar = None;
        if ct.is_empty() {
            let empty = |_| Array::room(self.context(), Field::Real, &[self.batch, self.n]);
            phases_bar = phases.map(empty).transpose()?;
        } else if upper || diagonal || phases.is_some() {
            let w = &w.cloned().map_or_else(|| self.record_matrix(record), Ok)?;
            self.prepare(record)?;
            if upper || diagonal {
                match self.n <= small::MOST {
                    true => small::gradient(self, record, w, ct, &bars)?,
                    false => large::gradient(self, record, w, ct, &bars)?,
                }
            }
            phases_bar = phases.map(|last| last.bar_from_matrix(record, w, ct)).transpose()?;
        }
        Ok(vec![upper.then_some(bars.upper), diagonal.then_some(bars.diagonal), None, phases_bar])
    }
}
