//! The inverse of one matrix whose leading minors are all far from zero (I + A with skew A), in place, without pivoting.
//!
//! By halves, with nearly all work in deep products,
//!
//! ```text
//! X = S11 M12,  Y = M21 S11,  S22 = (M22 - M21 X)^-1,  S12 = -X S22,  S21 = -S22 Y,  S11 - S12 Y
//! ```
//!
//! where S11 = M11^-1, if one member works alone or the matrix exceeds the caches; for sizes in between and several
//! members, by Gauss-Jordan with a block of [`BLOCK`] pivots at a time,
//!
//! ```text
//! D = M_kk^-1,  R = D M_k:,  M_i: <- M_i: - F_i R  (i != k),  M_k: <- R
//! ```
//!
//! where F = M_:k is copied and replaced by the identity, so that D and -F D result there. Members own column panels, as
//! in the product: each reads only what it wrote itself, except for F. The columns of the next block are updated and
//! copied first, so that one barrier per block suffices: between barriers every member inverts the same small D
//! redundantly and works on its own columns. (At n = 512 halves take 36 barriers, and members read data of other
//! members: a tenth of the time.)

use super::{Operand, Product};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use isometry_kernels::eliminate::{Eliminate, eliminate_scratch};
use std::ops::{Range, RangeInclusive};

/// Pivots of a block: the depth of its products.
const BLOCK: usize = 64;

/// Copies of F: a member may write the copy after next while another still reads the first.
const COPIES: usize = 3;

/// Sizes inverted by blocks; smaller ones do not pay for several members.
const BY_BLOCKS: RangeInclusive<usize> = 209..=512;

/// Where n is halved: a multiple of the widest panel.
fn cut(n: usize) -> usize {
    (n / 2).div_ceil(32) * 32
}

/// Memory that all members of an inverse share.
pub fn inverse_shared<T: Scalar>(arena: &mut Arena, n: usize) -> Frame {
    arena.frame(|arena| carve_shared::<T>(arena, n))
}

fn carve_shared<T: Scalar>(arena: &mut Arena, n: usize) {
    if BY_BLOCKS.contains(&n) {
        copies::<T>(arena, n);
    } else if n > BLOCK {
        Halves::<T>::carve(arena, n);
    }
}

/// F of the blocks, contiguous.
fn copies<T: Scalar>(arena: &mut Arena, n: usize) -> [Region<T>; COPIES] {
    [(); COPIES].map(|()| arena.take(&[n, BLOCK]))
}

/// X and Y, and the memory shared in the inverses of the two halves, contiguous.
struct Halves<T> {
    x: Region<T>,
    y: Region<T>,
    rest: Frame,
}

impl<T: Scalar> Halves<T> {
    fn carve(arena: &mut Arena, n: usize) -> Self {
        let (n1, n2) = (cut(n), n - cut(n));
        let rest = |arena: &mut Arena| {
            for n in [n1, n2] {
                arena.reusing(|arena| carve_shared::<T>(arena, n));
            }
        };
        Halves { x: arena.take(&[n1, n2]), y: arena.take(&[n2, n1]), rest: arena.frame(rest) }
    }
}

/// Memory of one member of an inverse.
pub struct InverseOwn<T: Scalar> {
    /// D
    d: Region<T>,
    scratch: Region<T::Real>,
}
impl<T: Scalar> Clone for InverseOwn<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Scalar> Copy for InverseOwn<T> {}

impl<T: Scalar> InverseOwn<T> {
    /// For n x n matrices.
    pub fn carve(arena: &mut Arena, n: usize) -> Self {
        let small = eliminate_scratch::<T>(n.min(BLOCK));
        if n <= BLOCK {
            return InverseOwn { d: arena.take(&[0]), scratch: arena.take(&[small]) };
        }
        let scratch = arena.take(&[small.max(Product::<T>::scratch(n, n))]);
        InverseOwn { d: arena.take(&[BLOCK, BLOCK]), scratch }
    }
}

/// Replaces the n x n matrix at m (row stride `ld`) by its inverse; ends with a barrier.
///
/// # Safety
/// The matrix exists; `shared` is [`inverse_shared`] for n, common to all members, `own` separate for each, for n or
/// more; all members of the call run the same inverse.
pub unsafe fn invert<T: Scalar>(
    member: &Member<'_>,
    m: *mut T,
    ld: usize,
    n: usize,
    shared: Frame,
    own: InverseOwn<T>,
) {
    // SAFETY: all members run the same branch on the same matrix, which is not accessed by others.
    unsafe {
        if n <= BLOCK {
            if member.id == 0 {
                Eliminate { m, ld, n, scratch: own.scratch.ptr() }.call();
            }
            member.barrier();
        } else if BY_BLOCKS.contains(&n) {
            blocks(member, m, ld, n, copies(&mut shared.arena(), n), own);
        } else {
            halves(member, m, ld, n, Halves::carve(&mut shared.arena(), n), own);
        }
    }
}

