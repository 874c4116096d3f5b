//! Products of few rows with a matrix that is read in place, where packing it would take longer.
//!
//! Row by row, a vector of columns at a time: one sum over k for each of its columns, in as many vectors, which are
//! transposed and added. So neither threads nor tiles change the order of a sum.

use crate::pack::Operand;
use crate::simd::{Simd, WIDEST};

/// The most rows of the whole batch for which this is faster than packing.
pub const FEW: usize = 3;

/// base + sum_k a_k B[k, col..] in one vector, for a matrix of `n` columns whose columns are contiguous, `cols` numbers apart.
///
/// # Safety
/// The row a has k numbers, B as many rows and n columns, of which col is one.
#[inline(always)]
pub(super) unsafe fn few<S: Simd>(
    base: S::V,
    (a, k): (*const S::R, usize),
    b: &Operand<S::R>,
    (col, n): (usize, usize),
) -> S::V {
    const { assert!(S::LANES <= WIDEST) };
    // SAFETY: columns from n on are read as the last one; the rest follows from the contract above.
    unsafe {
        let mut sums = [S::zero(); WIDEST];
        let column = |u: usize| b.data.wrapping_add((col + u).min(n - 1) * b.cols);
        let whole = k / S::LANES * S::LANES;
        for at in (0..whole).step_by(S::LANES) {
            let x = S::load(a.add(at));
            for u in 0..S::LANES {
                sums[u] = S::mul_add(S::load(column(u).add(at)), x, sums[u]);
            }
        }
        if whole < k {
            let (rest, x) = (k - whole, S::load_n(a.add(whole), k - whole));
            for u in 0..S::LANES {
                sums[u] = S::mul_add(S::load_n(column(u).add(whole), rest), x, sums[u]);
            }
        }
        S::transpose(&mut sums[..S::LANES]);
        let mut width = S::LANES;
        while width > 1 {
            width /= 2;
            for u in 0..width {
                sums[u] = S::add(sums[u], sums[u + width]);
            }
        }
        S::add(base, sums[0])
    }
}
