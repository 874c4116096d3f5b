//! Every test requires bitwise equal results for one, two and three members, and unchanged padding after each row.

use super::*;
use crate::kernels::Buffer;
use crate::parallel::{self, Shared};
use crate::testing::{every_type, numbers};
use std::f64::consts::LN_2;

const SIZES: [usize; 13] = [0, 1, 2, 3, 8, 9, 31, 32, 33, 64, 65, 100, 200];

fn sizes() -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(|&n| crate::testing::within_work(&[n, n, n]))
}
/// Numbers of padding after each row.
const PAD: usize = 3;

/// A row-major n x m matrix.
#[derive(Clone, PartialEq)]
struct Matrix<T> {
    n: usize,
    m: usize,
    x: Vec<T>,
}

impl<T: Scalar> Matrix<T> {
    fn new(n: usize, m: usize, f: impl Fn(usize, usize) -> T) -> Self {
        Matrix { n, m, x: (0..n * m).map(|e| f(e / m, e % m)).collect() }
    }
    fn identity(n: usize) -> Self {
        Self::new(n, n, |i, j| T::real(T::Real::of(f64::from(u8::from(i == j)))))
    }
    fn scattered(n: usize, m: usize, seed: u64) -> Self {
        Matrix { n, m, x: numbers(n * m, seed) }
    }
    fn at(&self, i: usize, j: usize) -> T {
        self.x[i * self.m + j]
    }
    fn map<U: Scalar>(&self, f: impl Fn(T) -> U) -> Matrix<U> {
        Matrix { n: self.n, m: self.m, x: self.x.iter().map(|&x| f(x)).collect() }
    }
    fn wide(&self) -> Matrix<T::Wide> {
        self.map(T::widen)
    }
    fn sizes(&self) -> Matrix<f64> {
        self.map(|x| x.modulus().f64())
    }
    fn adjoint(&self) -> Self {
        Self::new(self.m, self.n, |i, j| self.at(j, i).conj())
    }
    /// The textbook product.
    fn times(&self, other: &Self) -> Self {
        let mut product = Self::new(self.n, other.m, |_, _| T::default());
        for i in 0..self.n {
            for k in 0..self.m {
                for j in 0..other.m {
                    product.x[i * other.m + j] += self.at(i, k) * other.at(k, j);
                }
            }
        }
        product
    }
    fn exchanged(mut self, pivots: impl Iterator<Item = (usize, usize)>) -> Self {
        for (i, pivot) in pivots {
            (0..self.m).for_each(|j| self.x.swap(i * self.m + j, pivot * self.m + j));
        }
        self
    }
    /// With columns of padding.
    fn padded(&self) -> Vec<T> {
        let sentinel = [T::real(T::Real::of(7.0)); PAD];
        (0..self.n).flat_map(|i| self.x[i * self.m..][..self.m].iter().copied().chain(sentinel)).collect()
    }
    fn unpadded(n: usize, m: usize, x: &[T]) -> Self {
        assert!(x.chunks(m + PAD).all(|row| row[m..].iter().all(|&x| x == T::real(T::Real::of(7.0)))));
        Self::new(n, m, |i, j| x[i * (m + PAD) + j])
    }
    /// No entry differs by more than `units` n eps times that of `bound`.
    fn near(&self, other: &Self, bound: &Matrix<f64>, units: f64, what: &str) {
        let unit = units * self.n as f64 * T::Real::EPS.f64();
        for (e, (x, y)) in self.x.iter().zip(&other.x).enumerate() {
            let (error, bound) = ((x.widen() - y.widen()).modulus(), unit * bound.x[e]);
            assert!(error <= bound, "{what}, n {} at {e}: {error:e} of {bound:e}", self.n);
        }
    }
}

/// The factors of A, and its inverse.
struct Outcome<T> {
    l: Matrix<T>,
    u: Matrix<T>,
    pivots: Vec<usize>,
    inverse: Matrix<T>,
    log: f64,
}

