//! Products of a group of matrices, in register blocks: C = A B or A^H B.

use super::element::{conj_mul_add, load, mul_add, store};
use crate::simd::Simd;

/// Whether the left factor is conjugate-transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A
    Plain,
    /// A^H
    Adjoint,
}

/// C = A B or A^H B for LANES interleaved n x n matrices, n a multiple of 4, row stride `ld` elements.
///
/// # Safety
/// a, b and c have n ld P vectors each, and c overlaps neither a nor b; the processor supports S.
#[inline(always)]
pub unsafe fn product_lanes<S: Simd, const P: usize>(
    left: Left,
    a: *const S::R,
    b: *const S::R,
    c: *mut S::R,
    n: usize,
    ld: usize,
) {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        match S::REGISTERS {
            32 => match P {
                1 => blocks::<S, P, 4, 4>(left, a, b, c, n, ld),
                _ => blocks::<S, P, 2, 4>(left, a, b, c, n, ld),
            },
            _ => match P {
                1 => blocks::<S, P, 2, 4>(left, a, b, c, n, ld),
                _ => blocks::<S, P, 2, 2>(left, a, b, c, n, ld),
            },
        }
    }
}

#[inline(always)]
unsafe fn blocks<S: Simd, const P: usize, const M: usize, const N: usize>(
    left: Left,
    a: *const S::R,
    b: *const S::R,
    c: *mut S::R,
    n: usize,
    ld: usize,
) {
    // SAFETY: every address is within the n ld P vectors of its matrix.
    unsafe {
        let v = P * S::LANES;
        for i in (0..n).step_by(M) {
            for j in (0..n).step_by(N) {
                let mut t = [[[S::zero(); P]; N]; M];
                for p in 0..n {
                    let mut y = [[S::zero(); P]; N];
                    for col in 0..N {
                        y[col] = load::<S, P>(b.add((p * ld + j + col) * v));
                    }
                    for row in 0..M {
                        if left == Left::Adjoint {
                            let x = load::<S, P>(a.add((p * ld + i + row) * v));
                            for col in 0..N {
                                t[row][col] = conj_mul_add::<S, P>(x, y[col], t[row][col]);
                            }
                        } else {
                            let x = load::<S, P>(a.add(((i + row) * ld + p) * v));
                            for col in 0..N {
                                t[row][col] = mul_add::<S, P>(x, y[col], t[row][col]);
                            }
                        }
                    }
                }
                for row in 0..M {
                    for col in 0..N {
                        store::<S, P>(c.add(((i + row) * ld + j + col) * v), t[row][col]);
                    }
                }
            }
        }
    }
}
