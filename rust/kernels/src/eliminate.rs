//! The inverse of one small matrix whose leading minors are all far from zero, in place, without pivoting: Gauss-Jordan,
//! four pivots at a time.
//!
//! A complex matrix is an array of real rows of twice the width, where a_re multiplies the row r and a_im the row i r,
//! as in the packed product.

use crate::dispatch::{compiled, kernel};
use crate::scalar::{Scalar, c32, c64, parts_mut};
use crate::simd::Simd;
use num_traits::{One, Zero};

/// Real numbers of scratch for matrices up to n x n.
pub fn eliminate_scratch<T: Scalar>(n: usize) -> usize {
    let n = n + 32;
    n * (n * T::PARTS + 32 + 8) + 8 * n * T::PARTS + 256
}

/// Replaces the n x n matrix at m by its inverse. Rows that are whole vectors are processed in place: any padding after
/// the n columns must then be finite.
///
/// # Safety
/// The matrix exists; `scratch` has the numbers of [`eliminate_scratch`].
pub struct Eliminate<T: Scalar> {
    /// The matrix.
    pub m: *mut T,
    /// Row stride.
    pub ld: usize,
    /// n
    pub n: usize,
    /// Scratch.
    pub scratch: *mut T::Real,
}

compiled! {
    /// Elimination, compiled for each element type.
    EliminateKernels: Scalar for f32, f64, c32, c64; {
        /// [`Eliminate`]
        fn eliminate(Eliminate);
    }
}

kernel!(Eliminate::<T>, |&Eliminate { m, ld, n, scratch }| {
    // SAFETY: `eliminate_scratch` has room for the padded copy, the pivot columns and the pivot rows.
    unsafe {
        let rows = n.div_ceil(4) * 4;
        let width = (rows * T::PARTS).div_ceil(S::LANES) * S::LANES;
        let live = n * T::PARTS;
        let work = scratch.add(rows * width);
        if rows == n && ld * T::PARTS == width {
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
});

/// [`eliminate`] with as many pivot rows as fit in registers: 16 of 32 vectors, or 8 of 16.
#[inline(always)]
unsafe fn direct<T: Scalar, S: Simd<R = T::Real>>(m: *mut S::R, rows: usize, width: usize, work: *mut S::R) {
    // SAFETY: the matrix and `work` are those of `Eliminate`.
    unsafe {
        // matches on constants: unreachable branches are not compiled
        match T::PARTS {
            1 => match S::REGISTERS {
                32 => eliminate::<T, S, 4, 4>(m, rows, width, work),
                _ => eliminate::<T, S, 4, 2>(m, rows, width, work),
            },
            _ => match S::REGISTERS {
                32 => eliminate::<T, S, 8, 2>(m, rows, width, work),
                _ => eliminate::<T, S, 8, 1>(m, rows, width, work),
            },
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
    // SAFETY: every address is within the matrix or the (rows + width) K numbers at `work`.
    unsafe {
        let (columns, pivots) = (work, work.add(rows * K));
        for k in (0..rows).step_by(4) {
            // D = inverse of the pivot block; the block itself becomes the identity, so that D r results in its place
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
    // SAFETY: r has four rows, `pivots` K rows.
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
    // SAFETY: all rows of the matrix, the pivot columns and the pivot rows have these vectors.
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
