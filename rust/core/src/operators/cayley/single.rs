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
use crate::kernels::{InverseOwn, Kernel, Operand, Product, Simd, dispatch, inverse_shared, invert};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Frame, Region, Regions};
use num_traits::{One, Zero};
use std::ops::Range;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Distance of the rows of S: whole cache lines.
fn pitch<T: Scalar>(n: usize) -> usize {
    n.next_multiple_of(LINE / size_of::<T>())
}

/// What the members of [`forward`] share.
#[derive(Clone, Copy)]
pub(super) struct ForwardShared<T: Scalar> {
    s: Region<T>,
    inverse: Frame,
    /// Squared norm of the triangle in each block of rows.
    sizes: Region<T::Real>,
    /// n deviations, n probes.
    norms: Region<T::Real>,
}

impl<T: Scalar> ForwardShared<T> {
    /// For n x n matrices.
    pub(super) fn carve(arena: &mut Arena, n: usize) -> Self {
        ForwardShared {
            s: arena.take(&[n, pitch::<T>(n)]),
            inverse: inverse_shared::<T>(arena, n),
            sizes: arena.take(&[n.div_ceil(BLOCK)]),
            norms: arena.take(&[2, n]),
        }
    }
}

/// Memory of each member of [`forward`], to be cut for its inverse first, then for what finishes W.
pub(super) fn forward_own<T: Scalar>(arena: &mut Arena, n: usize) {
    arena.reusing(|arena| InverseOwn::<T>::carve(arena, n));
    arena.reusing(|arena| finishing::<T>(arena, n));
}

/// The diagonal of D, and what a row of W is multiplied by: three numbers per real column.
fn finishing<T: Scalar>(arena: &mut Arena, n: usize) -> (Region<T>, Region<T::Real>) {
    (arena.take(&[n]), arena.take(&[3, n, T::PARTS]))
}

/// Writes W of matrix b to `out`; false if it fails the check. All members return the same.
///
/// # Safety
/// n n elements exist at `out`; `shared` is the same for all members, `own` is for [`forward_own`], each member's own, both for n; all
/// members call it with the same matrix.
pub(super) unsafe fn forward<T: Scalar>(
    member: &Member<'_>,
    view: &Cayley<'_, T>,
    b: usize,
    out: *mut T,
    shared: ForwardShared<T>,
    own: Frame,
    limits: Limits,
) -> bool {
    let n = view.n;
    let rows = member.share(n, BLOCK);
    // SAFETY: the members write different rows; barriers stand before they are read.
    unsafe {
        let pitch = pitch::<T>(n);
        // where W has whole lines S takes its place: fresh memory would cost more than the inverse gains by alignment
        let fits = pitch == n && out.cast::<u8>().align_offset(LINE) == 0;
        let m = if fits { out } else { shared.s.ptr() };
        let (sizes, norms) = (shared.sizes.ptr(), shared.norms.ptr());
        dispatch(Unpack {
            upper: view.upper_of(b).as_ptr(),
            diagonal: view.diagonal_of(b).map(<[_]>::as_ptr),
            n,
            rows: rows.clone(),
            out: m,
            pitch,
            norms: sizes,
        });
        member.barrier();
        invert(member, m, pitch, n, shared.inverse, InverseOwn::carve(&mut own.arena(), n));
        let (last, columns) = finishing::<T>(&mut own.arena(), n);
        let last = view.last.fill(b * n, n, last.ptr());
        dispatch(Finish { s: m, pitch, w: out, n, rows, last, columns: columns.ptr(), norms });
        member.barrier();
        let sum = |x: *const T::Real, n: usize| (0..n).map(|i| (*x.add(i)).f64()).sum::<f64>();
        let worst = (0..n).map(|i| (*norms.add(i)).f64()).fold(0.0, f64::max);
        let probe = sum(norms.add(n), n) / probe_norm2(n);
        limits.pass(worst, (probe - 1.0).abs(), sum(sizes, n.div_ceil(BLOCK)))
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

/// What up to `threads` members of [`backward`] share: Z and Y, in as many slabs as members come. Nothing for no member.
pub(super) fn backward_shared<T: Scalar>(arena: &mut Arena, n: usize, threads: usize) -> Frame {
    arena.frame(|arena| {
        for count in 1..=threads {
            arena.reusing(|arena| slabs::<T>(arena, n, count));
        }
    })
}

/// Z, and Y of each member.
fn slabs<T>(arena: &mut Arena, n: usize, count: usize) -> (Slabs<T>, Regions<T>) {
    let width = Slabs::<T>::width_of(n, count);
    (Slabs::new(arena.take(&[count, n, width]), n, width), arena.regions(count, &[n, width]))
}

/// Memory of each member of [`backward`].
#[derive(Clone, Copy)]
pub(super) struct BackwardOwn<T: Scalar> {
    last: Region<T>,
    scratch: Region<T::Real>,
}

impl<T: Scalar> BackwardOwn<T> {
    /// For n x n matrices.
    pub(super) fn carve(arena: &mut Arena, n: usize) -> Self {
        BackwardOwn { last: arena.take(&[n]), scratch: arena.take(&[Product::<T>::scratch(n, n)]) }
    }
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
/// n n elements exist at `w` and `ct`, and the targets; `shared` is [`backward_shared`] for all members and the same for them,
/// `own` each member's own, both for n; all members call it with the same matrix.
pub(super) unsafe fn backward<T: Scalar>(
    member: &Member<'_>,
    (w, ct): (*const T, *const T),
    (last, b, n): (Last<'_, T::Real>, usize, usize),
    to: Targets<T>,
    shared: Frame,
    own: BackwardOwn<T>,
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
        let (z, y) = slabs(&mut shared.arena(), n, member.count);
        let (y, scratch) = (y.of(member.id).ptr(), own.scratch.ptr());
        let last = last.fill(b * n, n, own.last.ptr());
        let columns = z.columns(member.id);
        if !columns.is_empty() {
            Member::alone(|solo| congruence(solo, (w, ct), (last, n), columns.clone(), (y, z), scratch));
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
/// n n elements exist at `w` and `ct`, n factors where there are any, the numbers of [`Product::scratch`] at `scratch`; the
/// columns are those of one slab of Z, Y has room for them, and nobody else touches either.
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
    // SAFETY: the contract above.
    unsafe {
        // the columns of W + D, where those of Z will stand; the last slab is filled up, since whole vectors are read later
        for i in 0..n {
            std::ptr::copy_nonoverlapping(w.add(i * n + columns.start), z.add(i * pitch), width);
            z.add(i * pitch + width).write_bytes(0, pitch - width);
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
