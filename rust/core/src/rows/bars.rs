//! The arrays for the gradients of the matrices of a stack, which members write concurrently.

use crate::argument::Bar;
use crate::error::Result;
use crate::kernels::collected;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use std::marker::PhantomData;

/// The gradient of an argument, and its length in each matrix.
enum Gradient<T: Scalar> {
    None,
    Own(Shared<T>, usize),
    Real(Shared<T::Real>, usize),
}

/// The gradients of all matrices.
pub struct StackBars<'a, T: Scalar> {
    gradients: Vec<Gradient<T>>,
    _borrowed: PhantomData<&'a mut T>,
}

impl<'a, T: Scalar> StackBars<'a, T> {
    /// The gradients of `batch` matrices, of equal length in each.
    pub fn new(bars: &'a mut [Bar<'_, T>], batch: usize) -> Result<Self> {
        let gradient = |bar: &mut Bar<'_, T>| match bar {
            Bar::None | Bar::Remote(_) => Gradient::None,
            Bar::Own(bar) => Gradient::Own(Shared(bar.as_mut_ptr()), bar.len() / batch.max(1)),
            Bar::Real(bar) => Gradient::Real(Shared(bar.as_mut_ptr()), bar.len() / batch.max(1)),
        };
        Ok(StackBars { gradients: collected(bars.iter_mut().map(gradient))?, _borrowed: PhantomData })
    }

    /// The gradients of the k-th matrix.
    ///
    /// # Safety
    /// There is this matrix, and nobody else has its gradients.
    pub unsafe fn of(&self, k: usize) -> MatrixBars<'_, T> {
        MatrixBars { gradients: &self.gradients, k }
    }
}

/// The arrays for the gradients of one matrix of a stack.
///
/// ```
/// use isometry_core::rows::MatrixBars;
/// use isometry_core::scalar::Scalar;
///
/// /// The gradients of an argument of the type of the matrix and of a real one, whose sums stand one behind the other.
/// fn deal<T: Scalar>(sums: &[T::Real], mut bars: MatrixBars<'_, T>) {
///     if let Some(bar) = bars.own(0) {
///         bar.iter_mut().zip(sums).for_each(|(bar, sum)| *bar = T::real(*sum));
///     }
///     if let Some(bar) = bars.real(1) {
///         bar.copy_from_slice(&sums[sums.len() - bar.len()..]);
///     }
/// }
/// ```
pub struct MatrixBars<'a, T: Scalar> {
    gradients: &'a [Gradient<T>],
    k: usize,
}

impl<T: Scalar> MatrixBars<'_, T> {
    /// The gradient of the i-th argument, of the type of the matrix, if it is wanted.
    pub fn own(&mut self, i: usize) -> Option<&mut [T]> {
        let Some(&Gradient::Own(bar, len)) = self.gradients.get(i) else { return None };
        // SAFETY: every matrix has `len` elements, and these are nobody else's.
        Some(unsafe { std::slice::from_raw_parts_mut(bar.at(self.k * len), len) })
    }

    /// The gradient of the i-th argument, a real one, if it is wanted.
    pub fn real(&mut self, i: usize) -> Option<&mut [T::Real]> {
        let Some(&Gradient::Real(bar, len)) = self.gradients.get(i) else { return None };
        // SAFETY: as in `own`.
        Some(unsafe { std::slice::from_raw_parts_mut(bar.at(self.k * len), len) })
    }
}
