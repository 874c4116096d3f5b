//! The inverse of one matrix whose leading minors are all far from zero (I + A with skew A), in place, without pivoting.
//!
//! ```text
//! X = S11 M12,  Y = M21 S11,  S22 = (M22 - M21 X)^-1,  S12 = -X S22,  S21 = -S22 Y,  S11 - S12 Y
//! ```
//!
//! with S11 = M11^-1: all work is in products (2 n^3 in all) and in blocks of at most [`BASE`], which take four
//! Gauss-Jordan pivots at a time. A complex block is an array of real rows of twice the width, where the row that a_re
//! multiplies is r and the row that a_im multiplies is i r, as in the packed product.

use super::dispatch::{Kernel, dispatch};
use super::pack::Operand;
use super::product::Product;
use super::simd::Simd;
use crate::parallel::Member;
use crate::scalar::{Scalar, parts_mut};
use num_traits::{One, Zero};

/// Largest block that is eliminated directly.
const BASE: usize = 64;

/// Largest block that one member inverts while the others wait: two threads would spend what they gain at barriers, and
/// lose far more when another process holds a core.
const SOLO: usize = 96;

/// Where n is cut: at a multiple of the widest panel.
fn cut(n: usize) -> usize {
    (n / 2).div_ceil(32) * 32
}

/// Elements of memory shared by all members.
pub fn inverse_shared(n: usize) -> usize {
    if n <= BASE {
        return 0;
    }
    let (n1, n2) = (cut(n), n - cut(n));
    2 * n1 * n2 + inverse_shared(n1).max(inverse_shared(n2))
}

/// Real numbers of scratch of each member.
pub fn inverse_scratch<T: Scalar>(n: usize) -> usize {
    let base = BASE * (BASE * T::PARTS + 32 + 8) + 8 * BASE * T::PARTS + 256;
    if n <= BASE { base } else { base.max(Product::<T>::scratch(n, n)) }
}

/// Replaces the n x n matrix at m (rows `ld` apart) by its inverse; ends with a barrier.
///
/// # Safety
/// The matrix, [`inverse_shared`] elements at `shared` (the same for all members) and [`inverse_scratch`] numbers at
/// `scratch` (each member its own) exist; all members of the call run the same inverse.
pub unsafe fn invert<T: Scalar>(
    member: &Member<'_>,
    m: *mut T,
    ld: usize,
    n: usize,
    shared: *mut T,
    scratch: *mut T::Real,
) {
    // SAFETY: the blocks are disjoint, and barriers stand between dependent products.
    unsafe {
        if n <= BASE {
            if member.id == 0 {
                dispatch(Base::<T> { m, ld, n, scratch });
            }
            member.barrier();
            return;
        }
        if n <= SOLO && member.count > 1 {
            if member.id == 0 {
                Member::alone(|solo| invert(solo, m, ld, n, shared, scratch));
            }
            member.barrier();
            return;
        }
        let (n1, n2) = (cut(n), n - cut(n));
        let (m12, m21) = (m.wrapping_add(n1), m.wrapping_add(n1 * ld));
        let m22 = m21.wrapping_add(n1);
        let (x, y) = (shared, shared.wrapping_add(n1 * n2));
        let rest = y.wrapping_add(n1 * n2);
        let (a11, a12) = (Operand::new(m.cast_const(), ld), Operand::new(m12.cast_const(), ld));
        let (a21, a22) = (Operand::new(m21.cast_const(), ld), Operand::new(m22.cast_const(), ld));
        let (ax, ay) = (Operand::new(x.cast_const(), n2), Operand::new(y.cast_const(), n1));

        invert(member, m, ld, n1, rest, scratch);
        Product::new((n1, n2, n1), a11, a12, x, n2).run(member, scratch);
        Product::new((n2, n1, n1), a21, a11, y, n1).run(member, scratch);
        member.barrier();
        Product::new((n2, n2, n1), a21, ax, m22, ld).alpha(-1.0).add().run(member, scratch);
        member.barrier();
        invert(member, m22, ld, n2, rest, scratch);
        Product::new((n1, n2, n2), ax, a22, m12, ld).alpha(-1.0).run(member, scratch);
        Product::new((n2, n1, n2), a22, ay, m21, ld).alpha(-1.0).run(member, scratch);
        member.barrier();
        Product::new((n1, n1, n2), a12, ay, m, ld).alpha(-1.0).add().run(member, scratch);
        member.barrier();
    }
}