fn on<T: Scalar>(a: &Matrix<T>, threads: usize) -> (Vec<T>, Vec<usize>, Vec<T>, [f64; 2]) {
    let (n, ld) = (a.n, a.n + PAD);
    let (mut lu, mut inverse, mut pivots) = (a.padded(), a.padded(), vec![usize::MAX; n]);
    let mut logs = [0.0; 2];
    {
        let (lu, inverse, pivots) =
            (Shared(lu.as_mut_ptr()), Shared(inverse.as_mut_ptr()), Shared(pivots.as_mut_ptr()));
        let logs = Shared(logs.as_mut_ptr());
        let memory = Buffer::<T>::scratch(n * n);
        let memory = Shared(memory.ptr());
        parallel::run(threads, &|member| {
            let scratch = Buffer::<T::Real>::scratch(Lu::<T>::scratch(n));
            let factors = Lu { a: lu.at(0), ld, n, pivots: pivots.at(0) };
            let copy = Lu { a: inverse.at(0), ..factors };
            // SAFETY: all sizes are those of A, and one member writes the logarithms.
            unsafe {
                let log = copy.invert(member, memory.at(0), scratch.ptr());
                factors.factor(member, scratch.ptr());
                if member.id == 0 {
                    *logs.at(0) = log;
                    *logs.at(1) = factors.log_abs_det();
                }
            }
        });
    }
    (lu, pivots, inverse, logs)
}

/// Bitwise equality, including NaN.
fn same<T: Scalar>(x: &[T], y: &[T]) -> bool {
    let bits = |x: &[T]| -> Vec<[u64; 2]> {
        x.iter().map(|x| [x.re().f64().to_bits(), x.im().f64().to_bits()]).collect()
    };
    bits(x) == bits(y)
}

fn run<T: Scalar>(a: &Matrix<T>) -> Outcome<T> {
    let (lu, pivots, inverse, logs) = on(a, 1);
    for threads in [2, 3] {
        let other = on(a, threads);
        assert!(same(&lu, &other.0) && pivots == other.1, "n {}, {threads} threads: factors", a.n);
        assert!(same(&inverse, &other.2), "n {}, {threads} threads: inverse", a.n);
    }
    assert!(logs[0] == logs[1] || logs.iter().all(|log| log.is_nan()));
    assert!(pivots.iter().enumerate().all(|(i, &pivot)| (i..a.n).contains(&pivot)));
    let lu = Matrix::unpadded(a.n, a.n, &lu);
    let (one, zero) = (T::one(), T::default());
    let unit = |i: usize, j: usize| if i == j { one } else { zero };
    Outcome {
        l: Matrix::new(a.n, a.n, |i, j| if i > j { lu.at(i, j) } else { unit(i, j) }),
        u: Matrix::new(a.n, a.n, |i, j| if i <= j { lu.at(i, j) } else { zero }),
        pivots,
        inverse: Matrix::unpadded(a.n, a.n, &inverse),
        log: logs[0],
    }
}

/// P A = L U with bounded L and, unless singular, A A^-1 = I, up to a few n eps of |L| |U| (Higham 2002,
/// theorems 9.3 and 9.4).
fn check<T: Scalar>(a: &Matrix<T>, what: &str) -> Outcome<T> {
    let n = a.n;
    let out = run(a);
    let forward = || out.pivots.iter().copied().enumerate();
    let (l, u) = (out.l.wide(), out.u.wide());
    let permuted = a.wide().exchanged(forward());
    let size = out.l.sizes().times(&out.u.sizes());
    let narrow = |x: &Matrix<T::Wide>| x.map(T::narrow);
    narrow(&permuted).near(&narrow(&l.times(&u)), &size, 2.0, &format!("{what}: P A = L U"));
    let largest = if T::PARTS == 1 { 1.0 } else { 2f64.sqrt() * (1.0 + 8.0 * T::Real::EPS.f64()) };
    assert!(out.l.sizes().x.iter().all(|&l| l <= largest), "{what}: |L|");
    let log: f64 = (0..n).map(|i| u.at(i, i).modulus().ln()).sum();
    let most = 8.0 * (n + 1) as f64 * T::Real::EPS.f64() * (1.0 + log.abs());
    assert!(out.log == log || (out.log - log).abs() <= most, "{what}: {} for {log}", out.log);
    if out.log.is_finite() {
        let size = size.exchanged(forward().collect::<Vec<_>>().into_iter().rev());
        let identity = Matrix::identity(n);
        let product = narrow(&a.wide().times(&out.inverse.wide()));
        product.near(&identity, &size.times(&out.inverse.sizes()), 4.0, &format!("{what}: A A^-1 = I"));
    }
    out
}

#[test]
fn factors_and_inverses_leave_small_residuals() {
    fn all<T: Scalar>() {
        for n in sizes() {
            let random = Matrix::<T>::scattered(n, n, n as u64 + 1);
            let tiny = T::real(T::Real::of(1e-9));
            check(&random, "random");
            // the leading minors of rows 0 and 1 are tiny, and the first two rows nearly equal
            let near = |i: usize, j: usize| match (i, j) {
                (0, 0) => tiny,
                (1, _) if n > 2 => random.at(0, j) + if j == 2 { tiny } else { T::default() },
                _ => random.at(i, j),
            };
            check(&Matrix::new(n, n, near), "tiny leading minors");
            let scale = |i: usize| T::real(T::Real::of(2f64.powi((i % 41) as i32 - 20)));
            check(&Matrix::new(n, n, |i, j| random.at(i, j) * scale(i * 7)), "rows of all sizes");
        }
    }
    every_type!(all());
}

