//! Square matrices, as the textbook has them.

use crate::scalar::{Real, Scalar, parts};
use num_traits::One;

/// Row-major product of n x n matrices.
pub fn product<W: Scalar>(a: &[W], b: &[W], n: usize) -> Vec<W> {
    let mut c = vec![W::zero(); n * n];
    for i in 0..n {
        for p in 0..n {
            for j in 0..n {
                c[i * n + j] += a[i * n + p] * b[p * n + j];
            }
        }
    }
    c
}

/// Conjugate transpose.
pub fn adjoint<W: Scalar>(a: &[W], n: usize) -> Vec<W> {
    (0..n * n).map(|e| a[e % n * n + e / n].conj()).collect()
}

/// max |W^H W - I| / (n eps)
pub fn unitarity<T: Scalar>(w: &[T], n: usize) -> f64 {
    let w: Vec<T::Wide> = w.iter().map(|x| x.widen()).collect();
    let gram = product(&adjoint(&w, n), &w, n);
    let mut worst = 0.0f64;
    for (e, x) in gram.iter().enumerate() {
        let x = if e % (n + 1) == 0 { *x - T::Wide::one() } else { *x }.modulus();
        worst = if x.is_nan() { f64::INFINITY } else { worst.max(x) };
    }
    worst / (n as f64 * T::Real::EPS.f64())
}

/// The skew-Hermitian matrix with these entries above the diagonal, row by row, and imaginary parts on it.
pub fn skew<W: Scalar<Real = f64>>(upper: &[W], diagonal: Option<&[f64]>, n: usize) -> Vec<W> {
    let (mut a, mut entries) = (vec![W::zero(); n * n], upper.iter());
    for i in 0..n {
        a[i * n + i] = W::new(0.0, diagonal.map_or(0.0, |diagonal| diagonal[i]));
        for (j, x) in (i + 1..n).zip(&mut entries) {
            (a[i * n + j], a[j * n + i]) = (*x, -x.conj());
        }
    }
    a
}

/// The gradients of the parts of these entries, from that of the matrix.
pub fn skew_vjp<W: Scalar<Real = f64>>(a_bar: &[W], n: usize) -> [Vec<f64>; 2] {
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let upper: Vec<W> = pairs.map(|(i, j)| a_bar[i * n + j] - a_bar[j * n + i].conj()).collect();
    [parts(&upper).to_vec(), (0..n).map(|i| a_bar[i * n + i].im()).collect()]
}
