//! Small pieces of the compact WY form: T^-1, M + M^H, and column sums of products.

use super::step::Chunk;
use crate::kernels::{Kernel, Simd, dispatch};
use crate::scalar::{Real, Scalar};
use std::ops::Range;

/// T^-1 (m, m) for T = striu(G) + diag(G) / 2, row by row from the last: x_i = (e_i - sum_{k>i} T_ik x_k) / T_ii.
/// Only the upper triangle of G is read; below the diagonal stand zeros.
pub fn invert<T: Scalar>(gram: &[T], inverse: &mut [T], m: usize) {
    for i in (0..m).rev() {
        let (head, below) = inverse[i * m..].split_at_mut(m);
        let scale = T::Real::of(2.0) / gram[i * m + i].re();
        head.fill(T::zero());
        head[i] = T::one();
        for k in i + 1..m {
            let t = gram[i * m + k];
            let row = &below[(k - i - 1) * m..][k..m];
            for (x, &y) in head[k..].iter_mut().zip(row) {
                *x -= t * y;
            }
        }
        for x in &mut head[i..] {
            *x = x.scale(scale);
        }
    }
}

/// From -T^-1 q p^H to M + M^H, M the lower triangle with half the diagonal, in place.
pub fn hermitian<T: Scalar>(x: &mut [T], m: usize) {
    for i in 0..m {
        for j in 0..i {
            let lower = -x[i * m + j];
            (x[i * m + j], x[j * m + i]) = (lower, lower.conj());
        }
        x[i * m + i] = T::real(-x[i * m + i].re());
    }
}

/// Adds, per real column, the sums over the rows of a chunk of z_bar h and of z_bar times the other part of h.
///
/// # Safety
/// The chunk has rows of `width` numbers, each of the sums too; columns start at a multiple of a vector.
pub unsafe fn cross<R: Real>(chunk: &Chunk<R>, width: usize, sums: [*mut R; 2], columns: Range<usize>) {
    // SAFETY: passed on from the caller.
    unsafe { dispatch(Cross { chunk, width, sums, columns }) }
}

struct Cross<'a, R> {
    chunk: &'a Chunk<R>,
    width: usize,
    sums: [*mut R; 2],
    columns: Range<usize>,
}

impl<R: Real> Kernel<R> for Cross<'_, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(self) {
        // SAFETY: the contract of `cross`.
        unsafe {
            for col in self.columns.clone().step_by(S::LANES) {
                let live = self.columns.end - col;
                let mut acc = [S::zero(); 2];
                for row in 0..self.chunk.rows {
                    let at = row * self.width + col;
                    let z = S::load_n(self.chunk.trace.bar.add(at), live);
                    let h = S::load_n(self.chunk.previous.add(at), live);
                    acc[0] = S::mul_add(z, h, acc[0]);
                    acc[1] = S::mul_add(z, S::swap_pairs(h), acc[1]);
                }
                for i in 0..2 {
                    let sum = self.sums[i].add(col);
                    S::store_n(sum, S::add(acc[i], S::load_n(sum, live)), live);
                }
            }
        }
    }
}
