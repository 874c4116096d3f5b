//! W against a Taylor series in double precision, gradients against the upper right block of exp [[A^H, W_bar], [0, A^H]].

use super::*;
use crate::scalar::Real;
use crate::testing::drawn::part;
use crate::testing::rows::{Definition, Numbers, Pull, check_defined};
use crate::testing::square::{product, skew, skew_vjp, unitarity};
use crate::testing::{every_type, fill, wide, within_work};
use num_traits::Zero;

/// The sum of M^k / k!, squared.
fn exp<W: Scalar<Real = f64>>(m: &[W], n: usize) -> Vec<W> {
    let norm = m.chunks(n).map(|row| row.iter().map(|x| x.modulus()).sum::<f64>()).fold(0.0, f64::max);
    let s = levels_of(norm);
    let m: Vec<W> = m.iter().map(|x| x.scale(2f64.powi(-s))).collect();
    let mut sum: Vec<W> = (0..n * n).map(|e| if e % (n + 1) == 0 { W::one() } else { W::zero() }).collect();
    let mut term = sum.clone();
    for k in 1..20 {
        term = product(&term, &m, n).iter().map(|x| x.scale(1.0 / f64::from(k))).collect();
        sum.iter_mut().zip(&term).for_each(|(sum, x)| *sum += *x);
    }
    for _ in 0..s {
        sum = product(&sum, &sum, n);
    }
    sum
}

fn levels_of(norm: f64) -> i32 {
    (norm.max(1e-300) / 0.5).log2().ceil().max(0.0) as i32
}

struct Parameters<T: Scalar> {
    upper: Vec<T>,
    diagonal: Option<Vec<T::Real>>,
    batch: usize,
    n: usize,
}

impl<T: Scalar> Parameters<T> {
    /// The matrices of a batch differ in size.
    fn random(batch: usize, n: usize, scale: f64) -> Self {
        let len = n * n.saturating_sub(1) / 2;
        let each = |len: usize, seed: usize| {
            let scale = |b: usize| if b % 3 == 2 { 0.01 } else { scale };
            (0..batch).flat_map(|b| fill::<T>(len, scale(b), (seed + b) as u64 + 1)).collect::<Vec<T>>()
        };
        let diagonal = (T::PARTS == 2 && n % 3 != 2).then(|| each(n, 7).iter().map(|x| x.re()).collect());
        Parameters { upper: each(len, n), diagonal, batch, n }
    }

    fn view(&self) -> Exponential<'_, T> {
        Exponential::new(&self.upper, self.diagonal.as_deref(), self.batch, self.n).unwrap()
    }

    fn matrix(&self, threads: usize) -> Vec<T> {
        let mut w = vec![T::real(T::Real::of(7.0)); self.batch * self.n * self.n];
        self.view().matrix(&mut w, None, &Budget::of(threads)).unwrap();
        w
    }

    /// The norm of the exponent of matrix b, W, and its gradients by the block matrix, which has half of the exponent where the cotangent is
    /// large.
    fn definition(&self, b: usize) -> (f64, (Vec<T::Wide>, Pull<'static, T::Wide>)) {
        let (n, diagonal) = (self.n, self.diagonal.as_ref().map(|g| wide(part(g, b, self.batch))));
        let a = skew(&wide(part(&self.upper, b, self.batch)), diagonal.as_deref(), n);
        let w = exp(&a, n);
        let norm = a.chunks(n).map(|row| row.iter().map(|x| x.modulus()).sum::<f64>()).fold(1.0, f64::max);
        let pull = move |ct: &[T::Wide]| -> Numbers {
            let mut block = vec![T::Wide::zero(); 4 * n * n];
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let x = a[j * n + i].conj();
                block[i * 2 * n + j] = x;
                block[(n + i) * 2 * n + n + j] = x;
                block[i * 2 * n + n + j] = ct[i * n + j];
            }
            let block = exp(&block, 2 * n);
            let a_bar: Vec<_> = (0..n * n).map(|e| block[e / n * 2 * n + n + e % n]).collect();
            let [upper, g] = skew_vjp(&a_bar, n);
            vec![upper, if diagonal.is_some() { g } else { vec![] }]
        };
        (norm, (w, Box::new(pull)))
    }
}

fn check<T: Scalar>(batch: usize, n: usize, scale: f64) {
    if !within_work(&[batch, 40, n, n, n]) {
        return;
    }
    let p = Parameters::<T>::random(batch, n, scale);
    let (norms, matrices): (Vec<f64>, _) = (0..batch).map(|b| p.definition(b)).unzip();
    let definition = Definition {
        matrices,
        tolerances: [30.0, 60.0].map(|units| units * T::Real::EPS.f64()),
        scale: &|k| norms[k],
        floor: 0.0,
        every: 11,
        threads: [&[1, 2, 3][..], &[1, 2], &[1, 3]][(n + batch) % 3],
    };
    check_defined(
        &p.view(),
        if n < 20 { 2 } else { 0 },
        &definition,
        &format!("batch {batch} n {n} scale {scale}"),
    );
    let w = p.matrix(2);
    assert!(w.chunks(n * n).all(|w| unitarity(w, n) < 20.0), "batch {batch} n {n} scale {scale}: e(W)");
}

fn all<T: Scalar>() {
    for n in 1..34 {
        for (batch, scale) in [(1, 0.3), (3, 2.0), (17, 1.0), (33, 5.0)] {
            check::<T>(batch, n, scale);
        }
    }
    for n in [35, 47, 64, 66, 81] {
        check::<T>(1, n, 1.0 / (n as f64).sqrt());
        check::<T>(1 + n % 3, n, 3.0);
    }
}

#[test]
fn values_and_gradients_equal_the_series() {
    every_type!(all());
}
