//! Products of few rows with a matrix that is read once, in place: to pack it would take longer than to multiply by it.
//!
//! Row by row, a vector of columns at a time: one sum over k for each of its columns, in as many vectors, which are
//! transposed and added. So neither threads nor tiles change the order of a sum.

use crate::pack::Operand;
use crate::simd::Simd;

/// The most rows of the whole batch for which this is faster than packing.
pub const FEW: usize = 3;
/// Numbers of a vector on any instruction set, at most.
pub(super) const LANES: usize = 16;

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
    const { assert!(S::LANES <= LANES) };
    // SAFETY: columns from n on are read as the last one; the rest follows from the contract above.
    unsafe {
        let mut sums = [S::zero(); LANES];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recurrence::Affine;

    /// Arrays of just so many numbers, for tools that see each access.
    #[test]
    fn whole_and_partial_vectors() {
        for (k, n) in [(1, 1), (15, 5), (16, 16), (17, 33), (40, 20)] {
            for rows in 1..=FEW {
                let number = |i: usize| ((7 * i + 3) % 11) as f32 - 5.0;
                let [a, b, base]: [Vec<f32>; 3] =
                    [rows * k, n * k, rows * n].map(|len| (0..len).map(number).collect());
                let mut out = vec![f32::NAN; rows * n];
                let mut map = Affine::new(n, rows, out.as_mut_ptr());
                map.terms[1] = crate::tile::Term::rows(a.as_ptr(), k, k, std::ptr::null());
                map.matrices[1] = Operand::new(b.as_ptr(), k).t();
                map.in_place[1] = true;
                map.add = base.as_ptr();
                // SAFETY: the rows and columns exist.
                unsafe { map.run(0..rows, 0..n) }
                for (i, &found) in out.iter().enumerate() {
                    let (row, column) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
                    let expected = base[i] + row.iter().zip(column).map(|(a, b)| a * b).sum::<f32>();
                    assert_eq!(found, expected, "{k} {n} {rows}"); // small integers: no rounding
                }
            }
        }
    }
}
