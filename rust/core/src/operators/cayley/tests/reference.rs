//! Textbook formulas in double precision: elimination with partial pivoting, sums written out.

use super::{Parameters, Random};
use crate::scalar::{Real, Scalar};
use crate::testing::square::{product, unitarity};
use num_traits::One;

/// Gauss-Jordan with partial pivoting on (M | I).
pub fn inverse<W: Scalar<Real = f64>>(m: &[W], n: usize) -> Vec<W> {
    let mut m = m.to_vec();
    let mut s: Vec<W> = (0..n * n).map(|e| W::real(f64::from(u8::from(e / n == e % n)))).collect();
    for k in 0..n {
        let best = (k..n).max_by(|&i, &j| m[i * n + k].modulus().total_cmp(&m[j * n + k].modulus())).unwrap();
        for j in 0..n {
            m.swap(k * n + j, best * n + j);
            s.swap(k * n + j, best * n + j);
        }
        let pivot = m[k * n + k];
        for j in 0..n {
            m[k * n + j] /= pivot;
            s[k * n + j] /= pivot;
        }
        for i in (0..n).filter(|&i| i != k) {
            let f = m[i * n + k];
            for j in 0..n {
                let (x, y) = (m[k * n + j], s[k * n + j]);
                m[i * n + j] -= f * x;
                s[i * n + j] -= f * y;
            }
        }
    }
    s
}

impl<T: Scalar> Parameters<T> {
    /// A of matrix b.
    pub fn skew(&self, b: usize) -> Vec<T::Wide> {
        let n = self.n;
        let mut a = vec![T::Wide::default(); n * n];
        let mut e = b * n * n.saturating_sub(1) / 2;
        for i in 0..n {
            if let Some(g) = &self.diagonal {
                a[i * n + i] = T::Wide::new(0.0, g[b * n + i].f64());
            }
            for j in i + 1..n {
                a[i * n + j] = self.upper[e].widen();
                a[j * n + i] = -self.upper[e].widen().conj();
                e += 1;
            }
        }
        a
    }

    /// The diagonal of D of matrix b.
    pub fn factors(&self, b: usize) -> Vec<T::Wide> {
        (0..self.n)
            .map(|j| match (&self.signs, &self.phases) {
                (Some(x), _) => T::Wide::real(x[b * self.n + j].f64()),
                (_, Some(x)) => T::Wide::cis(x[b * self.n + j].f64()),
                _ => T::Wide::one(),
            })
            .collect()
    }

    /// S of matrix b.
    pub fn inverse(&self, b: usize) -> Vec<T::Wide> {
        let mut m = self.skew(b);
        for i in 0..self.n {
            m[i * self.n + i] += T::Wide::one();
        }
        inverse(&m, self.n)
    }

    /// W of matrix b.
    pub fn matrix(&self, b: usize) -> Vec<T::Wide> {
        let n = self.n;
        let (mut w, d) = (self.inverse(b), self.factors(b));
        for e in 0..n * n {
            let delta = T::Wide::real(f64::from(u8::from(e / n == e % n)));
            w[e] = (w[e].scale(2.0) - delta) * d[e % n];
        }
        w
    }
}

#[test]
fn the_reference_inverts() {
    let n = 7;
    let m: Vec<f64> = Random::new(2).array(n * n, 1.0);
    let unit = product(&m, &inverse(&m, n), n);
    assert!(unitarity(&unit, n) < 1e5);
    // a rotation by 2 atan(a): W = [[1 - a^2, -2 a], [2 a, 1 - a^2]] / (1 + a^2) for A = [[0, a], [-a, 0]]
    let p = Parameters::<f64> { upper: vec![0.5], diagonal: None, signs: None, phases: None, batch: 1, n: 2 };
    let expected = [0.6, -0.8, 0.8, 0.6];
    assert!(p.matrix(0).iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15));
}
