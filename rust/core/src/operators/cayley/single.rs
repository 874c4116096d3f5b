//! One matrix, shared by the members of a call: W, and its gradient from W alone by products without transposition,
//!
//! ```text
//! C = W + D,  Z = C (W_bar^H C),  U = V^H = Z D^* / 2,  upper_bar = U_ij - conj(U_ji),  diagonal_bar = Im U_jj,
//! ```
//!
//! because 2 S = W D^* + I = C D^* and V = 2 S^H W_bar D^* S^H.

use super::{Cayley, Last};
use crate::batch::Batch;
use crate::kernels::{InverseOwn, Operand, Product, inverse_shared, invert};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Frame, Region, Regions};
use crate::sizes::work;
use isometry_kernels::cayley::triangle::BLOCK;
use isometry_kernels::cayley::{Finish, Limits, PackGradient, Slabs, Targets, Unpack, probe_norm2};
use num_traits::Zero;
use std::ops::Range;

/// Barriers of a matrix that several members compute: a dozen, counted twice because the stages in between
/// are divided unevenly and members wait.
const BARRIERS: usize = 25;

/// `count` matrices to compute.
pub(super) fn batch_of<T: Scalar>(count: usize, n: usize) -> Batch {
    Batch::new::<T>(count, work(&[n, n, n]), BARRIERS)
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Row stride of S: whole cache lines.
fn pitch<T: Scalar>(n: usize) -> usize {
    n.next_multiple_of(LINE / size_of::<T>())
}

/// What the members of [`forward`] share.
#[derive(Clone, Copy)]
pub(super) struct ForwardShared<T: Scalar> {
    s: Region<T>,
    inverse: Frame,
    /// Squared norm of the triangle, per block of rows.
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

/// Memory of each member of [`forward`], carved for its inverse first, then for the epilogue of W.
pub(super) fn forward_own<T: Scalar>(arena: &mut Arena, n: usize) {
    arena.reusing(|arena| InverseOwn::<T>::carve(arena, n));
    arena.reusing(|arena| finishing::<T>(arena, n));
}

/// The diagonal of D, and the factors of a row of W: three numbers per real column.
fn finishing<T: Scalar>(arena: &mut Arena, n: usize) -> (Region<T>, Region<T::Real>) {
    (arena.take(&[n]), arena.take(&[3, n, T::PARTS]))
}

/// Writes W of matrix b to `out`; false if it fails the check, on all members alike.
///
/// # Safety
/// `out` has n n elements; `shared` is common to all members, `own` ([`forward_own`]) is separate for each, both for n;
/// all members call this with the same matrix.
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
    // SAFETY: members write disjoint rows; barriers separate writes from reads by other members.
    unsafe {
        let pitch = pitch::<T>(n);
        // if the rows of W are whole cache lines S is stored there: fresh memory costs more than alignment gains
        let fits = pitch == n && out.cast::<u8>().align_offset(LINE) == 0;
        let m = if fits { out } else { shared.s.ptr() };
        let (sizes, norms) = (shared.sizes.ptr(), shared.norms.ptr());
        Unpack {
            upper: view.upper_of(b).as_ptr(),
            diagonal: view.diagonal_of(b).map(<[_]>::as_ptr),
            n,
            rows: rows.clone(),
            out: m,
            pitch,
            norms: sizes,
        }
        .call();
        member.barrier();
        invert(member, m, pitch, n, shared.inverse, InverseOwn::carve(&mut own.arena(), n));
        let (last, columns) = finishing::<T>(&mut own.arena(), n);
        let last = view.last.fill(b, 1, n, last.ptr());
        Finish { s: m, pitch, w: out, n, rows, last, columns: columns.ptr(), norms }.call();
        member.barrier();
        let sum = |x: *const T::Real, n: usize| (0..n).map(|i| (*x.add(i)).f64()).sum::<f64>();
        let worst = (0..n).map(|i| (*norms.add(i)).f64()).fold(0.0, f64::max);
        let probe = sum(norms.add(n), n) / probe_norm2(n);
        limits.pass(worst, (probe - 1.0).abs(), sum(sizes, n.div_ceil(BLOCK)))
    }
}

/// Shared by up to `threads` members of [`backward`]: Z and Y, in as many slabs as there are members. Empty for none.
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
    (Slabs::new(arena.take(&[count, n, width]).ptr(), n, width), arena.regions(count, &[n, width]))
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

/// The gradients of matrix b of `last` from its W and W_bar; does not end with a barrier.
///
/// # Safety
/// `w`, `ct` and the targets have n n elements; `shared` ([`backward_shared`]) is common to all members, `own` separate
/// for each, both for n; all members call this with the same matrix.
pub(super) unsafe fn backward<T: Scalar>(
    member: &Member<'_>,
    (w, ct): (*const T, *const T),
    (last, b, n): (Last<'_, T::Real>, usize, usize),
    to: Targets<T>,
    shared: Frame,
    own: BackwardOwn<T>,
) {
    // SAFETY: members write disjoint rows, columns or panels; barriers separate writes from reads by other members.
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
        let last = last.fill(b, 1, n, own.last.ptr());
        let columns = z.columns(member.id);
        if !columns.is_empty() {
            Member::alone(|solo| congruence(solo, (w, ct), (last, n), columns.clone(), (y, z), scratch));
        }
        member.barrier();
        for row in (member.id * BLOCK..n).step_by(BLOCK * member.count) {
            PackGradient { z, last, n, row, upper: to.upper, diagonal: to.diagonal }.call();
        }
    }
}

/// The given columns of Z = W Y + D Y and of Y = W_bar^H (W + D), each in its own slab.
///
/// # Safety
/// `w` and `ct` have n n elements, the factors n if present, `scratch` the numbers of [`Product::scratch`]; the columns
/// are those of one slab of Z, Y has room for them, and neither is accessed by others.
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
    // SAFETY: all arrays have room for these columns, and no other member accesses those of Z and Y.
    unsafe {
        // the columns of W + D in the place of Z; the last slab is padded, since whole vectors are read later
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
