//! Square matrices, as the textbook has them.

use crate::scalar::{Real, Scalar};
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
