//! Rows through the factors: the kernels, and what is left to do with their sums.

use super::FourierProduct;
use crate::argument::Bar;
use crate::operator::Side;
use crate::rows::Rows;
use crate::scalar::{Scalar, parts_mut};
use crate::sizes::work;
use isometry_kernels::fourier::{Apply, Law, Pull, scratch, sums};

impl<T: Scalar> FourierProduct<'_, T> {
    /// As the kernels take it; it lives no longer than the operator.
    fn law(&self) -> Law<T::Real> {
        let table = |i: usize| self.numbers[2 * i * self.n..].as_ptr();
        Law {
            plan: &*self.plan,
            diagonals: [table(0), table(1), table(2)],
            reflections: [table(3), table(4)],
            permutation: self.places.as_ptr(),
        }
    }
}

impl<T: Scalar> Rows<T> for FourierProduct<'_, T> {
    fn size(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    /// Two transforms, two reflections, three diagonals.
    fn work(&self) -> usize {
        self.plan.work().saturating_mul(2).saturating_add(work(&[28, self.n]))
    }

    fn scratch(&self, _rows: usize) -> usize {
        scratch(&self.plan)
    }

    fn sums(&self) -> usize {
        sums(self.n)
    }

    fn deal(&self, sums: &[T::Real], bars: &mut [Bar<'_, T>]) {
        let n = self.n;
        let mut bars = bars.iter_mut().map(Bar::again);
        if let Some(phases) = bars.next().and_then(Bar::real) {
            phases.copy_from_slice(&sums[..3 * n]);
            for (bar, place) in phases[n..2 * n].iter_mut().zip(&self.places) {
                *bar = sums[n + place];
            }
        }
        if let Some(vectors) = bars.next().and_then(Bar::own) {
            for (i, (bar, sum)) in parts_mut(vectors).iter_mut().zip(&sums[3 * n..]).enumerate() {
                *bar = *sum * self.lengths[i / (2 * n)];
            }
        }
    }

    unsafe fn apply_rows(&self, x: *const T, rows: usize, side: Side, out: *mut T, scratch: *mut T::Real) {
        let (law, adjoint) = (self.law(), side == Side::Adjoint);
        // SAFETY: the contract of the trait; a complex number is two of its real type, and only complex types get here.
        unsafe { Apply { law, x: x.cast(), rows, adjoint, out: out.cast(), scratch }.call() }
    }

    unsafe fn pull_rows(
        &self,
        x: *const T,
        ct: *const T,
        rows: usize,
        side: Side,
        sums: *mut T::Real,
        x_bar: Option<*mut T>,
        scratch: *mut T::Real,
    ) {
        let (law, none) = (self.law(), std::ptr::null_mut());
        let bar = x_bar.map_or(none, |x_bar| x_bar.cast());
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged.
        let (x, ct, x_bar, y) = if side == Side::Forward { (x, ct, bar, none) } else { (ct, x, none, bar) };
        // SAFETY: as in `apply_rows`.
        unsafe { Pull { law, x: x.cast(), ct: ct.cast(), rows, sums, x_bar, y, scratch }.call() }
    }
}
