//! One matrix, shared by the members of a call: W, and its gradient from W alone in products without transposition,
//!
//! ```text
//! C = W + D,  Z = C (W_bar^H C),  U = V^H = Z D^* / 2,  upper_bar = U_ij - conj(U_ji),  diagonal_bar = Im U_jj,
//! ```
//!
//! because 2 S = W D^* + I = C D^* and V = 2 S^H W_bar D^* S^H.

use super::{Cayley, Last};
use crate::kernels::{Operand, Product, inverse_scratch, inverse_shared, invert};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use isometry_kernels::cayley::triangle::BLOCK;
use isometry_kernels::cayley::{Finish, Limits, PackGradient, Slabs, Targets, Unpack, probe_norm2};
use num_traits::Zero;
use std::ops::Range;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Distance of the rows of S: whole cache lines.
fn pitch<T: Scalar>(n: usize) -> usize {
    n.next_multiple_of(LINE / size_of::<T>())
}

/// Elements shared by the members for [`forward`]: S, the inverse's, and three measures of each row.
pub(super) fn forward_shared<T: Scalar>(n: usize) -> usize {
    n * pitch::<T>(n) + inverse_shared(n) + 3 * n
}

/// Real numbers of each member for [`forward`].
pub(super) fn forward_scratch<T: Scalar>(n: usize) -> usize {
    inverse_scratch::<T>(n).max(4 * n * T::PARTS)
}

/// Writes W of matrix b to `out`; false if it fails the check. All members return the same.
///
/// # Safety
/// n n elements exist at `out`, [`forward_shared`] at `shared`, [`forward_scratch`] numbers at `scratch` (each member its
/// own); all members call it with the same matrix.
pub(super) unsafe fn forward<T: Scalar>(
    member: &Member<'_>,
    view: &Cayley<'_, T>,
    b: usize,
    out: *mut T,
    shared: *mut T,
    scratch: *mut T::Real,
    limits: Limits,
) -> bool {
    let n = view.n;
    let rows = member.share(n, BLOCK);
    // SAFETY: the members write different rows; barriers stand before they are read.
    unsafe {
        let pitch = pitch::<T>(n);
        // where W has whole lines S takes its place: fresh memory would cost more than the inverse gains by alignment
        let fits = pitch == n && out.cast::<u8>().align_offset(LINE) == 0;
        let m = if fits { out } else { shared };
        let shared = shared.wrapping_add(n * pitch);
        let norms = shared.wrapping_add(inverse_shared(n)).cast::<T::Real>();
        Unpack {
            upper: view.upper_of(b).as_ptr(),
            diagonal: view.diagonal_of(b).map(<[_]>::as_ptr),
            n,
            rows: rows.clone(),
            out: m,
            pitch,
            norms,
        }
        .call();
        member.barrier();
        invert(member, m, pitch, n, shared, scratch);
        let last = view.last.fill(b * n, n, scratch.cast::<T>());
        let columns = scratch.add(n * T::PARTS);
        Finish { s: m, pitch, w: out, n, rows, last, columns, norms: norms.add(n) }.call();
        member.barrier();
        let sum = |x: *const T::Real, n: usize| (0..n).map(|i| (*x.add(i)).f64()).sum::<f64>();
        let worst = (0..n).map(|i| (*norms.add(n + i)).f64()).fold(0.0, f64::max);
        let probe = sum(norms.add(2 * n), n) / probe_norm2(n);
        limits.pass(worst, (probe - 1.0).abs(), sum(norms, n.div_ceil(BLOCK)))
    }
}

/// Elements shared by up to `threads` members for [`backward`]: Y and Z.
pub(super) fn backward_shared<T: Scalar>(n: usize, threads: usize) -> usize {
    (1..=threads).map(|count| 2 * count * Slabs::<T>::len(n, count)).max().unwrap_or(0)
}

/// Real numbers of each member for [`backward`].
pub(super) fn backward_scratch<T: Scalar>(n: usize) -> usize {
    Product::<T>::scratch(n, n) + n * T::PARTS
}

/// The gradients of matrix b of `last` from its W and W_bar; ends without a barrier.
///
/// # Safety
/// n n elements exist at `w` and `ct`, the targets and [`backward_shared`] elements at `shared`, [`backward_scratch`]
/// numbers at `scratch` (each member its own); all members call it with the same matrix.
pub(super) unsafe fn backward<T: Scalar>(
    member: &Member<'_>,
    (w, ct): (*const T, *const T),
    (last, b, n): (Last<'_, T::Real>, usize, usize),
    to: Targets<T>,
    shared: *mut T,
    scratch: *mut T::Real,
) {
    // SAFETY: the members write different rows, columns or panels; barriers stand before they are read.
    unsafe {
        if let Some(phases) = to.phases {
            // theta_bar_j = sum_i Im(W_bar_ij conj(W_ij))
            for j in member.share(n, BLOCK) {
                *phases.add(j) = T::Real::zero();
            }
            for i in 0..n {
                for j in member.share(n, BLOCK) {
                    let (x, y) = (*ct.add(i * n + j), *w.add(i * n + j));
                    *phases.add(j) += x.im() * y.re() - x.re() * y.im();
                }
            }
        }
        if to.upper.is_none() && to.diagonal.is_none() {
            return;
        }
        let z = Slabs::new(shared, n, member.count);
        let y = shared.wrapping_add((member.count + member.id) * Slabs::<T>::len(n, member.count));
        let last = last.fill(b * n, n, scratch.cast::<T>());
        let scratch = scratch.add(n * T::PARTS);
        let own = z.columns(member.id);
        if !own.is_empty() {
            Member::alone(|solo| congruence(solo, (w, ct), (last, n), own.clone(), (y, z), scratch));
        }
        member.barrier();
        for row in (member.id * BLOCK..n).step_by(BLOCK * member.count) {
            PackGradient { z, last, n, row, upper: to.upper, diagonal: to.diagonal }.call();
        }
    }
}

/// The given columns of Z = W Y + D Y and of Y = W_bar^H (W + D), which lie in slabs of their own.
///
/// # Safety
/// As [`backward`]; the columns are those of one slab of Z, and Y has room for them.
unsafe fn congruence<T: Scalar>(
    solo: &Member<'_>,
    (w, ct): (*const T, *const T),
    (last, n): (Option<*const T>, usize),
    columns: Range<usize>,
    (y, z): (*mut T, Slabs<T>),
    scratch: *mut T::Real,
) {
    let (pitch, width, z) = (z.width(), columns.len(), z.at(0, columns.start));
    let (ay, az) = (Operand::new(y.cast_const(), pitch), Operand::new(z.cast_const(), pitch));
    // SAFETY: the caller vouches for the memory; nobody else touches these slabs.
    unsafe {
        // the columns of W + D, where those of Z will stand
        for i in 0..n {
            std::ptr::copy_nonoverlapping(w.add(i * n + columns.start), z.add(i * pitch), width);
        }
        for j in columns.clone() {
            *z.add(j * pitch + j - columns.start) += last.map_or(T::one(), |d| *d.add(j));
        }
        Product::new((n, width, n), Operand::new(ct, n).h(), az, y, pitch).run(solo, scratch);
        let product = Product::new((n, width, n), Operand::new(w, n), ay, z, pitch);
        let Some(d) = last else { return product.onto(y, pitch).run(solo, scratch) };
        for i in 0..n {
            for j in i * pitch..i * pitch + width {
                *z.add(j) = *d.add(i) * *y.add(j);
            }
        }
        product.add().run(solo, scratch);
    }
}
