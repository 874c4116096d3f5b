//! Textbook formulas in double precision: elimination with partial pivoting, sums written out.

use super::{Parameters, Random};
use crate::scalar::{Real, Scalar, c64, parts_mut};
use crate::testing::drawn::part;
use crate::testing::rows::{Numbers, Pull};
use crate::testing::square::{adjoint, product, skew, skew_vjp, unitarity};
use crate::testing::wide;
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
        let diagonal = self.diagonal.as_ref().map(|g| wide(part(g, b, self.batch)));
        skew(&wide(part(&self.upper, b, self.batch)), diagonal.as_deref(), self.n)
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

    /// W of matrix b, and its gradients by V = 2 S^H W_bar D^* S^H for S = (I + A)^-1.
    pub fn definition(&self, b: usize) -> (Vec<T::Wide>, Pull<'_, T::Wide>) {
        let (n, d) = (self.n, self.factors(b));
        let unit = |e: usize| T::Wide::real(f64::from(u8::from(e / n == e % n)));
        let s = inverse(&self.skew(b).iter().enumerate().map(|(e, a)| *a + unit(e)).collect::<Vec<_>>(), n);
        let w: Vec<_> = (0..n * n).map(|e| (s[e].scale(2.0) - unit(e)) * d[e % n]).collect();
        let (adjoint, own) = (adjoint(&s, n), w.clone());
        let pull = move |ct: &[T::Wide]| -> Numbers {
            let scaled: Vec<_> = (0..n * n).map(|e| (ct[e] * d[e % n].conj()).scale(2.0)).collect();
            let v = product(&product(&adjoint, &scaled, n), &adjoint, n);
            // A_bar = -V
            let [upper, diagonal] = skew_vjp(&v.iter().map(|v| -*v).collect::<Vec<_>>(), n);
            let diagonal = if self.diagonal.is_some() { diagonal } else { vec![] };
            let column = |j: usize| (0..n).map(|i| (ct[i * n + j] * own[i * n + j].conj()).im()).sum();
            let phases = if self.phases.is_some() { (0..n).map(column).collect() } else { vec![] };
            vec![upper, diagonal, vec![], phases]
        };
        (w, Box::new(pull))
    }

    /// W of matrix b.
    pub fn matrix(&self, b: usize) -> Vec<T::Wide> {
        self.definition(b).0
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

#[test]
fn the_gradients_are_differences() {
    for n in 1..6 {
        let p = Parameters::<c64>::random(1, n, 2, 1.0);
        let ct: Vec<c64> = Random::new(n as u64 + 1).array(n * n, 1.0);
        let gradients = p.definition(0).1(&ct);
        let slope = |change: &dyn Fn(&mut Parameters<c64>, f64)| {
            let [high, low] = [1e-6, -1e-6].map(|h| {
                let mut moved = Parameters::<c64>::random(1, n, 2, 1.0);
                change(&mut moved, h);
                moved.matrix(0).iter().zip(&ct).map(|(w, c)| (w * c.conj()).re).sum::<f64>()
            });
            (high - low) / 2e-6
        };
        for (e, bar) in gradients[0].iter().enumerate() {
            assert!((slope(&|p, h| parts_mut(&mut p.upper)[e] += h) - bar).abs() < 1e-7);
        }
        for j in 0..n {
            assert!((slope(&|p, h| p.diagonal.as_mut().unwrap()[j] += h) - gradients[1][j]).abs() < 1e-7);
            assert!((slope(&|p, h| p.phases.as_mut().unwrap()[j] += h) - gradients[3][j]).abs() < 1e-7);
        }
    }
}
