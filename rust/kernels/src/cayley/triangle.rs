//! Conversion between the packed strict upper triangle and rows of a full matrix, in blocks transposed in registers.

use super::slabs::Slabs;
use crate::dispatch::kernel;
use crate::scalar::{Real, Scalar};
use num_traits::{One, Zero};
use std::ops::Range;

/// Rows per block; a multiple of every number of lanes.
pub const BLOCK: usize = 16;

/// n (n - 1) / 2
pub fn len(n: usize) -> usize {
    n * n.saturating_sub(1) / 2
}

/// Element (i, j), i < j, is at `offset(n, i) + j` (wrapping).
#[inline(always)]
pub fn offset(n: usize, i: usize) -> usize {
    (i * (2 * n - i - 1) / 2).wrapping_sub(i + 1)
}

/// Writes rows of I + A, and for each block of rows the squared norm of its part of the triangle (and diagonal).
///
/// # Safety
/// The triangle has n (n - 1) / 2 elements, the diagonal n if given, the matrix n rows; there is a norm per block.
pub struct Unpack<T: Scalar> {
    /// The strict upper triangle, row by row.
    pub upper: *const T,
    /// Imaginary parts of the diagonal.
    pub diagonal: Option<*const T::Real>,
    /// n
    pub n: usize,
    /// Starts at a multiple of [`BLOCK`], ends at one or at n.
    pub rows: Range<usize>,
    /// I + A
    pub out: *mut T,
    /// Row stride of `out`; columns from n up to it are set to zero.
    pub pitch: usize,
    /// One per block.
    pub norms: *mut T::Real,
}

kernel!(Unpack::<T>, |&Unpack { upper, diagonal, n, ref rows, out, pitch, norms }| {
    // SAFETY: the triangle, the diagonal, the rows and the norms exist (contract of `Unpack`).
    unsafe {
        let mut squares = S::zero();
        for i in rows.clone() {
            let live = (n - 1 - i) * T::PARTS;
            let from = upper.wrapping_add(offset(n, i).wrapping_add(i + 1)).cast::<S::R>();
            let to = out.wrapping_add(i * pitch + i + 1).cast::<S::R>();
            for j in (0..live).step_by(S::LANES) {
                let v = S::load_n(from.add(j), live - j);
                squares = S::mul_add(v, v, squares);
                S::store_n(to.add(j), v, live - j);
            }
            for j in n..pitch {
                *out.add(i * pitch + j) = T::default();
            }
            let g = diagonal.map_or(S::R::zero(), |d| *d.add(i));
            *out.add(i * pitch + i) = T::new(S::R::one(), g);
            squares = S::mul_add(S::splat(g), S::splat(g), squares);
            if i % BLOCK == BLOCK - 1 || i + 1 == rows.end {
                let mut lanes = [S::R::zero(); 16];
                S::store(lanes.as_mut_ptr(), squares);
                *norms.add(i / BLOCK) = lanes.iter().fold(S::R::zero(), |sum, &x| sum + x);
                squares = S::zero();
            }
        }
        for ib in rows.clone().step_by(S::LANES) {
            let end = (ib + S::LANES).min(rows.end);
            for jb in (0..ib).step_by(S::LANES) {
                if T::PARTS == 1 {
                    let mut block = [S::zero(); 16];
                    for q in 0..S::LANES {
                        let from = upper.wrapping_add(offset(n, jb + q).wrapping_add(ib));
                        block[q] = S::load_n(from.cast(), end - ib);
                    }
                    S::transpose(&mut block[..S::LANES]);
                    for i in ib..end {
                        S::store(out.add(i * pitch + jb).cast(), S::sub(S::zero(), block[i - ib]));
                    }
                } else {
                    for j in jb..jb + S::LANES {
                        let from = upper.wrapping_add(offset(n, j));
                        for i in ib..end {
                            *out.add(i * pitch + j) = -(*from.wrapping_add(i)).conj();
                        }
                    }
                }
            }
            for i in ib..end {
                for j in ib..i {
                    *out.add(i * pitch + j) = -(*upper.wrapping_add(offset(n, j).wrapping_add(i))).conj();
                }
            }
        }
    }
});

/// The packed gradient of rows of U = Z D^* / 2: upper_bar = U_ij - conj(U_ji), diagonal_bar = Im U_jj.
///
/// # Safety
/// The matrix has n n elements, the factors n if given, and the targets exist.
pub struct PackGradient<T: Scalar> {
    /// Z
    pub z: Slabs<T>,
    /// d; None for D = I.
    pub last: Option<*const T>,
    /// n
    pub n: usize,
    /// First row of a block of [`BLOCK`].
    pub row: usize,
    /// upper_bar
    pub upper: Option<*mut T>,
    /// diagonal_bar
    pub diagonal: Option<*mut T::Real>,
}

kernel!(PackGradient::<T>, |&PackGradient { z, last, n, row, upper, diagonal }| {
    let half = S::R::of(0.5);
    // SAFETY: the matrix, the factors and the targets exist (contract of `PackGradient`).
    unsafe {
        let (pitch, end) = (z.width(), (row + BLOCK).min(n));
        let u = |z: *const T, j: usize| {
            let v = (*z).scale(half);
            last.map_or(v, |d| v * (*d.add(j)).conj())
        };
        if let Some(diagonal) = diagonal {
            for j in row..end {
                *diagonal.add(j) = u(z.at(j, j), j).im();
            }
        }
        let Some(upper) = upper else { return };
        for ib in (row..end).step_by(S::LANES) {
            let iend = (ib + S::LANES).min(end);
            // Z of a block on or right of the diagonal, and of its mirror image below
            let scalar = |(i, j): (usize, usize), jb: usize, right: *const T, below: *const T| {
                let (right, below) =
                    (right.add((i - ib) * pitch + j - jb), below.add((j - jb) * pitch + i - ib));
                *upper.wrapping_add(offset(n, i).wrapping_add(j)) = u(right, j) - u(below, i).conj();
            };
            let block = z.at(ib, ib);
            for i in ib..iend {
                for j in i + 1..iend {
                    scalar((i, j), ib, block, block);
                }
            }
            for jb in (iend..n).step_by(S::LANES) {
                let live = (n - jb).min(S::LANES);
                let (right, below) = (z.at(ib, jb), z.at(jb, ib));
                if T::PARTS == 2 {
                    for i in ib..iend {
                        for j in jb..jb + live {
                            scalar((i, j), jb, right, below);
                        }
                    }
                    continue;
                }
                // there are columns to the right, so this block of rows is full
                let mut block = [S::zero(); 16];
                for q in 0..live {
                    block[q] = S::load(below.add(q * pitch).cast());
                }
                S::transpose(&mut block[..S::LANES]);
                for i in ib..iend {
                    let v = S::load_n(right.add((i - ib) * pitch).cast(), live);
                    let mut v = S::mul(S::splat(half), v);
                    let mut w = S::mul(S::splat(half), block[i - ib]);
                    if let Some(d) = last {
                        v = S::mul(v, S::load_n(d.add(jb).cast(), live));
                        w = S::mul(w, S::splat(*d.add(i).cast()));
                    }
                    let to = upper.wrapping_add(offset(n, i).wrapping_add(jb));
                    S::store_n(to.cast(), S::sub(v, w), live);
                }
            }
        }
    }
});
