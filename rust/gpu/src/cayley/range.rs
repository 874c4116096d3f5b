//! The matrices A for which W is unitary to rounding in single precision; the CPU computes the others, in double precision.

use super::small;
use crate::array::zeros;
use isometry_core::Result;
use isometry_core::scalar::{Real, Scalar, parts};
use std::f64::consts::SQRT_2;

/// |A| of matrices in registers, and of larger ones: the table of [`super::Cayley`].
const SMALL: f64 = 3e4;
const LARGE: f64 = 300.0;

/// Whether every |A| of a batch is in the range. |A| is at most n times the largest entry, and at most the
/// largest row sum of |A_ij|, which takes longer to compute. NaN is not in the range.
pub fn holds<T: Scalar>(upper: &[T], diagonal: Option<&[T::Real]>, n: usize) -> Result<bool> {
    let most = if n <= small::MOST { SMALL } else { LARGE };
    let diagonal = diagonal.unwrap_or_default();
    // |a + i b| <= sqrt(2) max(|a|, |b|); a comparison with NaN is false
    let entry = most / (n as f64 * SQRT_2);
    let below = |x: &T::Real| x.f64().abs() <= entry;
    if parts(upper).iter().all(below) && diagonal.iter().all(below) {
        return Ok(true);
    }
    let mut sums = zeros::<f64>(n)?;
    let all = (0..upper.len() / (n * n.saturating_sub(1) / 2).max(1)).all(|b| {
        sums.fill(0.0);
        for (sum, d) in sums.iter_mut().zip(diagonal.get(b * n..).unwrap_or_default()) {
            *sum = d.f64().abs();
        }
        let mut rest = &upper[b * (n * (n - 1) / 2)..];
        for i in 0..n {
            let (row, below) = rest.split_at(n - 1 - i);
            for (j, a) in row.iter().enumerate() {
                let size = a.modulus().f64();
                sums[i] += size;
                sums[i + 1 + j] += size;
            }
            rest = below;
        }
        sums.iter().all(|&sum| sum <= most)
    });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isometry_core::scalar::c32;

    fn holds<T: Scalar>(upper: &[T], diagonal: Option<&[T::Real]>, n: usize) -> bool {
        super::holds(upper, diagonal, n).unwrap()
    }

    #[test]
    fn the_largest_row_decides() {
        let n = 8;
        let mut upper = vec![0.0f32; 2 * n * (n - 1) / 2];
        assert!(holds(&upper, None, n) && holds::<f32>(&[], None, 1) && holds::<f32>(&[], None, 0));
        // row 0 of the second matrix: 7 entries
        upper[28..35].fill(4e3);
        assert!(holds(&upper, None, n));
        upper[28..35].fill(5e3);
        assert!(!holds(&upper, None, n));
        upper[28..35].fill(f32::NAN);
        assert!(!holds(&upper, None, n));
    }

    #[test]
    fn complex_entries_and_the_diagonal_count() {
        let upper = [c32::new(1.5e4, 2e4)];
        assert!(holds(&upper, Some(&[4e3, -4e3]), 2));
        assert!(!holds(&upper, Some(&[4e3, -6e3]), 2));
        assert!(!holds(&[c32::new(2e4, -2.5e4)], None, 2));
    }

    #[test]
    fn larger_matrices_have_a_smaller_range() {
        let n = 65;
        let mut upper = vec![0.0f32; n * (n - 1) / 2];
        upper[0] = 299.0;
        assert!(holds(&upper, None, n));
        upper[0] = 301.0;
        assert!(!holds(&upper, None, n));
    }
}
