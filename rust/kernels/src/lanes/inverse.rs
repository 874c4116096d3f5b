//! In-place inverses of a group of matrices without pivoting: with the 4 x 4 pivot block P at k and D = P^-1,
//!
//! ```text
//! pivot rows r <- D r,  other rows x <- x - f r (f their pivot columns),  pivot columns f <- -f D,  P <- D.
//! ```
//!
//! Four pivots at a time: four multiply-adds per store of a vector, so that stores do not limit the loop.

use super::element::{Element, load, mul, mul_add, neg_mul_add, reciprocal, store, sub};
use crate::simd::Simd;

/// Inverts LANES interleaved n x n matrices, n a multiple of 4, row stride `ld` elements.
///
/// # Safety
/// n ld P vectors exist at m; the processor supports S.
#[inline(always)]
pub unsafe fn inverse_lanes<S: Simd, const P: usize>(m: *mut S::R, n: usize, ld: usize) {
    // Vectors of the pivot rows held in registers: 16 of 32, or 8 of 16.
    // SAFETY: the caller ensures that the vectors exist and S is supported.
    unsafe {
        match S::REGISTERS {
            32 => match P {
                1 => inverse::<S, P, 4>(m, n, ld),
                _ => inverse::<S, P, 2>(m, n, ld),
            },
            _ => match P {
                1 => inverse::<S, P, 2>(m, n, ld),
                _ => inverse::<S, P, 1>(m, n, ld),
            },
        }
    }
}

#[inline(always)]
unsafe fn inverse<S: Simd, const P: usize, const H: usize>(m: *mut S::R, n: usize, ld: usize) {
    // SAFETY: every address is within the n ld P vectors.
    unsafe {
        let at = |i: usize, j: usize| m.wrapping_add((i * ld + j) * P * S::LANES);
        for k in (0..n).step_by(4) {
            let mut d = [[[S::zero(); P]; 4]; 4];
            for i in 0..4 {
                for j in 0..4 {
                    d[i][j] = load::<S, P>(at(k + i, k + j));
                }
            }
            invert4::<S, P>(&mut d);
            for j in (0..n).step_by(H) {
                if j / 4 == k / 4 {
                    continue;
                }
                let (mut old, mut r) = ([[[S::zero(); P]; H]; 4], [[[S::zero(); P]; H]; 4]);
                for p in 0..4 {
                    for c in 0..H {
                        old[p][c] = load::<S, P>(at(k + p, j + c));
                    }
                }
                for q in 0..4 {
                    for c in 0..H {
                        let mut t = mul::<S, P>(d[q][0], old[0][c]);
                        for p in 1..4 {
                            t = mul_add::<S, P>(d[q][p], old[p][c], t);
                        }
                        r[q][c] = t;
                        store::<S, P>(at(k + q, j + c), t);
                    }
                }
                for i in (0..k).chain(k + 4..n) {
                    let f = pivot_columns::<S, P>(at(i, k));
                    for c in 0..H {
                        let mut t = load::<S, P>(at(i, j + c));
                        for q in 0..4 {
                            t = neg_mul_add::<S, P>(f[q], r[q][c], t);
                        }
                        store::<S, P>(at(i, j + c), t);
                    }
                }
            }
            for i in (0..k).chain(k + 4..n) {
                let f = pivot_columns::<S, P>(at(i, k));
                for c in 0..4 {
                    let mut t = [S::zero(); P];
                    for q in 0..4 {
                        t = neg_mul_add::<S, P>(f[q], d[q][c], t);
                    }
                    store::<S, P>(at(i, k + c), t);
                }
            }
            for i in 0..4 {
                for j in 0..4 {
                    store::<S, P>(at(k + i, k + j), d[i][j]);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn pivot_columns<S: Simd, const P: usize>(x: *const S::R) -> [Element<S, P>; 4] {
    // SAFETY: x points to four elements.
    unsafe {
        let mut f = [[S::zero(); P]; 4];
        for q in 0..4 {
            f[q] = load::<S, P>(x.add(q * P * S::LANES));
        }
        f
    }
}

/// Gauss-Jordan on a 4 x 4 block in registers.
#[inline(always)]
unsafe fn invert4<S: Simd, const P: usize>(d: &mut [[Element<S, P>; 4]; 4]) {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        let zero = [S::zero(); P];
        let mut p = *d;
        for q in 0..4 {
            let r = reciprocal::<S, P>(p[q][q]);
            for j in 0..4 {
                p[q][j] = if j == q { r } else { mul::<S, P>(p[q][j], r) };
            }
            for i in 0..4 {
                if i != q {
                    let f = p[i][q];
                    for j in 0..4 {
                        p[i][j] = if j == q {
                            sub::<S, P>(zero, mul::<S, P>(f, r))
                        } else {
                            neg_mul_add::<S, P>(f, p[q][j], p[i][j])
                        };
                    }
                }
            }
        }
        *d = p;
    }
}
