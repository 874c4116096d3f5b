//! The permutation with its neighbours, on a group of rows, a row per lane.
//!
//! # Safety
//! Of both functions: buffers have the elements of the plan, tables n pairs; the permutation has indices of elements; the caller has
//! the instruction set.

use crate::simd::Simd;
use crate::transform::{Pair, get, less, set, turned};

/// D P (z - w s)
#[inline(always)]
pub(super) unsafe fn permuted<S: Simd>(
    z: *const S::R,
    (w, s): (*const S::R, Pair<S>),
    permutation: *const usize,
    diagonal: *const S::R,
    to: *mut S::R,
    n: usize,
) {
    for i in 0..n {
        // SAFETY: see the module.
        unsafe {
            let j = *permutation.add(i);
            set::<S>(to, i, turned::<S>(less::<S>(get::<S>(z, j), w, j, s), diagonal, i, false));
        }
    }
}

/// P^H D^H z
#[inline(always)]
pub(super) unsafe fn scattered<S: Simd>(
    z: *const S::R,
    permutation: *const usize,
    diagonal: *const S::R,
    to: *mut S::R,
    n: usize,
) {
    for i in 0..n {
        // SAFETY: see the module.
        unsafe { set::<S>(to, *permutation.add(i), turned::<S>(get::<S>(z, i), diagonal, i, true)) };
    }
}
