//! X = T^-1 for an upper triangular T, in place: diagonal blocks of [`BASE`] are inverted by elimination, then adjacent
//! ones are joined, 64 -> 128 -> 256 -> ..., by
//!
//! ```text
//! [T11 T12]^-1   [X11  -X11 T12 X22]
//! [ 0  T22]    = [ 0        X22    ]
//! ```
//!
//! All other work is in products.

use super::{Operand, Product, Triangle};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame};
use isometry_kernels::upper::{BASE, Upper};

/// The pairs of blocks to join, of w rows each (the second may have fewer, at least one): first row, rows of the second.
fn pairs(n: usize, w: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n.saturating_sub(w)).step_by(2 * w).map(move |b| (b, w.min(n - b - w)))
}

/// The block sizes at which pairs are joined.
fn widths(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(BASE), |w| w.checked_mul(2)).take_while(move |&w| w < n)
}

/// Room for [`invert_upper`]: T12 X22 of every pair.
pub fn invert_work<T: Scalar>(arena: &mut Arena, n: usize) -> Frame {
    let products = |arena: &mut Arena, w| {
        for (_, n2) in pairs(n, w) {
            arena.take::<T>(&[w, n2]);
        }
    };
    arena.frame(|arena| widths(n).for_each(|w| arena.reusing(|arena| products(arena, w))))
}

/// Inverts T (n x n, row-major with row stride `stride`, zeros below the diagonal in memory). Ends with a barrier; the
/// caller must place one before.
///
/// # Safety
/// The matrix exists in memory; all members of the call run this with the same arguments except their own `scratch`
/// ([`Product::scratch`] for n x n); `work` is [`invert_work`] for n.
pub unsafe fn invert_upper<T: Scalar>(
    member: &Member<'_>,
    t: *mut T,
    stride: usize,
    n: usize,
    work: Frame,
    scratch: *mut T::Real,
) {
    let block = |i: usize, j: usize| t.wrapping_add(i * stride + j);
    for (q, b) in (0..n).step_by(BASE).enumerate() {
        if q % member.count == member.id {
            // SAFETY: the block lies inside T and belongs to this member.
            unsafe { Upper { t: block(b, b), stride, n: BASE.min(n - b) }.call() };
        }
    }
    member.barrier();
    for w in widths(n) {
        let mut arena = work.arena();
        for (b, n2) in pairs(n, w) {
            let (t12, x22) =
                (Operand::new(block(b, b + w), stride), Operand::new(block(b + w, b + w), stride));
            let x = Product::new((w, n2, n2), t12, x22, arena.take(&[w, n2]).ptr(), n2).alpha(-1.0);
            // SAFETY: blocks of T and `work` are disjoint, and so are the areas of different pairs.
            unsafe { x.shapes(Triangle::Full, Triangle::Upper, Triangle::Full).run(member, scratch) };
        }
        member.barrier();
        let mut arena = work.arena();
        for (b, n2) in pairs(n, w) {
            let x = Operand::new(arena.take::<T>(&[w, n2]).ptr().cast_const(), n2);
            let x11 = Operand::new(block(b, b).cast_const(), stride);
            let t12 = Product::new((w, n2, w), x11, x, block(b, b + w), stride);
            // SAFETY: as above; a barrier separates writes to `work` from its reads.
            unsafe { t12.shapes(Triangle::Upper, Triangle::Full, Triangle::Full).run(member, scratch) };
        }
        member.barrier();
    }
}