struct Base<T: Scalar> {
    m: *mut T,
    ld: usize,
    n: usize,
    scratch: *mut T::Real,
}

impl<T: Scalar> Kernel<T::Real> for Base<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(self) {
        let Base { m, ld, n, scratch } = self;
        // SAFETY: `inverse_scratch` has room for the padded copy, the pivot columns and the pivot rows.
        unsafe {
            let rows = n.div_ceil(4) * 4;
            let width = (rows * T::PARTS).div_ceil(S::LANES) * S::LANES;
            let live = n * T::PARTS;
            let work = scratch.add(rows * width);
            if rows == n && width == live && ld == n {
                return direct::<T, S>(m.cast(), rows, width, work);
            }
            for i in 0..rows {
                let (to, from) = (scratch.add(i * width), m.wrapping_add(i * ld).cast::<S::R>());
                for j in (0..width).step_by(S::LANES) {
                    let v = if i < n && j < live { S::load_n(from.add(j), live - j) } else { S::zero() };
                    S::store(to.add(j), v);
                }
                if i >= n {
                    *to.add(i * T::PARTS) = One::one();
                }
            }
            direct::<T, S>(scratch, rows, width, work);
            for i in 0..n {
                let (from, to) = (scratch.add(i * width), m.add(i * ld).cast::<S::R>());
                for j in (0..live).step_by(S::LANES) {
                    S::store_n(to.add(j), S::load(from.add(j)), live - j);
                }
            }
        }
    }
}

/// [`eliminate`] with as many pivot rows in registers as they hold: 16 of 32 vectors, or 8 of 16.
#[inline(always)]
unsafe fn direct<T: Scalar, S: Simd<R = T::Real>>(m: *mut S::R, rows: usize, width: usize, work: *mut S::R) {
    // SAFETY: passed on from the caller.
    unsafe {
        match (T::PARTS, size_of::<S::V>() == 64) {
            (1, true) => eliminate::<T, S, 4, 4>(m, rows, width, work),
            (1, false) => eliminate::<T, S, 4, 2>(m, rows, width, work),
            (_, true) => eliminate::<T, S, 8, 2>(m, rows, width, work),
            (_, false) => eliminate::<T, S, 8, 1>(m, rows, width, work),
        }
    }
}

/// Gauss-Jordan on a padded matrix of `rows` rows of `width` real numbers; K = 4 PARTS real pivot rows at a time, C
/// vectors of them in registers.
#[inline(always)]
unsafe fn eliminate<T: Scalar, S: Simd<R = T::Real>, const K: usize, const C: usize>(
    m: *mut S::R,
    rows: usize,
    width: usize,
    work: *mut S::R,
) {
    // SAFETY: every address lies in the matrix or in the (rows + width) K numbers at `work`.
    unsafe {
        let (columns, pivots) = (work, work.add(rows * K));
        for k in (0..rows).step_by(4) {
            // D = inverse of the pivot block; the block itself becomes the identity, so that D r ends up in its place
            let mut d = [[T::default(); 4]; 4];
            for i in 0..4 {
                let block = m.add((k + i) * width + k * T::PARTS).cast::<T>();
                for j in 0..4 {
                    d[i][j] = *block.add(j);
                    *block.add(j) = if i == j { T::one() } else { T::zero() };
                }
            }
            invert4(&mut d);
            for i in 0..rows {
                // as whole arrays: one load and two stores
                let x = m.add(i * width + k * T::PARTS).cast::<[S::R; K]>();
                columns.add(i * K).cast::<[S::R; K]>().write(x.read());
                if i / 4 != k / 4 {
                    x.write([S::R::zero(); K]);
                }
            }
            pivot_rows::<T, S, K>(m.add(k * width), width, &mut d, pivots);
            let mut j = 0;
            while j + C * S::LANES <= width {
                update::<S, K, C>(m.add(j), rows, k, width, columns, pivots.add(j));
                j += C * S::LANES;
            }
            while j < width {
                update::<S, K, 1>(m.add(j), rows, k, width, columns, pivots.add(j));
                j += S::LANES;
            }
        }
    }
}

