//! Against rotations multiplied out.

use super::*;
use crate::testing::{every_type, numbers, rows};

/// G_1 G_2 ... G_m, column by column.
fn product<W: Scalar<Real = f64>>(n: usize, angles: &[f64], pairs: &[i64]) -> Vec<W> {
    let mut w: Vec<W> = (0..n * n).map(|at| W::real(f64::from(u8::from(at % (n + 1) == 0)))).collect();
    for (angle, pair) in angles.iter().zip(pairs.chunks_exact(2)).rev() {
        let ((s, c), i, j) = (angle.sin_cos(), pair[0] as usize, pair[1] as usize);
        for column in 0..n {
            let (a, b) = (w[i * n + column], w[j * n + column]);
            (w[i * n + column], w[j * n + column]) = (a.scale(c) - b.scale(s), a.scale(s) + b.scale(c));
        }
    }
    w
}

#[test]
fn blocks_equal_the_rotations() {
    fn all<T: Scalar>() {
        for (n, m, rows) in [(1, 0, 2), (2, 3, 1), (5, 9, 0), (7, 20, 11), (17, 40, 5)] {
            let angles: Vec<T::Real> = numbers(m, 1);
            let pairs: Vec<i64> =
                (0..m).flat_map(|k| [k % n, (k + 1 + k / n % (n - 1)) % n]).map(|i| i as i64).collect();
            let op = Givens::<T>::new(&angles, &pairs, 1, n, m).unwrap();
            rows::check(&op, rows, true, &|given| product::<T::Wide>(n, &given[1], &pairs));
        }
    }
    every_type!(all());
}
