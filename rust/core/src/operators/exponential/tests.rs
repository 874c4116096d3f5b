//! W against a Taylor series in double precision, gradients against the upper right block of exp [[A^H, W_bar], [0, A^H]].

use super::*;
use crate::scalar::{Real, c32, c64};
use crate::testing::square::{product, unitarity};
use crate::testing::{fill, near, numbers};
use num_traits::One;

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

    fn gradients(&self, saved: Option<&[T]>, ct: &[T], threads: usize) -> (Vec<T>, Option<Vec<T::Real>>) {
        let mut upper = self.upper.clone();
        let mut diagonal = self.diagonal.clone();
        let bars = &mut [Bar::Own(&mut upper), diagonal.as_mut().map_or(Bar::None, |bar| Bar::Real(bar))];
        self.view().matrix_vjp(saved, ct, bars, &Budget::of(threads)).unwrap();
        (upper, diagonal)
    }

    fn skew(&self, b: usize) -> Vec<T::Wide> {
        let n = self.n;
        let mut a = vec![T::Wide::default(); n * n];
        let mut e = b * n * (n - 1) / 2;
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
}

fn check<T: Scalar>(batch: usize, n: usize, scale: f64, threads: usize) {
    if !crate::testing::within_work(&[batch, 40, n, n, n]) {
        return;
    }
    let p = Parameters::<T>::random(batch, n, scale);
    let w = p.matrix(threads);
    let ct: Vec<T> = numbers(w.len(), 4);
    let (upper, diagonal) = p.gradients(Some(&w), &ct, threads);
    for b in (0..batch).step_by(11) {
        let (a, what) = (p.skew(b), format!("batch {batch} n {n} scale {scale} matrix {b}"));
        let own = &w[b * n * n..(b + 1) * n * n];
        let norm = a.chunks(n).map(|row| row.iter().map(|x| x.modulus()).sum::<f64>()).fold(1.0, f64::max);
        near(own, &exp(&a, n), 30.0 * norm * T::Real::EPS.f64(), &what);
        let e = unitarity(own, n);
        assert!(e < 20.0, "{what}: e(W) = {e:.1}");
        // the block matrix, of half the size of the exponent where the cotangent is large
        let mut block = vec![T::Wide::default(); 4 * n * n];
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let x = a[j * n + i].conj();
            block[i * 2 * n + j] = x;
            block[(n + i) * 2 * n + n + j] = x;
            block[i * 2 * n + n + j] = ct[b * n * n + i * n + j].widen();
        }
        let block = exp(&block, 2 * n);
        let bar = |i: usize, j: usize| block[i * 2 * n + n + j];
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let expected: Vec<T::Wide> = pairs.map(|(i, j)| bar(i, j) - bar(j, i).conj()).collect();
        let len = expected.len();
        near(
            &upper[b * len..(b + 1) * len],
            &expected,
            60.0 * norm * T::Real::EPS.f64(),
            format!("upper_bar, {what}"),
        );
        if let Some(diagonal) = &diagonal {
            let expected: Vec<f64> = (0..n).map(|i| bar(i, i).im()).collect();
            near(
                &diagonal[b * n..(b + 1) * n],
                &expected,
                60.0 * norm * T::Real::EPS.f64(),
                format!("diagonal_bar, {what}"),
            );
        }
    }
    let again = p.gradients(None, &ct, 1);
    assert!(again == (upper, diagonal), "batch {batch} n {n}: threads or what was saved change bits");
    assert!(p.matrix(1) == w, "batch {batch} n {n}: threads change bits");
}

fn all<T: Scalar>() {
    for n in 1..34 {
        for (batch, scale) in [(1, 0.3), (3, 2.0), (17, 1.0), (33, 5.0)] {
            check::<T>(batch, n, scale, 1 + (n + batch) % 3);
        }
    }
    for n in [35, 47, 64, 66, 81] {
        check::<T>(1, n, 1.0 / (n as f64).sqrt(), 2);
        check::<T>(1 + n % 3, n, 3.0, 3);
    }
}

#[test]
fn values_and_gradients_equal_the_series() {
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn large_ones_are_unitary() {
    fn all<T: Scalar>() {
        for n in [1, 2, 3, 5, 16, 31, 65] {
            // the number of squarings grows with the scale, whatever the batch
            for (batch, scales) in [(1, &[1e2, 1e4, 1e9, 1e35][..]), (40, &[1e4])] {
                for &scale in scales {
                    if !crate::testing::within_work(&[batch, 40, n, n, n]) {
                        continue;
                    }
                    let p = Parameters::<T>::random(batch, n, scale);
                    let w = p.matrix(2);
                    for w in w.chunks_exact(n * n) {
                        let e = unitarity(w, n);
                        assert!(e < 20.0, "n {n} scale {scale}: e(W) = {e:.1}");
                    }
                    let ct: Vec<T> = numbers(w.len(), 4);
                    let (upper, diagonal) = p.gradients(Some(&w), &ct, 1);
                    assert!(
                        upper.iter().all(|x| x.finite()) && diagonal.iter().flatten().all(|x| x.finite())
                    );
                }
            }
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn zero_is_the_identity_and_nothing_hides_a_nan() {
    for (batch, n) in [(1, 5), (40, 3), (1, 70)] {
        let len = n * (n - 1) / 2;
        let mut p = Parameters::<f32> { upper: vec![0.0; batch * len], diagonal: None, batch, n };
        let w = p.matrix(2);
        assert!(w.iter().enumerate().all(|(e, x)| *x == f32::from(u8::from(e % (n * n) % (n + 1) == 0))));
        let ct: Vec<f32> = numbers(w.len(), 2);
        let (upper, _) = p.gradients(Some(&w), &ct, 1);
        assert_eq!(upper[0], ct[1] - ct[n]);
        for odd in [f32::NAN, f32::INFINITY] {
            p.upper[0] = odd;
            let w = p.matrix(1);
            assert!(w[..n * n].iter().any(|x| x.is_nan()));
            assert!(w[n * n..].iter().all(|x| x.is_finite()), "a lane changes another");
        }
    }
    assert!(Parameters::<f64> { upper: vec![], diagonal: None, batch: 0, n: 4 }.matrix(1).is_empty());
}

#[test]
fn bad_arguments_are_named() {
    let refused = |upper: &[f64], diagonal: Option<&[f64]>| {
        Exponential::<f64>::new(upper, diagonal, 1, 2).err().unwrap().to_string()
    };
    assert_eq!(refused(&[], None), "upper: expected 1 elements, got 0");
    assert!(refused(&[1.0], Some(&[0.0; 2])).starts_with("diagonal must not be given for a real type"));
    let error = Exponential::<c64>::new(&[c64::one()], Some(&[0.0]), 1, 2).err().unwrap().to_string();
    assert_eq!(error, "diagonal: expected 2 elements, got 1");
}