/// r <- D r for the four pivot rows; also written to `pivots` as K real rows (r, i r for a complex type).
#[inline(always)]
unsafe fn pivot_rows<T: Scalar, S: Simd<R = T::Real>, const K: usize>(
    r: *mut S::R,
    width: usize,
    d: &mut [[T; 4]; 4],
    pivots: *mut S::R,
) {
    // SAFETY: four rows exist at r, K rows at `pivots`.
    unsafe {
        let turn = S::alternate(-S::R::one(), S::R::one());
        for j in (0..width).step_by(S::LANES) {
            let mut old = [S::zero(); K];
            for p in 0..4 {
                let v = S::load(r.add(p * width + j));
                old[p * T::PARTS] = v;
                if T::PARTS == 2 {
                    old[2 * p + 1] = S::mul(S::swap_pairs(v), turn);
                }
            }
            for i in 0..4 {
                let factors = parts_mut(&mut d[i]);
                let mut t = S::mul(S::splat(factors[0]), old[0]);
                for q in 1..K {
                    t = S::mul_add(S::splat(factors[q]), old[q], t);
                }
                S::store(r.add(i * width + j), t);
                S::store(pivots.add(i * T::PARTS * width + j), t);
                if T::PARTS == 2 {
                    S::store(pivots.add((2 * i + 1) * width + j), S::mul(S::swap_pairs(t), turn));
                }
            }
        }
    }
}

/// x <- x - f r for C vectors of all rows but the pivot rows.
#[inline(always)]
unsafe fn update<S: Simd, const K: usize, const C: usize>(
    m: *mut S::R,
    rows: usize,
    k: usize,
    width: usize,
    columns: *const S::R,
    pivots: *const S::R,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        let mut r = [[S::zero(); C]; K];
        for q in 0..K {
            for c in 0..C {
                r[q][c] = S::load(pivots.add(q * width + c * S::LANES));
            }
        }
        for i in (0..k).chain(k + 4..rows) {
            let (x, f) = (m.add(i * width), columns.add(i * K));
            let mut t = [S::zero(); C];
            for c in 0..C {
                t[c] = S::load(x.add(c * S::LANES));
            }
            for q in 0..K {
                let f = S::splat(*f.add(q));
                for c in 0..C {
                    t[c] = S::neg_mul_add(f, r[q][c], t[c]);
                }
            }
            for c in 0..C {
                S::store(x.add(c * S::LANES), t[c]);
            }
        }
    }
}

/// Gauss-Jordan on one 4 x 4 block.
#[inline(always)]
fn invert4<T: Scalar>(d: &mut [[T; 4]; 4]) {
    for q in 0..4 {
        let r = d[q][q].conj().scale(T::Real::one() / d[q][q].abs2());
        let r = if T::PARTS == 1 { T::one() / d[q][q] } else { r };
        d[q][q] = T::one();
        for j in 0..4 {
            d[q][j] *= r;
        }
        let row = d[q];
        for i in 0..4 {
            if i != q {
                let f = d[i][q];
                d[i][q] = T::zero();
                for j in 0..4 {
                    d[i][j] -= f * row[j];
                }
            }
        }
    }
}
