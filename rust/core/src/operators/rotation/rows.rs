//! Rows through a rotation: the kernels on real rows, complex rows as two real ones each.

use super::Rotation;
use crate::argument::Bar;
use crate::operator::Side;
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::sizes::work;
use isometry_kernels::rotation::{Frame, Pull, Turn, Vectors, frame_len};
use std::ptr::null_mut;

/// Real and imaginary parts of a row, one behind the other.
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

impl<T: Scalar> Rotation<'_, T> {
    /// Numbers that a member needs: a frame, and the parts of three complex rows.
    pub(super) fn room(&self) -> usize {
        let parts = if T::PARTS == 1 { 0 } else { work(&[6, self.n]) };
        work(&[2, self.n]).saturating_add(parts + 4)
    }

    /// Writes the frame of pair b.
    ///
    /// # Safety
    /// The pair exists; `frame` has its numbers.
    pub(super) unsafe fn frame(&self, b: usize, frame: *mut T::Real) {
        let n = self.n;
        let (start, end) = (self.start[b * n..].as_ptr(), self.end[b * n..].as_ptr());
        // SAFETY: the contract above.
        unsafe { Frame { n, start, end, frame }.call() };
    }

    /// R x or R^T x of rows, which may be `out`.
    ///
    /// # Safety
    /// The rows exist; `room` has the numbers of [`Self::room`] behind the frame.
    pub(super) unsafe fn turn_rows(
        &self,
        frame: *const T::Real,
        x: *const T,
        rows: usize,
        side: Side,
        out: *mut T,
        room: *mut T::Real,
    ) {
        let (n, forward) = (self.n, side == Side::Forward);
        // SAFETY: the contract above.
        unsafe {
            if T::PARTS == 1 {
                return Turn { n, frame, forward, rows, x: x.cast(), out: out.cast() }.call();
            }
            for row in 0..rows {
                split(x.add(row * n), n, room);
                Turn { n, frame, forward, rows: 2, x: room, out: room }.call();
                joined(room, n, out.add(row * n));
            }
        }
    }

    /// Adds the gradient of rows to `sums` and writes x_bar; where one of the two is null it is not computed.
    ///
    /// # Safety
    /// As for [`Self::turn_rows`].
    #[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
    pub(super) unsafe fn pull_turned(
        &self,
        frame: *const T::Real,
        (x, ct): (*const T, *const T),
        rows: usize,
        side: Side,
        sums: *mut T::Real,
        x_bar: *mut T,
        room: *mut T::Real,
    ) {
        let (n, forward) = (self.n, side == Side::Forward);
        // SAFETY: the contract above.
        unsafe {
            if T::PARTS == 1 {
                let (x, ct, x_bar) = (x.cast(), ct.cast(), x_bar.cast());
                return Pull { n, frame, forward, rows, x, ct, sums, x_bar }.call();
            }
            let (from, to, bar) = (room, room.add(2 * n), room.add(4 * n));
            for row in 0..rows {
                split(x.add(row * n), n, from);
                split(ct.add(row * n), n, to);
                Pull { n, frame, forward, rows: 2, x: from, ct: to, sums, x_bar: bar }.call();
                if !x_bar.is_null() {
                    joined(bar, n, x_bar.add(row * n));
                }
            }
        }
    }

    /// The gradients of both vectors from the sums, which are changed; null where not wanted.
    ///
    /// # Safety
    /// The arrays have their sizes.
    pub(super) unsafe fn vectors(&self, frame: *const T::Real, sums: *mut T::Real, bars: [*mut T::Real; 2]) {
        let [start_bar, end_bar] = bars;
        // SAFETY: the contract above.
        unsafe { Vectors { n: self.n, frame, sums, start_bar, end_bar }.call() };
    }
}

impl<T: Scalar> Rows<T> for Rotation<'_, T> {
    fn size(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn work(&self) -> usize {
        work(&[4, self.n, T::PARTS])
    }

    fn scratch(&self, _rows: usize) -> usize {
        self.room()
    }

    fn sums(&self) -> usize {
        work(&[2, self.n])
    }

    fn deal(&self, sums: &[T::Real], bars: &mut [Bar<'_, T>]) {
        let mut frame = vec![<T::Real as num_traits::Zero>::zero(); frame_len(self.n)];
        let mut sums = sums.to_vec();
        let mut room = |i: usize| bars.get_mut(i).and_then(|bar| bar.again().real()).map_or(null_mut(), <[_]>::as_mut_ptr);
        let bars = [room(0), room(1)];
        // SAFETY: all have n numbers; the gradients were checked.
        unsafe {
            self.frame(0, frame.as_mut_ptr());
            self.vectors(frame.as_ptr(), sums.as_mut_ptr(), bars);
        }
    }

    unsafe fn apply_rows(&self, x: *const T, rows: usize, side: Side, out: *mut T, scratch: *mut T::Real) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.frame(0, scratch);
            self.turn_rows(scratch, x, rows, side, out, scratch.add(frame_len(self.n)));
        }
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
        // SAFETY: the contract of the trait.
        unsafe {
            self.frame(0, scratch);
            let room = scratch.add(frame_len(self.n));
            self.pull_turned(scratch, (x, ct), rows, side, sums, x_bar.unwrap_or(null_mut()), room);
        }
    }
}