/// [`invert`] by halves.
unsafe fn halves<T: Scalar>(
    member: &Member<'_>,
    m: *mut T,
    ld: usize,
    n: usize,
    shared: Halves<T>,
    own: InverseOwn<T>,
) {
    let (n1, n2) = (cut(n), n - cut(n));
    let (x, y, rest) = (shared.x.ptr(), shared.y.ptr(), shared.rest);
    let scratch = own.scratch.ptr();
    let (m12, m21) = (m.wrapping_add(n1), m.wrapping_add(n1 * ld));
    let m22 = m21.wrapping_add(n1);
    let (a11, a12) = (Operand::new(m.cast_const(), ld), Operand::new(m12.cast_const(), ld));
    let (a21, a22) = (Operand::new(m21.cast_const(), ld), Operand::new(m22.cast_const(), ld));
    let (ax, ay) = (Operand::new(x.cast_const(), n2), Operand::new(y.cast_const(), n1));
    // SAFETY: the quarters are disjoint, and barriers separate dependent products.
    unsafe {
        invert(member, m, ld, n1, rest, own);
        Product::new((n1, n2, n1), a11, a12, x, n2).run(member, scratch);
        Product::new((n2, n1, n1), a21, a11, y, n1).run(member, scratch);
        member.barrier();
        Product::new((n2, n2, n1), a21, ax, m22, ld).alpha(-1.0).add().run(member, scratch);
        member.barrier();
        invert(member, m22, ld, n2, rest, own);
        Product::new((n1, n2, n2), ax, a22, m12, ld).alpha(-1.0).run(member, scratch);
        Product::new((n2, n1, n2), a22, ay, m21, ld).alpha(-1.0).run(member, scratch);
        member.barrier();
        Product::new((n1, n1, n2), a12, ay, m, ld).alpha(-1.0).add().run(member, scratch);
        member.barrier();
    }
}

/// [`invert`] by blocks.
unsafe fn blocks<T: Scalar>(
    member: &Member<'_>,
    m: *mut T,
    ld: usize,
    n: usize,
    copies: [Region<T>; COPIES],
    own: InverseOwn<T>,
) {
    // SAFETY: members write their own columns; F is complete at the barrier, and its copy is written again only after
    // the barrier of the next block, when all members have read it.
    unsafe {
        let (d, scratch) = (own.d.ptr(), own.scratch.ptr());
        let step = Step { member, m, ld, n, d, scratch };
        let copy = |k: usize| copies[k / BLOCK % COPIES].ptr();
        step.set_aside(0, 0..n, copy(0));
        step.identity(0);
        member.barrier();
        for k in (0..n).step_by(BLOCK) {
            let (end, f) = ((k + BLOCK).min(n), copy(k));
            for i in 0..end - k {
                std::ptr::copy_nonoverlapping(f.add((k + i) * BLOCK), d.add(i * (end - k)), end - k);
            }
            Eliminate { m: d, ld: end - k, n: end - k, scratch }.call();
            let next = (end + BLOCK).min(n);
            if end < n {
                step.update(k, f, (end, next), Some(copy(end)));
                member.barrier();
            }
            step.update(k, f, (0, end), None);
            step.update(k, f, (next, n), None);
        }
        member.barrier();
    }
}

struct Step<'a, T: Scalar> {
    member: &'a Member<'a>,
    m: *mut T,
    ld: usize,
    n: usize,
    d: *mut T,
    scratch: *mut T::Real,
}