#[test]
fn permutations_and_growth_are_known() {
    fn all<T: Scalar>() {
        for n in sizes() {
            // 7 divides none of the sizes except 0
            let scaled = |x: f64| T::real(T::Real::of(x));
            let out = check(
                &Matrix::<T>::new(n, n, |i, j| scaled(if j == (i * 7 + 3) % n { 4.0 } else { 0.0 })),
                "permutation",
            );
            assert!((out.log - 2.0 * LN_2 * n as f64).abs() < 1e-12 * (n + 1) as f64);
            assert!(out.u == Matrix::new(n, n, |i, j| scaled(if i == j { 4.0 } else { 0.0 })));
            // Wilkinson: U_in = 2^i, which f32 represents up to n = 128
            let n = n.min(100);
            let wilkinson = |i: usize, j: usize| match (i, j) {
                _ if j + 1 == n || i == j => 1.0,
                _ if i > j => -1.0,
                _ => 0.0,
            };
            let out = check(&Matrix::<T>::new(n, n, |i, j| scaled(wilkinson(i, j))), "Wilkinson");
            assert!(out.pivots.iter().copied().eq(0..n));
            let grown = Matrix::new(n, 1, |i, _| scaled(2f64.powi(i as i32)));
            let last = Matrix::new(n, 1, |i, _| out.u.at(i, n - 1));
            last.near(&grown, &grown.sizes(), 1.0, "growth");
            let error = (out.log - LN_2 * n.saturating_sub(1) as f64).abs();
            assert!(error <= n as f64 * T::Real::EPS.f64(), "n {n}: {error:e}");
        }
    }
    every_type!(all());
}

#[test]
fn singular_matrices_have_factors_and_no_inverse() {
    fn all<T: Scalar>() {
        for n in sizes().filter(|&n| n > 0) {
            let random = Matrix::<T>::scattered(n, n, n as u64 + 5);
            let zero = T::default();
            for (what, a) in [
                ("zero", Matrix::new(n, n, |_, _| zero)),
                (
                    "a column of zeros",
                    Matrix::new(n, n, |i, j| if j == n / 2 { zero } else { random.at(i, j) }),
                ),
                ("a row of zeros", Matrix::new(n, n, |i, j| if i == n / 2 { zero } else { random.at(i, j) })),
                ("ones", Matrix::new(n, n, |_, _| if n == 1 { zero } else { T::one() })),
            ] {
                let out = check(&a, what);
                assert_eq!(out.log, f64::NEG_INFINITY, "{what}, n {n}");
                assert!(!out.inverse.x.iter().all(|x| x.finite()), "{what}, n {n}");
            }
            // rank n / 2 up to rounding
            let half = Matrix::<T>::scattered(n, n / 2, 9);
            check(&half.times(&half.adjoint()), "half the rank");
        }
    }
    every_type!(all());
}

#[test]
fn nan_and_infinity_show_in_the_determinant() {
    fn all<T: Scalar>() {
        for n in [1, 2, 9, 33, 65] {
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                for e in [0, n * n / 2, n * n - 1, n - 1] {
                    let mut a = Matrix::<T>::scattered(n, n, 21);
                    a.x[e] = T::real(T::Real::of(bad));
                    let log = run(&a).log;
                    assert!(!log.is_finite(), "n {n}, {bad} at {e}: {log}");
                }
            }
        }
    }
    every_type!(all());
}

#[test]
fn squares_of_entries_may_overflow_and_underflow() {
    fn all<T: Scalar>() {
        let range = T::Real::EPS.f64().powf(if size_of::<T::Real>() == 4 { 4.0 } else { 17.0 });
        for n in [1, 5, 40] {
            let random = Matrix::<T>::scattered(n, n, 31);
            let log = check(&random, "of size 1").log;
            for scale in [range, 1.0 / range] {
                let scaled = check(&random.map(|x| x.scale(T::Real::of(scale))), "scaled").log;
                let expected = log + n as f64 * scale.ln();
                assert!((scaled - expected).abs() < 1e-3 * n as f64, "n {n}, {scale:e}");
            }
        }
    }
    every_type!(all());
}
