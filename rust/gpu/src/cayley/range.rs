//! The matrices A for which W is unitary to rounding in single precision; the CPU computes the others, in double precision.

use super::small;
use isometry_core::scalar::{Real, Scalar};

/// |A| of matrices in registers, and of larger ones: the table of [`super::Cayley`].
const SMALL: f64 = 3e4;
const LARGE: f64 = 300.0;

/// Whether every |A| of a batch is in the range: |A| is at most the largest sum of |A_ij| along a row. NaN is not.
pub fn holds<T: Scalar>(upper: &[T], diagonal: Option<&[T::Real]>, n: usize) -> bool {
    let most = if n <= small::MOST { SMALL } else { LARGE };
    let triangle = n * n.saturating_sub(1) / 2;
    if triangle == 0 {
        return true;
    }
    upper.chunks_exact(triangle).enumerate().all(|(b, upper)| {
        let mut sums = vec![0.0; n];
        if let Some(diagonal) = diagonal {
            for (sum, d) in sums.iter_mut().zip(&diagonal[b * n..]) {
                *sum = d.f64().abs();
            }
        }
        let mut rest = upper;
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
    })
}
