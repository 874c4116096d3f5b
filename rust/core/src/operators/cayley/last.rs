//! The last factor D = diag(d) of W = (2 S - I) D: identity, signs, or phases d = e^{i theta}.

use crate::error::{Error, Result};
use crate::scalar::{Real, Scalar};
use crate::sizes::check_len;

/// D, n numbers per matrix.
#[derive(Clone, Copy, Debug)]
pub enum Last<'a, R> {
    /// D = I
    None,
    /// Fixed +1 or -1.
    Signs(&'a [R]),
    /// Angles theta, d = e^{i theta}; complex types only.
    Phases(&'a [R]),
}

impl<R: Real> Last<'_, R> {
    /// Checks size and values for `batch` matrices of element type T.
    pub(super) fn check<T: Scalar<Real = R>>(&self, batch: usize, n: usize) -> Result<()> {
        match self {
            Last::None => Ok(()),
            Last::Signs(signs) => {
                check_len("signs", signs.len(), &[batch, n])?;
                match signs.iter().position(|s| s.abs() != R::one()) {
                    None => Ok(()),
                    Some(at) => {
                        let got = signs[at];
                        Err(Error::value("signs", format!("must be +1 or -1, got {got:?} at index {at}")))
                    }
                }
            }
            Last::Phases(_) if T::PARTS == 1 => {
                Err(Error::value("phases", "need a complex type, got a real one: use signs"))
            }
            Last::Phases(phases) => check_len("phases", phases.len(), &[batch, n]),
        }
    }

    /// The stored numbers.
    pub(super) fn numbers(&self) -> Option<&[R]> {
        match self {
            Last::None => None,
            Last::Signs(x) | Last::Phases(x) => Some(x),
        }
    }

    /// d at an index of the array.
    #[inline]
    pub(super) fn factor<T: Scalar<Real = R>>(&self, at: usize) -> T {
        match self {
            Last::None => T::one(),
            Last::Signs(signs) => T::real(signs[at]),
            Last::Phases(phases) => T::cis(phases[at]),
        }
    }

    /// Writes `len` factors from index `first` on to `out` and returns it; `None` if D = I.
    ///
    /// # Safety
    /// `out` has `len` elements.
    pub(super) unsafe fn fill<T: Scalar<Real = R>>(
        &self,
        first: usize,
        len: usize,
        out: *mut T,
    ) -> Option<*const T> {
        self.numbers()?;
        for i in 0..len {
            // SAFETY: `out` has `len` elements.
            unsafe { out.add(i).write(self.factor(first + i)) };
        }
        Some(out)
    }
}
