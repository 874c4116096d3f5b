//! Rows through a rotation: the kernels on real rows, complex rows as two real ones each.

use super::Rotation;
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::rotation::{Frame, Pull, Turn, Vectors, frame_len};
use std::ptr::null_mut;

/// Real and imaginary parts of a row, one after the other.
unsafe fn split<T: Scalar>(x: *const T, n: usize, to: *mut T::Real) {
    for i in 0..n {
        // SAFETY: x has n elements, `to` 2 n numbers.
        unsafe {
            *to.add(i) = (*x.add(i)).re();
            *to.add(n + i) = (*x.add(i)).im();
        }
    }
}

/// The row of these parts.
unsafe fn joined<T: Scalar>(parts: *const T::Real, n: usize, to: *mut T) {
    for i in 0..n {
        // SAFETY: `to` has n elements, `parts` 2 n numbers.
        unsafe { *to.add(i) = T::new(*parts.add(i), *parts.add(n + i)) };
    }
}

// SAFETY: the vectors have n numbers in every pair, rows n elements; a frame and the parts of three complex rows fit in the scratch.
unsafe impl<T: Scalar> Rows<T> for Rotation<'_, T> {
    fn work(&self) -> usize {
        work(&[4, self.n, T::PARTS])
    }

    /// A frame, and the parts of three complex rows.
    fn scratch(&self, _rows: usize) -> usize {
        let parts = if T::PARTS == 1 { 0 } else { work(&[6, self.n]) };
        frame_len(self.n).saturating_add(parts)
    }

    fn sums(&self) -> usize {
        work(&[2, self.n])
    }

    unsafe fn load(&self, k: usize, frame: *mut T::Real) {
        let n = self.n;
        let (start, end) = (self.start[k * n..].as_ptr(), self.end[k * n..].as_ptr());
        // SAFETY: the contract of the trait.
        unsafe { Frame { n, start, end, frame }.call() };
    }

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, frame: *mut T::Real) {
        let RowPass { rows, side, .. } = pass;
        let (n, forward) = (self.n, side == Side::Forward);
        // SAFETY: the contract of the trait.
        unsafe {
            if T::PARTS == 1 {
                return Turn { n, frame, forward, rows, x: x.cast(), out: out.cast() }.call();
            }
            let room = frame.add(frame_len(n));
            for row in 0..rows {
                split(x.add(row * n), n, room);
                Turn { n, frame, forward, rows: 2, x: room, out: room }.call();
                joined(room, n, out.add(row * n));
            }
        }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, frame: *mut T::Real) {
        let (RowPass { rows, side, .. }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        let (n, forward) = (self.n, side == Side::Forward);
        // SAFETY: the contract of the trait.
        unsafe {
            if T::PARTS == 1 {
                let (x, ct, x_bar) = (x.cast(), ct.cast(), x_bar.map_or(null_mut(), |x_bar| x_bar.cast()));
                return Pull { n, frame, forward, rows, x, ct, sums, x_bar }.call();
            }
            let from = frame.add(frame_len(n));
            let (to, bar) = (from.add(2 * n), from.add(4 * n));
            for row in 0..rows {
                split(x.add(row * n), n, from);
                split(ct.add(row * n), n, to);
                Pull { n, frame, forward, rows: 2, x: from, ct: to, sums, x_bar: bar }.call();
                if let Some(x_bar) = x_bar {
                    joined(bar, n, x_bar.add(row * n));
                }
            }
        }
    }

    unsafe fn deal(&self, _k: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, frame: *mut T::Real) {
        let mut bar = |i: usize| bars.real(i).map_or(null_mut(), <[_]>::as_mut_ptr);
        let (start_bar, end_bar) = (bar(0), bar(1));
        // SAFETY: the contract of the trait.
        unsafe { Vectors { n: self.n, frame, sums: sums.as_mut_ptr(), start_bar, end_bar }.call() };
    }
}
