//! The last factor of an operator, a diagonal matrix: nothing, signs, or phases.

use crate::argument::{Array, Given, part};
use crate::error::{Error, Result};
use crate::scalar::{Real, Scalar};
use crate::sizes::check_len;
use std::ops::Range;

/// diag(d) of every matrix of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Last<'a, R> {
    /// The identity.
    None,
    /// d = (1, ..., 1, s), one s per matrix.
    Sign(&'a [R]),
    /// Fixed entries +1 or -1, n per matrix.
    Signs(&'a [R]),
    /// Angles theta, n per matrix, d = e^{i theta}; complex types only.
    Phases(&'a [R]),
}

impl<'a, R: Real> Last<'a, R> {
    /// From the arguments `sign` or `signs`, by the given constructor, and `phases`.
    pub(crate) fn of<T: Scalar<Real = R>>(
        signs: fn(&'a [R]) -> Self,
        given: &Given<'a, T>,
        phases: &Given<'a, T>,
    ) -> Result<Self> {
        match (given.real(), phases.real()) {
            (Some(_), Some(_)) => Err(Error::value("phases", "cannot be given together with signs")),
            (Some(given), None) => Ok(signs(given)),
            (None, Some(phases)) => Ok(Last::Phases(phases)),
            (None, None) => Ok(Last::None),
        }
    }

    /// Size and field, for `batch` matrices n x n of element type T.
    pub(crate) fn check<T: Scalar<Real = R>>(&self, batch: usize, n: usize) -> Result<()> {
        match self {
            Last::None => Ok(()),
            Last::Sign(_) if n == 0 && batch > 0 => {
                Err(Error::shape("sign", "a last entry beside which it stands", "n = 0"))
            }
            Last::Sign(sign) => check_len("sign", sign.len(), &[batch]),
            Last::Signs(signs) => check_len("signs", signs.len(), &[batch, n]),
            Last::Phases(_) if T::PARTS == 1 => {
                Err(Error::value("phases", "need a complex type, got a real one"))
            }
            Last::Phases(phases) => check_len("phases", phases.len(), &[batch, n]),
        }
    }

    /// The factors of the matrices `own` of `batch`.
    pub(crate) fn part(self, batch: usize, own: &Range<usize>) -> Self {
        let cut = |x: &'a [R]| &x[part(x.len(), batch, own)];
        match self {
            Last::None => Last::None,
            Last::Sign(x) => Last::Sign(cut(x)),
            Last::Signs(x) => Last::Signs(cut(x)),
            Last::Phases(x) => Last::Phases(cut(x)),
        }
    }

    /// The stored numbers.
    pub(crate) fn numbers(&self) -> Option<&'a [R]> {
        match self {
            Last::None => None,
            Last::Sign(x) | Last::Signs(x) | Last::Phases(x) => Some(x),
        }
    }

    /// The array of the argument that has this constructor.
    pub(crate) fn array<T: Scalar<Real = R>>(&self, phases: bool) -> Array<'a, T> {
        match self {
            Last::Sign(x) | Last::Signs(x) if !phases => Array::Real(x),
            Last::Phases(x) if phases => Array::Real(x),
            _ => Array::None,
        }
    }

    /// d_i of matrix b of size n.
    #[inline]
    pub(crate) fn factor<T: Scalar<Real = R>>(&self, b: usize, i: usize, n: usize) -> T {
        match self {
            Last::Sign(sign) if i + 1 == n => T::real(sign[b]),
            Last::Signs(signs) => T::real(signs[b * n + i]),
            Last::Phases(phases) => T::cis(phases[b * n + i]),
            _ => T::one(),
        }
    }

    /// Writes the entries of `count` matrices of size n from the first on; `None` for the identity, else `out`.
    ///
    /// # Safety
    /// `count` n elements exist at `out`.
    pub(crate) unsafe fn fill<T: Scalar<Real = R>>(
        &self,
        first: usize,
        count: usize,
        n: usize,
        out: *mut T,
    ) -> Option<*const T> {
        self.numbers()?;
        for (b, i) in (0..count).flat_map(|b| (0..n).map(move |i| (b, i))) {
            // SAFETY: the contract above.
            unsafe { out.add(b * n + i).write(self.factor(first + b, i, n)) };
        }
        Some(out)
    }
}

/// Refuses finite entries other than +1 and -1; NaN and infinity pass, and show in W.
pub fn check_signs<R: Real>(signs: &[R]) -> Result<()> {
    let wrong = signs.iter().position(|s| s.abs() != R::one() && s.is_finite());
    let Some(at) = wrong else { return Ok(()) };
    Err(Error::value("signs", format!("must be +1 or -1, got {:?} at index {at}", signs[at])))
}
