//! Rows through the transforms: the kernels, and the gradient from their sums.

use super::Circulant;
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::circulant::{ApplyCirculant, PullCirculant, scratch};
use std::ptr::null_mut;

impl<T: Scalar> Circulant<'_, T> {
    /// D / n of operator k.
    fn diagonal(&self, k: usize) -> *const T::Real {
        self.diagonals[2 * k * self.n..].as_ptr()
    }
}

// SAFETY: every operator has its diagonal; the plan is for n elements unless there is no operator.
unsafe impl<T: Scalar> Rows<T> for Circulant<'_, T> {
    /// Two transforms and a diagonal.
    fn work(&self) -> usize {
        self.plan.work().saturating_mul(2).saturating_add(work(&[4, self.n]))
    }

    fn scratch(&self, _rows: usize) -> usize {
        scratch(&self.plan)
    }

    fn sums(&self) -> usize {
        self.n
    }

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real) {
        let RowPass { k, rows, side } = pass;
        let (plan, diagonal, adjoint) = (&raw const *self.plan, self.diagonal(k), side == Side::Adjoint);
        let (x, out) = (x.cast(), out.cast());
        // SAFETY: the contract of the trait; a complex number is two of its real type, and only complex types get here.
        unsafe { ApplyCirculant { plan, diagonal, x, rows, adjoint, out, scratch }.call() }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
        let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        let (plan, diagonal) = (&raw const *self.plan, self.diagonal(k));
        let bar = x_bar.map_or(null_mut(), |x_bar| x_bar.cast());
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged.
        let (x, ct, x_bar, y) =
            if side == Side::Forward { (x, ct, bar, null_mut()) } else { (ct, x, null_mut(), bar) };
        let (x, ct) = (x.cast(), ct.cast());
        // SAFETY: as in `apply_rows`.
        unsafe { PullCirculant { plan, diagonal, x, ct, rows, sums, x_bar, y, scratch }.call() }
    }

    unsafe fn deal(&self, _: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _: *mut T::Real) {
        if let Some(bar) = bars.real(0) {
            bar.copy_from_slice(sums);
        }
    }
}
