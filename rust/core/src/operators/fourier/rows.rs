//! Rows through the factors: the kernels, and the gradients from their sums.

use super::FourierProduct;
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::{Scalar, parts_mut};
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::fourier::{Apply, FourierFactors, Pull, scratch, sums};

impl<T: Scalar> FourierProduct<'_, T> {
    /// Operator k as the kernels take it; it lives no longer than this.
    fn factors(&self, k: usize) -> FourierFactors<T::Real> {
        let table = |i: usize| self.numbers[2 * (5 * k + i) * self.n..].as_ptr();
        FourierFactors {
            plan: &*self.plan,
            diagonals: [table(0), table(1), table(2)],
            reflections: [table(3), table(4)],
            permutation: self.places[k * self.n..].as_ptr(),
        }
    }
}

// SAFETY: every operator has its numbers, and a permutation of 0..n; the plan is for n elements unless there is no operator.
unsafe impl<T: Scalar> Rows<T> for FourierProduct<'_, T> {
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

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real) {
        let RowPass { k, rows, side } = pass;
        let (factors, adjoint) = (self.factors(k), side == Side::Adjoint);
        // SAFETY: the contract of the trait; a complex number is two of its real type, and only complex types get here.
        unsafe { Apply { factors, x: x.cast(), rows, adjoint, out: out.cast(), scratch }.call() }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
        let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        let (factors, none) = (self.factors(k), std::ptr::null_mut());
        let bar = x_bar.map_or(none, |x_bar| x_bar.cast());
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged.
        let (x, ct, x_bar, y) = if side == Side::Forward { (x, ct, bar, none) } else { (ct, x, none, bar) };
        // SAFETY: as in `apply_rows`.
        unsafe { Pull { factors, x: x.cast(), ct: ct.cast(), rows, sums, x_bar, y, scratch }.call() }
    }

    unsafe fn deal(&self, k: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _: *mut T::Real) {
        let n = self.n;
        if let Some(phases) = bars.real(0) {
            phases.copy_from_slice(&sums[..3 * n]);
            for (bar, place) in phases[n..2 * n].iter_mut().zip(&self.places[k * n..]) {
                *bar = sums[n + place];
            }
        }
        if let Some(vectors) = bars.own(1) {
            let both = parts_mut(vectors).chunks_exact_mut(2 * n).zip(sums[3 * n..].chunks_exact(2 * n));
            for ((bars, sums), length) in both.zip(&self.lengths[2 * k..]) {
                bars.iter_mut().zip(sums).for_each(|(bar, sum)| *bar = *sum * *length);
            }
        }
    }
}
