//! Rows by the kernels, and the gradient of the angles from their sums.

use super::Givens;
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::givens::{BLOCK, GivensPull, GivensTurn, Planes};
use std::ptr::null_mut;

impl<T: Scalar> Givens<'_, T> {
    /// The rotations of matrix k.
    fn planes(&self, k: usize) -> Planes<T::Real> {
        let (sin, cos) = self.table.split_at(self.angles.len());
        let [sin, cos] = [sin, cos].map(|table| table[k * self.m..].as_ptr());
        Planes { places: self.places[2 * k * self.m..].as_ptr(), sin, cos, count: self.m, n: self.n }
    }
}

// SAFETY: places are two of the n elements, every matrix has m of them and of the angles, and two blocks fit in the scratch.
unsafe impl<T: Scalar> Rows<T> for Givens<'_, T> {
    fn work(&self) -> usize {
        work(&[4, self.m, T::PARTS]).saturating_add(self.n)
    }

    /// A block of y, and one of its cotangent.
    fn scratch(&self, _rows: usize) -> usize {
        work(&[2, self.n, BLOCK])
    }

    fn sums(&self) -> usize {
        self.m
    }

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real) {
        let RowPass { k, rows, side } = pass;
        let (planes, adjoint) = (self.planes(k), side == Side::Adjoint);
        // SAFETY: the contract of the trait.
        unsafe { GivensTurn { planes, adjoint, x, rows, out, y: scratch }.call() }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
        let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        // <ct, W^T x> = <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged, and x_bar is W ct,
        // which is on the way.
        let (planes, bar, none) = (self.planes(k), x_bar.unwrap_or(null_mut()), null_mut());
        let (x, ct, x_bar, out) = if side == Side::Forward { (x, ct, bar, none) } else { (ct, x, none, bar) };
        // SAFETY: the contract of the trait.
        unsafe { GivensPull { planes, x, ct, rows, sums, x_bar, out, y: scratch }.call() }
    }

    unsafe fn deal(&self, _: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _: *mut T::Real) {
        if let Some(bar) = bars.real(1) {
            bar.copy_from_slice(sums);
        }
    }
}
