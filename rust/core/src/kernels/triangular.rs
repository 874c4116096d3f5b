//! X = T^-1 for an upper triangular T, in place: diagonal blocks of [`BASE`] are inverted by elimination, then neighbours are
//! joined, 64 -> 128 -> 256 -> ..., by
//!
//! ```text
//! [T11 T12]^-1   [X11  -X11 T12 X22]
//! [ 0  T22]    = [ 0        X22    ]
//! ```
//!
//! All but the diagonal blocks is products.

use super::{Operand, Product, Triangle};
use crate::parallel::Member;
use crate::scalar::Scalar;
use isometry_kernels::upper::{BASE, Upper};

/// Elements of `work` that [`invert_upper`] needs.
pub fn invert_work(n: usize) -> usize {
    if n > BASE { n * n / 4 } else { 0 }
}

/// Inverts T (n x n, row-major with distance `stride`, zeros below the diagonal in memory). Ends with a barrier; the
/// caller puts one before.
///
/// # Safety
/// The matrix exists in memory; all members of the call come here with the same arguments but their own `scratch`
/// ([`Product::scratch`] for n x n); `work` holds [`invert_work`] elements.
pub unsafe fn invert_upper<T: Scalar>(
    member: &Member<'_>,
    t: *mut T,
    stride: usize,
    n: usize,
    work: *mut T,
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
    let mut w = BASE;
    while w < n {
        let pairs = || (0..n - w).step_by(2 * w).map(|b| (b, w.min(n - b - w)));
        for (b, n2) in pairs() {
            let (t12, x22) =
                (Operand::new(block(b, b + w), stride), Operand::new(block(b + w, b + w), stride));
            let x = Product::new((w, n2, n2), t12, x22, work.wrapping_add(b / 2 * w), n2).alpha(-1.0);
            // SAFETY: blocks of T and of `work` are apart; the areas of different pairs do not meet.
            unsafe { x.shapes(Triangle::Full, Triangle::Upper, Triangle::Full).run(member, scratch) };
        }
        member.barrier();
        for (b, n2) in pairs() {
            let (x11, x) =
                (Operand::new(block(b, b), stride), Operand::new(work.wrapping_add(b / 2 * w), n2));
            let t12 = Product::new((w, n2, w), x11, x, block(b, b + w), stride);
            // SAFETY: as above.
            unsafe { t12.shapes(Triangle::Upper, Triangle::Full, Triangle::Full).run(member, scratch) };
        }
        member.barrier();
        w *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Buffer;
    use crate::parallel::{self, Shared};
    use crate::scalar::{Real, c32, c64};

    fn check<T: Scalar>(n: usize, threads: usize) {
        let stride = n + 3;
        let mut seed = 88172645463325252u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            T::Real::of((seed >> 40) as f64 / (1u64 << 23) as f64 - 1.0)
        };
        // a dominant diagonal keeps the inverse near 1
        let mut t = vec![T::default(); n * stride];
        for i in 0..n {
            for j in i..n {
                let small = T::new(next(), next());
                t[i * stride + j] = if i == j { small + T::real(T::Real::of(4.0)) } else { small };
            }
        }
        let before = t.clone();
        let at = Shared(t.as_mut_ptr());
        let work = Buffer::<T>::scratch(invert_work(n));
        let work = Shared(work.ptr());
        parallel::run(threads, &|member| {
            let scratch = Buffer::<T::Real>::scratch(Product::<T>::scratch(n, n));
            // SAFETY: the matrix and the scratch have the sizes asked for.
            unsafe { invert_upper(member, at.at(0), stride, n, work.at(0), scratch.ptr()) };
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
                check::<f32>(n, threads);
                check::<f64>(n, threads);
                check::<c32>(n, threads);
                check::<c64>(n, threads);
            }
        }
    }
}
