//! One matrix per lane: the kernels for a group of consecutive matrices, on the arrays of a batch.

use super::{Cayley, Last};
use crate::scalar::Scalar;
use isometry_kernels::cayley::group::{self, Backward, Forward, MOST};
use isometry_kernels::cayley::{Limits, Targets};

/// Real numbers of scratch for one group, forward or backward.
pub(super) fn scratch<T: Scalar>(n: usize) -> usize {
    MOST * T::PARTS * n + group::scratch::<T>(n)
}

/// Writes W of matrices `first..first + count` (at most one per lane) to `out`; bit b of the result is set if matrix
/// first + b fails the check.
///
/// # Safety
/// `out` has count n n elements, `scratch` the numbers of [`scratch`].
pub(super) unsafe fn forward<T: Scalar>(
    view: &Cayley<'_, T>,
    (first, count): (usize, usize),
    out: *mut T,
    scratch: *mut T::Real,
    limits: Limits,
) -> u32 {
    let n = view.n;
    // SAFETY: the view holds the matrices, `scratch` the factors and the kernel's workspace.
    unsafe {
        Forward {
            upper: view.upper_of(first).as_ptr(),
            diagonal: view.diagonal_of(first).map(<[_]>::as_ptr),
            last: view.last.fill(first, count, n, scratch.cast::<T>()),
            n,
            count,
            out,
            scratch: scratch.add(MOST * T::PARTS * n),
            limits,
        }
        .call()
    }
}

/// The gradients of matrices `first..first + count` from their W and W_bar at `w` and `ct`.
///
/// # Safety
/// `w` and `ct` have count n n elements, the targets `count` matrices, `scratch` the numbers of [`scratch`].
pub(super) unsafe fn backward<T: Scalar>(
    (w, ct): (*const T, *const T),
    (last, n): (Last<'_, T::Real>, usize),
    (first, count): (usize, usize),
    to: Targets<T>,
    scratch: *mut T::Real,
) {
    // SAFETY: the arrays hold the matrices, `scratch` the factors and the kernel's workspace.
    unsafe {
        let last = last.fill(first, count, n, scratch.cast::<T>());
        let scratch = scratch.add(MOST * T::PARTS * n);
        Backward { w, ct, last, n, count, to, scratch }.call();
    }
}
