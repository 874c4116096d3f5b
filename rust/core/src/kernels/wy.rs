//! The small matrices of the compact WY form of m reflections, W = I - U T^-1 U^H: T^-1, and L + L^H of their gradients.

use super::{Operand, Product, Triangle, invert_upper};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use crate::scratch::Frame;

/// `ti` (m x m, row stride `pitch`) = T^-1 for T = striu(U^H U) + diag(U^H U) / 2, zeros below the diagonal, for U (n x
/// m) of the given shape. Starts without and ends with a barrier.
///
/// # Safety
/// The arrays exist and do not overlap; `work` is [`super::invert_work`] for m, `scratch` holds the numbers of
/// [`Product::scratch`] (separate for each member); all members call this.
#[allow(clippy::too_many_arguments, reason = "the arrays of one inverse")]
pub unsafe fn inverse<T: Scalar>(
    member: &Member<'_>,
    u: Operand<T>,
    (n, m): (usize, usize),
    shape: Triangle,
    ti: *mut T,
    pitch: usize,
    work: Frame,
    scratch: *mut T::Real,
) {
    let gram = Product::new((m, m, n), u.h(), u, ti, pitch).shapes(shape.t(), shape, Triangle::Upper);
    // SAFETY: T^-1 has m rows; each member changes its own rows between the barriers. The product writes the diagonal
    // and the entries above it.
    unsafe {
        gram.run(member, scratch);
        member.barrier();
        for i in member.share(m, 4) {
            let row = ti.add(i * pitch);
            for j in 0..i {
                *row.add(j) = T::zero();
            }
            let diagonal = row.add(i);
            *diagonal = T::real((*diagonal).re() * T::Real::of(0.5));
        }
        member.barrier();
        invert_upper(member, ti, pitch, m, work, scratch);
    }
}

/// L <- L + L^H for an L whose lower triangle is in memory, with its diagonal halved. No barrier.
///
/// # Safety
/// `l` has m rows with stride `pitch`; no other member changes entries of this member's share.
pub unsafe fn symmetrize<T: Scalar>(member: &Member<'_>, l: *mut T, pitch: usize, m: usize) {
    const BLOCK: usize = 16;
    for i0 in member.share(m, BLOCK).step_by(BLOCK) {
        for j0 in (0..=i0).step_by(BLOCK) {
            for i in i0..(i0 + BLOCK).min(m) {
                // SAFETY: (i, j) and its mirror belong to the owner of row i, i >= j.
                unsafe {
                    for j in j0..(j0 + BLOCK).min(i) {
                        *l.add(j * pitch + i) = (*l.add(i * pitch + j)).conj();
                    }
                    if i0 == j0 {
                        let diagonal = l.add(i * pitch + i);
                        *diagonal = T::real((*diagonal).re());
                    }
                }
            }
        }
    }
}
