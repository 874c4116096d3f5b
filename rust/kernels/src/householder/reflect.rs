//! One reflection of a matrix from the left.

use crate::dispatch::kernel;
use crate::scalar::Real;

/// R[k:, k:end] <- R - 2 u (u^H R) for a unit vector u that is zero above row k.
///
/// # Safety
/// end is at most n; r holds n x n elements, u and `row` n each; they do not overlap.
pub struct Reflect<T> {
    /// R
    pub r: *mut T,
    /// u
    pub u: *const T,
    /// Scratch.
    pub row: *mut T,
    /// n
    pub n: usize,
    /// k
    pub k: usize,
    /// The column behind the last.
    pub end: usize,
}

kernel!(Reflect::<T>, |own| {
    let Reflect { n, k, end, .. } = *own;
    // SAFETY: r, u and `row` have the sizes of `Reflect` and do not overlap.
    let (r, u, row) = unsafe {
        (
            std::slice::from_raw_parts_mut(own.r, n * n),
            std::slice::from_raw_parts(own.u, n),
            std::slice::from_raw_parts_mut(own.row, n),
        )
    };
    row.fill(T::zero());
    for i in k..n {
        let f = u[i].conj();
        for (sum, x) in row[k..end].iter_mut().zip(&r[i * n + k..i * n + end]) {
            *sum += f * *x;
        }
    }
    for i in k..n {
        let f = u[i].scale(T::Real::of(2.0));
        for (x, y) in r[i * n + k..i * n + end].iter_mut().zip(&row[k..end]) {
            *x -= f * *y;
        }
    }
});
