//! A = Q S with orthonormal columns of Q and a positive definite S has W = Q; the gradient against finite differences.

use super::*;
use crate::scalar::{Real, c64};
use crate::testing::{Guarded, every_type, numbers, wide, within_work};

/// (batch, m, n): one per lane, more than a group, tall, wide, iterated.
const SIZES: [(usize, usize, usize); 11] = [
    (1, 1, 1),
    (3, 2, 2),
    (37, 3, 3),
    (5, 8, 8),
    (4, 9, 3),
    (4, 2, 7),
    (2, 40, 1),
    (2, 9, 9),
    (1, 70, 40),
    (2, 12, 30),
    (0, 3, 3),
];

/// C = A B of row-major matrices, (m, n, k).
fn product<W: Scalar>(
    (m, n, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> W,
    b: impl Fn(usize, usize) -> W,
) -> Vec<W> {
    (0..m * n).map(|e| (0..k).map(|p| a(e / n, p) * b(p, e % n)).sum()).collect()
}

/// max |W^H W - I| of the columns, or of the rows of a wide matrix.
fn defect<T: Scalar>(w: &[T], m: usize, n: usize) -> f64 {
    let w = wide(w);
    let (long, short) = (m.max(n), m.min(n));
    let at = |i: usize, j: usize| if m >= n { w[i * n + j] } else { w[j * n + i].conj() };
    let gram = product((short, short, long), |i, p| at(p, i).conj(), at);
    let unit = |e: usize| T::Wide::real(f64::from(u8::from(e / short == e % short)));
    gram.iter().enumerate().map(|(e, x)| (*x - unit(e)).modulus()).fold(0.0, f64::max)
}

fn nearest<T: Scalar>(a: &[T], sizes: (usize, usize, usize), special: bool, threads: usize) -> Vec<T> {
    let mut out = Guarded::new(a.len());
    procrustes(a, sizes, special, out.inner(), threads).unwrap();
    out.take()
}

fn case<T: Scalar>(sizes: (usize, usize, usize)) {
    let (batch, m, n) = sizes;
    if !within_work(&[batch, m, n, m.min(n)]) {
        return;
    }
    let (eps, what) = (T::Real::EPS.f64(), format!("{sizes:?} {}", std::any::type_name::<T>()));
    let a: Vec<T> = numbers(batch * m * n, 3);
    let w = nearest(&a, sizes, false, 1);
    for threads in [2, 3] {
        assert!(nearest(&a, sizes, false, threads) == w, "{what}, {threads} threads");
    }
    let each = m * n;
    for b in 0..batch {
        let (a, w) = (&a[b * each..(b + 1) * each], &w[b * each..(b + 1) * each]);
        assert!(defect(w, m, n) < 20.0 * eps * (m + n) as f64, "{what}: {:e}", defect(w, m, n));
        assert!(nearest(a, (1, m, n), false, 1) == *w, "{what}: a member alone");
        // W^H A is Hermitian and positive: W is the polar factor
        let (a_, w_) = (wide(a), wide(w));
        let k = m.min(n);
        let h = if m >= n {
            product((k, k, m), |i, p| w_[p * n + i].conj(), |p, j| a_[p * n + j])
        } else {
            product((k, k, n), |i, p| a_[i * n + p], |p, j| w_[j * n + p].conj())
        };
        let size = a_.iter().map(|x| x.abs2()).sum::<f64>().sqrt();
        for e in 0..k * k {
            let error = (h[e] - h[e % k * k + e / k].conj()).modulus();
            assert!(error < 40.0 * eps * size * (m + n) as f64, "{what}: {error:e} of {size}");
        }
        let trace = (0..k).map(|i| h[i * k + i].re()).sum::<f64>();
        assert!(trace > 0.0 && trace < size * (k as f64).sqrt() * (1.0 + 1e-3), "{what}");
        for power in [-100, 100] {
            let by = if eps > 1e-10 { 2f64.powi(power) } else { 2f64.powi(9 * power) };
            let scaled: Vec<T> = a.iter().map(|x| x.scale(T::Real::of(by))).collect();
            assert!(nearest(&scaled, (1, m, n), false, 1) == *w, "{what}: times 2^{power}");
        }
    }
}

#[test]
fn the_polar_factor_of_every_size() {
    for sizes in SIZES {
        every_type!(case(sizes));
    }
}

/// The derivative of W along a direction, by central differences, against the gradient.
fn gradient_case<T: Scalar<Real = f64>>(sizes: (usize, usize, usize), special: bool, equal: bool) {
    let (batch, m, n) = sizes;
    let mut a: Vec<T> = numbers(batch * m * n, 5);
    if equal {
        a = nearest(&a, sizes, special, 1);
    }
    let (ct, along): (Vec<T>, Vec<T>) = (numbers(a.len(), 7), numbers(a.len(), 9));
    let mut bar = Guarded::new(a.len());
    let w = nearest(&a, sizes, special, 1);
    procrustes_vjp((&a, &w, &ct), sizes, special, bar.inner(), 2).unwrap();
    let bar = bar.take();
    let dot = |x: &[T], y: &[T]| x.iter().zip(y).map(|(x, y)| (x.conj() * *y).re()).sum::<f64>();
    let h = 1e-5;
    let moved = |by: f64| {
        let a: Vec<T> = a.iter().zip(&along).map(|(a, d)| *a + d.scale(by)).collect();
        dot(&ct, &nearest(&a, sizes, special, 1))
    };
    let slope = (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h);
    let found = dot(&bar, &along);
    assert!(
        (found - slope).abs() < 1e-7 * slope.abs().max(1.0),
        "{sizes:?} {special} {equal}: {found} and {slope}"
    );
}

#[test]
fn gradients_are_those_of_differences() {
    for equal in [false, true] {
        for sizes in [(1, 1, 1), (2, 3, 3), (11, 4, 4), (2, 6, 3), (2, 2, 5)] {
            gradient_case::<f64>(sizes, false, equal);
            gradient_case::<c64>(sizes, false, equal);
        }
        for sizes in [(2, 9, 9), (1, 31, 12), (2, 10, 14)] {
            gradient_case::<f64>(sizes, false, equal);
            gradient_case::<c64>(sizes, false, equal);
        }
        gradient_case::<f64>((11, 3, 3), true, equal);
        gradient_case::<f64>((2, 2, 2), true, equal);
        gradient_case::<f64>((4, 12, 12), true, equal);
    }
}

/// Zeros, ones, a partial identity and one with a hole, of which the products keep every zero.
#[test]
fn singular_matrices_have_orthogonal_ones() {
    fn all<T: Scalar>() {
        let eps = T::Real::EPS.f64();
        for n in [1, 3, 8, 9, 20, 54] {
            let rank =
                |rank: usize| move |e: usize| f64::from(u8::from(e.is_multiple_of(n + 1) && e / n < rank));
            let of = |f: &dyn Fn(usize) -> f64| -> Vec<T> {
                (0..n * n).map(|e| T::real(T::Real::of(f(e)))).collect()
            };
            for a in [
                of(&|_| 0.0),
                of(&|_| 1.0),
                of(&rank(n - 1)),
                of(&rank(n / 2)),
                of(&|e| rank(n / 3)(e) * 1e-300),
            ] {
                for special in [false, T::PARTS == 1] {
                    let w = nearest(&a, (1, n, n), special, 1);
                    let off = defect(&w, n, n);
                    assert!(off < 20.0 * eps * n as f64, "n = {n}: {off:e}");
                    let inner = a.iter().zip(&w).map(|(a, w)| (*w * a.conj()).re().f64()).sum::<f64>();
                    let trace = (0..n).map(|i| a[i * n + i].re().f64()).sum::<f64>();
                    assert!(
                        (inner - trace).abs() <= 20.0 * eps * n as f64 * trace,
                        "n = {n}: {inner} of {trace}"
                    );
                }
            }
        }
    }
    every_type!(all());
}

/// Singular values of one size, spread, and some that take eigenvectors; threads change no bit.
#[test]
fn gradients_of_large_matrices() {
    let n = 70;
    let (q, ct): (Vec<f64>, Vec<f64>) =
        (nearest(&numbers(n * n, 3), (1, n, n), false, 1), numbers(4 * n * n, 5));
    // Q^T diag(s) Q, with W = I
    let of = |s: &dyn Fn(usize) -> f64| product((n, n, n), |i, p| q[p * n + i] * s(p), |p, j| q[p * n + j]);
    let spread = |i: usize| 1e-3f64.powf(i as f64 / n as f64);
    let last = |x: f64| move |i: usize| if i + 1 < n { 1.0 } else { x };
    let a = [of(&|_| 1.0), of(&spread), of(&last(0.0)), of(&last(-0.1))].concat();
    let w: Vec<f64> = (0..4 * n * n).map(|e| f64::from(u8::from(e % (n * n) % (n + 1) == 0))).collect();
    let run = |threads| {
        let mut bar = Guarded::new(a.len());
        procrustes_vjp((&a, &w, &ct), (4, n, n), false, bar.inner(), threads).unwrap();
        bar.take()
    };
    let bar = run(1);
    for threads in [2, 3] {
        assert!(run(threads) == bar, "{threads} threads");
    }
    // H Y + Y H = ct - ct^T
    for (k, bar) in bar.chunks(n * n).enumerate() {
        let (h, ct) = (&a[k * n * n..], &ct[k * n * n..]);
        let sides = product((n, n, n), |i, p| h[i * n + p], |p, j| bar[p * n + j]);
        for e in 0..n * n {
            let t = e % n * n + e / n;
            let error = sides[e] - sides[t] - (ct[e] - ct[t]);
            assert!(error.abs() < 1e-12, "{k}: {error:e}");
        }
    }
}
