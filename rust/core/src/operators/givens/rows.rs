//! Rows by blocks, and the gradient of the angles.

use super::Givens;
use super::block::{Across, LANES, turn};
use crate::rows::{MatrixBars, RowPass, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use std::array::from_fn;

// SAFETY: places are within n elements, every matrix has m of them and of the angles, and two blocks fit in the scratch.
unsafe impl<T: Scalar> Rows<T> for Givens<'_, T> {
    fn work(&self) -> usize {
        work(&[4, self.m, T::PARTS]).saturating_add(self.n)
    }

    /// A block of y, and one of its cotangent.
    fn scratch(&self, _rows: usize) -> usize {
        work(&[2, self.n, LANES])
    }

    fn sums(&self) -> usize {
        self.m
    }

    unsafe fn apply_rows(
        &self,
        RowPass { k: b, rows, side }: RowPass,
        x: *const T,
        out: *mut T,
        scratch: *mut T::Real,
    ) {
        let (y, most) = (scratch.cast(), LANES / T::PARTS);
        for first in (0..rows).step_by(most) {
            let count = most.min(rows - first);
            // SAFETY: the contract of the trait; a block fits in the scratch.
            unsafe {
                self.take(x.add(first * self.n), count, y);
                self.through(b, side, y);
                self.give(y, count, out.add(first * self.n));
            }
        }
    }

    unsafe fn pull_rows(
        &self,
        RowPass { k: b, rows, side }: RowPass,
        [x, ct]: [*const T; 2],
        sums: *mut T::Real,
        x_bar: Option<*mut T>,
        scratch: *mut T::Real,
    ) {
        // <ct, W^T x> = <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged, and x_bar is W ct,
        // which is on the way.
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let (n, most, y) = (self.n, LANES / T::PARTS, scratch.cast::<Across<T::Real>>());
        let g = y.wrapping_add(n);
        for first in (0..rows).step_by(most) {
            let (at, count) = (first * n, most.min(rows - first));
            let x_bar = x_bar.map(|x_bar| x_bar.wrapping_add(at));
            // SAFETY: the contract of the trait; two blocks fit in the scratch.
            unsafe {
                self.take(x.add(at), count, y);
                self.through(b, Side::Forward, y);
                if let Some(out) = x_bar.filter(|_| side == Side::Adjoint) {
                    self.give(y, count, out);
                }
                self.take(ct.add(at), count, g);
                for k in 0..self.m {
                    let (i, j, c, s) = self.plane(b, k);
                    let ([yi, yj], [gi, gj]) = ([*y.add(i), *y.add(j)], [*g.add(i), *g.add(j)]);
                    let own: Across<T::Real> = from_fn(|l| gj[l] * yi[l] - gi[l] * yj[l]);
                    *sums.add(k) += own.into_iter().sum();
                    turn(y.add(i), y.add(j), c, -s);
                    turn(g.add(i), g.add(j), c, -s);
                }
                if let Some(out) = x_bar.filter(|_| side == Side::Forward) {
                    self.give(g, count, out);
                }
            }
        }
    }

    unsafe fn deal(&self, _: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _: *mut T::Real) {
        if let Some(bar) = bars.real(1) {
            bar.copy_from_slice(sums);
        }
    }
}
