//! Column sums of products of two arrays of rows: what the gradient of a diagonal last factor needs.

use super::step::Chunk;
use crate::kernels::{Kernel, Simd, dispatch};
use crate::scalar::Real;
use std::ops::Range;

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