impl<T: Scalar> Step<'_, T> {
    /// Copies `rows` of this member's columns of block k to F.
    unsafe fn set_aside(&self, k: usize, rows: Range<usize>, f: *mut T) {
        for columns in self.own((k, (k + BLOCK).min(self.n))) {
            for i in rows.clone() {
                let to = f.wrapping_add(i * BLOCK + columns.start - k);
                // SAFETY: F has n rows of BLOCK elements, the matrix n rows; the columns belong to this member.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.m.add(i * self.ld + columns.start), to, columns.len())
                };
            }
        }
    }

    /// Writes the identity to this member's columns of block k.
    unsafe fn identity(&self, k: usize) {
        for columns in self.own((k, (k + BLOCK).min(self.n))) {
            // SAFETY: the matrix has n rows; the columns belong to this member.
            unsafe {
                for i in 0..self.n {
                    std::ptr::write_bytes(self.m.add(i * self.ld + columns.start), 0, columns.len());
                }
                for j in columns {
                    *self.m.add(j * self.ld + j) = T::one();
                }
            }
        }
    }

    fn own(&self, columns: (usize, usize)) -> impl Iterator<Item = Range<usize>> {
        Product::<T>::own(self.member, self.n, columns)
    }

    /// R = D M_k: and M_i: - F_i R in this member's columns of the given ones. They are either written to `aside`, the
    /// next F, and replaced by the identity, or updated in place.
    unsafe fn update(&self, k: usize, f: *const T, columns: (usize, usize), aside: Option<*mut T>) {
        let Step { member, m, ld, n, d, scratch } = *self;
        if columns.0 == columns.1 {
            return;
        }
        let end = (k + BLOCK).min(n);
        let r = m.wrapping_add(k * ld);
        let (ad, ar) = (Operand::new(d.cast_const(), end - k), Operand::new(r.cast_const(), ld));
        // column j of F is column columns.0 + j of the matrix
        let (to, pitch) = aside.map_or((m, ld), |f| (f.wrapping_sub(columns.0), BLOCK));
        // SAFETY: the matrix, F and the next F have n rows; each product accesses the member's own columns, and reads F.
        unsafe {
            Product::new((end - k, n, end - k), ad, ar, r, ld).columns(columns).run(member, scratch);
            for (row, height) in [(0, k), (end, n - end)] {
                let a = Operand::new(f.wrapping_add(row * BLOCK), BLOCK);
                let (from, c) = (m.wrapping_add(row * ld), to.wrapping_add(row * pitch));
                let product = Product::new((height, n, end - k), a, ar, c, pitch).onto(from, ld).alpha(-1.0);
                product.columns(columns).run(member, scratch);
            }
            if let Some(f) = aside {
                self.set_aside(columns.0, k..end, f);
                self.identity(columns.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{self, Shared};
    use crate::scalar::Real;
    use crate::scratch::Scratch;
    use crate::testing::{Random, every_type};

    /// (I + A)^-1 (I + A) = I for a skew A of norm about 1, in the padded rows of a larger array; equal for any member
    /// count.
    fn check<T: Scalar>(n: usize) {
        if !crate::testing::within_work(&[n, n, n]) {
            return;
        }
        let ld = n + 3;
        let mut matrix = vec![T::default(); n * ld];
        let mut random = Random::new(n as u64);
        for i in 0..n {
            matrix[i * ld + i] = T::one();
            for j in 0..i {
                let a: T = random.scalar(1.0 / (n as f64).sqrt());
                (matrix[i * ld + j], matrix[j * ld + i]) = (a, -a.conj());
            }
        }
        let inverse = |threads| {
            let mut out = matrix.clone();
            for row in out.chunks_mut(ld) {
                row[n..].fill(T::real(T::Real::of(7.0)));
            }
            let to = Shared(out.as_mut_ptr());
            let own = |arena: &mut Arena| InverseOwn::<T>::carve(arena, n);
            let room = Scratch::new(|arena| (inverse_shared::<T>(arena, n), arena.frames(threads, own)));
            let (shared, all) = *room.as_deref().unwrap();
            parallel::run(threads, &|member| {
                let own = own(&mut all.of(member.id).arena());
                // SAFETY: all sizes are those of n.
                unsafe { invert(member, to.at(0), ld, n, shared, own) };
            });
            out
        };
        let out = inverse(1);
        for threads in [2, 3, 8, 16] {
            assert!(inverse(threads) == out, "n = {n}, {threads} threads");
        }
        for (i, row) in out.chunks(ld).enumerate() {
            assert!(
                row[n..].iter().all(|x| *x == T::real(T::Real::of(7.0))),
                "n = {n}: wrote behind row {i}"
            );
            // some columns of the product; they read all of each row of S
            for j in [i, (i * 7 + 3) % n, n - 1] {
                let mut sum = T::Wide::default();
                for k in 0..n {
                    sum += row[k].widen() * matrix[k * ld + j].widen();
                }
                let expected = f64::from(u8::from(i == j));
                let error = (sum - T::Wide::real(expected)).modulus();
                assert!(error < 20.0 * n as f64 * T::Real::EPS.f64(), "n = {n} at ({i}, {j}): {error:e}");
            }
        }
    }

    #[test]
    fn the_product_with_the_inverse_is_the_identity() {
        for n in [1, 2, 5, 63, 64, 65, 97, 190, 209, 256, 321] {
            every_type!(check(n));
        }
        check::<f32>(600);
    }
}
