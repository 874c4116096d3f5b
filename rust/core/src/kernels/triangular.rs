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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{self, Shared};
    use crate::scalar::Real;
    use crate::scratch::Scratch;
    use crate::testing::{Random, every_type};

    fn check<T: Scalar>(n: usize, threads: usize) {
        let stride = n + 3;
        let mut random = Random::new(n as u64);
        // a dominant diagonal keeps the inverse near 1
        let mut t = vec![T::default(); n * stride];
        for i in 0..n {
            for j in i..n {
                let small: T = random.scalar(1.0);
                t[i * stride + j] = if i == j { small + T::real(T::Real::of(4.0)) } else { small };
            }
        }
        let before = t.clone();
        let at = Shared(t.as_mut_ptr());
        let room = |arena: &mut Arena| {
            (invert_work::<T>(arena, n), arena.regions::<T::Real>(threads, &[Product::<T>::scratch(n, n)]))
        };
        let room = Scratch::new(room).unwrap();
        parallel::run(threads, &|member| {
            let (work, scratch) = (room.0, room.1.of(member.id));
            // SAFETY: the matrix and the scratch have the required sizes.
            unsafe { invert_upper(member, at.at(0), stride, n, work, scratch.ptr()) };
        });
        for i in 0..n {
            for j in 0..n {
                let mut sum = T::Wide::default();
                let mut size = 1.0;
                for k in 0..n {
                    let term = t[i * stride + k].widen() * before[k * stride + j].widen();
                    sum += term;
                    size += term.modulus();
                }
                let unit = if i == j { 1.0 } else { 0.0 };
                let error = (sum - T::Wide::real(unit)).modulus();
                assert!(error <= 40.0 * T::Real::EPS.f64() * size, "n {n} ({i}, {j}): {error:e} of {size:e}");
            }
            assert!(t[i * stride + n..(i + 1) * stride].iter().all(|x| *x == T::default()));
        }
    }

    #[test]
    fn an_inverse_times_its_matrix_is_the_identity() {
        for n in [0, 1, 2, 7, 16, 17, 63, 64, 65, 130, 200] {
            for threads in [1, 2] {
                every_type!(check(n, threads));
            }
        }
    }
}
