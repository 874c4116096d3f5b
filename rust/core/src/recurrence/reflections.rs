//! A product of m reflections and a last factor as the transition of a recurrence: parameters and gradients.

use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::sizes::check_len;

/// W = H(U[:,0]) ... H(U[:,m-1]) E with E = I, diag(1, ..., 1, s) or diag(e^{i theta}).
#[derive(Clone, Copy)]
pub struct Reflections<'a, T: Scalar> {
    /// U (n, m)
    pub vectors: &'a [T],
    /// m
    pub m: usize,
    /// s
    pub sign: Option<T::Real>,
    /// theta (n), complex T only
    pub phases: Option<&'a [T::Real]>,
}

/// The gradients of [`Reflections`]; None for those not requested.
#[derive(Default)]
pub struct ReflectionGradients<'a, T: Scalar> {
    /// (n, m)
    pub vectors: Option<&'a mut [T]>,
    /// s_bar
    pub sign: Option<&'a mut T::Real>,
    /// (n)
    pub phases: Option<&'a mut [T::Real]>,
}

impl<T: Scalar> Reflections<'_, T> {
    /// Returns an error for sizes that do not fit n.
    pub fn check(&self, n: usize) -> Result<()> {
        check_len("vectors", self.vectors.len(), &[n, self.m])?;
        if let Some(phases) = self.phases {
            check_len("phases", phases.len(), &[n])?;
            if T::PARTS == 1 {
                return Err(Error::value("phases", "belong to complex vectors only"));
            }
            if self.sign.is_some() {
                return Err(Error::value("phases", "cannot be given together with a sign"));
            }
        }
        Ok(())
    }
}

impl<T: Scalar> ReflectionGradients<'_, T> {
    /// Whether any is requested.
    pub fn any(&self) -> bool {
        self.vectors.is_some() || self.sign.is_some() || self.phases.is_some()
    }

    /// Returns an error for sizes that do not fit, and for gradients of absent parameters.
    pub fn check(&self, of: &Reflections<'_, T>) -> Result<()> {
        self.vectors
            .as_ref()
            .map_or(Ok(()), |bar| check_len("vectors_bar", bar.len(), &[of.vectors.len()]))?;
        let phases = of.phases.map_or(0, <[_]>::len);
        self.phases.as_ref().map_or(Ok(()), |bar| check_len("phases_bar", bar.len(), &[phases]))?;
        if self.sign.is_some() && of.sign.is_none() {
            return Err(Error::value("sign_bar", "was asked for, but no sign was given"));
        }
        Ok(())
    }
}
