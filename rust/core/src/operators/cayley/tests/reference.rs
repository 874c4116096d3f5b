//! Textbook formulas in double precision: elimination with partial pivoting, sums written out.

use super::Parameters;
use crate::scalar::{Real, Scalar};
use crate::testing::drawn::part;
use crate::testing::rows::{Numbers, Pull};
use crate::testing::square::{adjoint, product, skew, skew_vjp};
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
}
