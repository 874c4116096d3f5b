//! One matrix, shared by the members of a call: W, and its gradient from W alone in products without transposition,
//!
//! ```text
//! C = W + D,  Z = C (W_bar^H C),  U = V^H = Z D^* / 2,  upper_bar = U_ij - conj(U_ji),  diagonal_bar = Im U_jj,
//! ```
//!
//! because 2 S = W D^* + I = C D^* and V = 2 S^H W_bar D^* S^H.

use super::check::{Limits, probe, probe_norm2};
use super::slabs::Slabs;
use super::triangle::{BLOCK, PackGradient, Unpack};
use super::{Cayley, Last};
use crate::kernels::{Kernel, Operand, Product, Simd, dispatch, inverse_scratch, inverse_shared, invert};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use num_traits::{One, Zero};
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
        dispatch(Unpack {
            upper: view.upper_of(b).as_ptr(),
            diagonal: view.diagonal_of(b).map(<[_]>::as_ptr),
            n,
            rows: rows.clone(),
            out: m,
            pitch,
            norms,
        });
        member.barrier();
        invert(member, m, pitch, n, shared, scratch);
        let last = view.last.fill(b * n, n, scratch.cast::<T>());
        let columns = scratch.add(n * T::PARTS);
        dispatch(Finish { s: m, pitch, w: out, n, rows, last, columns, norms: norms.add(n) });
        member.barrier();
        let sum = |x: *const T::Real, n: usize| (0..n).map(|i| (*x.add(i)).f64()).sum::<f64>();
        let worst = (0..n).map(|i| (*norms.add(n + i)).f64()).fold(0.0, f64::max);
        let probe = sum(norms.add(2 * n), n) / probe_norm2(n);
        limits.pass(worst, (probe - 1.0).abs(), sum(norms, n.div_ceil(BLOCK)))
    }
}

/// Rows of W = (2 S - I) D from S; | ||w_i||^2 - 1 | and |(W D^* z)_i|^2 of each.
struct Finish<T: Scalar> {
    s: *mut T,
    /// Distance of the rows of S.
    pitch: usize,
    w: *mut T,
    n: usize,
    rows: Range<usize>,
    last: Option<*const T>,
    /// Room for 3 n PARTS numbers.
    columns: *mut T::Real,
    /// n deviations, n probes.
    norms: *mut T::Real,
}

impl<T: Scalar> Kernel<T::Real> for Finish<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(self) {
        let Finish { s, pitch, w, n, rows, last, columns, norms } = self;
        // SAFETY: the caller of `forward` vouches for the memory.
        unsafe {
            // per real column: z; what multiplies the column; what multiplies its neighbour (complex D)
            let (z, own, other) = (columns, columns.add(n * T::PARTS), columns.add(2 * n * T::PARTS));
            for j in 0..n {
                let d = last.map_or(T::one(), |d| *d.add(j));
                for part in 0..T::PARTS {
                    let at = j * T::PARTS + part;
                    *z.add(at) = probe(j);
                    *own.add(at) = d.re();
                    *other.add(at) = if part == 0 { -d.im() } else { d.im() };
                }
            }
            let two = S::splat(S::R::of(2.0));
            let live = n * T::PARTS;
            // the sums of a row's lanes, for LANES rows at a time: row r of the transposed block holds lane r of all
            let mut block = ([S::zero(); 16], [S::zero(); 16]);
            for i in rows.clone() {
                let (from, row) = (s.add(i * pitch).cast::<S::R>(), w.add(i * n).cast::<S::R>());
                // 2 (s - 1/2) rounds as 2 s - 1 does
                let diagonal = from.add(i * T::PARTS);
                *diagonal -= S::R::of(0.5);
                let (mut squares, mut probes) = (S::zero(), S::zero());
                for j in (0..live).step_by(S::LANES) {
                    let mut v = S::mul(two, S::load_n(from.add(j), live - j));
                    squares = S::mul_add(v, v, squares);
                    probes = S::mul_add(v, S::load_n(z.add(j), live - j), probes);
                    if last.is_some() {
                        let own = S::mul(v, S::load_n(own.add(j), live - j));
                        v = if T::PARTS == 1 {
                            own
                        } else {
                            S::mul_add(S::swap_pairs(v), S::load_n(other.add(j), live - j), own)
                        };
                    }
                    S::store_n(row.add(j), v, live - j);
                }
                let place = (i - rows.start) % S::LANES;
                (block.0[place], block.1[place]) = (squares, probes);
                if place == S::LANES - 1 || i + 1 == rows.end {
                    let (first, count) = (i - place, place + 1);
                    S::transpose(&mut block.0[..S::LANES]);
                    S::transpose(&mut block.1[..S::LANES]);
                    let mut norm = S::splat(-S::R::one());
                    let mut sum = [S::zero(); 2];
                    for lane in 0..S::LANES {
                        norm = S::add(norm, block.0[lane]);
                        sum[lane % T::PARTS] = S::add(sum[lane % T::PARTS], block.1[lane]);
                    }
                    S::store_n(norms.add(first), S::abs(norm), count);
                    let squared = S::mul_add(sum[0], sum[0], S::mul(sum[1], sum[1]));
                    S::store_n(norms.add(n + first), squared, count);
                }
            }
        }
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

/// Where the gradients of one matrix go.
#[derive(Clone, Copy)]
pub(super) struct Targets<T: Scalar> {
    pub(super) upper: Option<*mut T>,
    pub(super) diagonal: Option<*mut T::Real>,
    pub(super) phases: Option<*mut T::Real>,
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
            dispatch(PackGradient { z, last, n, row, upper: to.upper, diagonal: to.diagonal });
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
