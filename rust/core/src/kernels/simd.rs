//! The operations of every vector type of this processor, against plain numbers.

use crate::scalar::Real;
use crate::testing::numbers;
use isometry_kernels::simd::Simd;
use isometry_kernels::{Isa, Kernel};
use num_traits::Float;
use std::marker::PhantomData;

struct Operations<R>(PhantomData<R>);

/// Equal, with the same sign of zero.
#[track_caller]
fn same<R: Real>(got: &[R], expected: impl Fn(usize) -> R, what: &str) {
    let bits = |x: R| x.f64().to_bits();
    let expected: Vec<R> = (0..got.len()).map(expected).collect();
    assert!(
        got.iter().zip(&expected).all(|(a, b)| bits(*a) == bits(*b)),
        "{what}: {got:?}, not {expected:?}"
    );
}

/// Equal up to rounding of numbers below 10.
#[track_caller]
fn close<R: Real>(got: &[R], expected: impl Fn(usize) -> R, what: &str) {
    for (i, x) in got.iter().enumerate() {
        assert!(
            (*x - expected(i)).abs() <= R::of(20.0) * R::EPS,
            "{what}: {got:?}, not {:?} at {i}",
            expected(i)
        );
    }
}

#[inline(always)]
unsafe fn put<S: Simd>(v: S::V) -> Vec<S::R> {
    let mut out = vec![S::R::of(0.0); S::LANES];
    // SAFETY: a whole vector; the caller has the instruction set.
    unsafe { S::store(out.as_mut_ptr(), v) };
    out
}

impl<R: Real> Kernel<R> for Operations<R> {
    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        // SAFETY: every pointer is to as many numbers as the operation takes.
        unsafe {
            arithmetic::<S>();
            choices::<S>();
            movements::<S>();
            tails::<S>();
            tiles::<S>();
        }
    }
}

#[inline(always)]
unsafe fn arithmetic<S: Simd>() {
    let n = S::LANES;
    let [x, y, z]: [Vec<S::R>; 3] = std::array::from_fn(|seed| numbers(n, seed as u64 + 1));
    // SAFETY: whole vectors; the caller has the instruction set.
    unsafe {
        let (a, b, c) = (S::load(x.as_ptr()), S::load(y.as_ptr()), S::load(z.as_ptr()));
        same(&put::<S>(S::add(a, b)), |i| x[i] + y[i], "a + b");
        same(&put::<S>(S::sub(a, b)), |i| x[i] - y[i], "a - b");
        same(&put::<S>(S::mul(a, b)), |i| x[i] * y[i], "a b");
        same(&put::<S>(S::div(a, b)), |i| x[i] / y[i], "a / b");
        close(&put::<S>(S::mul_add(a, b, c)), |i| x[i] * y[i] + z[i], "a b + c");
        close(&put::<S>(S::neg_mul_add(a, b, c)), |i| z[i] - x[i] * y[i], "c - a b");
        let mut sum = c;
        S::accumulate(&mut sum, a, b);
        same(&put::<S>(sum), |i| put::<S>(S::mul_add(a, b, c))[i], "acc + a b");
        same(&put::<S>(S::abs(a)), |i| x[i].abs(), "|a|");
        same(&put::<S>(S::sqrt(S::abs(a))), |i| Float::sqrt(x[i].abs()), "sqrt(a)");

        let ties = [0.5, 1.5, -2.5, -0.75, 3.25, 1e3, -7.0, 100.5];
        let halves: Vec<S::R> = (0..n).map(|i| S::R::of(ties[i % 8])).collect();
        let nearest = |i: usize| S::R::of(ties[i % 8].round_ties_even());
        close(&put::<S>(S::round(S::load(halves.as_ptr()))), nearest, "round");
        let powers = [0, -126, 127, 1, -1, 23, -52, 64];
        let k: Vec<S::R> = (0..n).map(|i| S::R::of(f64::from(powers[i % 8]))).collect();
        same(&put::<S>(S::exp2_int(S::load(k.as_ptr()))), |i| S::R::of(2f64.powi(powers[i % 8])), "2^k");
    }
}

/// With NaN, equal numbers, and zeros of both signs.
#[inline(always)]
unsafe fn choices<S: Simd>() {
    let n = S::LANES;
    let [mut x, mut y, p, q]: [Vec<S::R>; 4] = std::array::from_fn(|seed| numbers(n, seed as u64 + 5));
    x[n - 1] = Float::nan();
    x[1] = y[1];
    y[0] = S::R::of(-0.0);
    // SAFETY: whole vectors; the caller has the instruction set.
    unsafe {
        let (a, b) = (S::load(x.as_ptr()), S::load(y.as_ptr()));
        let (yes, no) = (S::load(p.as_ptr()), S::load(q.as_ptr()));
        same(&put::<S>(S::min(a, b)), |i| if x[i] < y[i] { x[i] } else { y[i] }, "min");
        same(&put::<S>(S::select_gt(a, b, yes, no)), |i| if x[i] > y[i] { p[i] } else { q[i] }, "a > b");
        same(&put::<S>(S::select_gt(b, a, yes, no)), |i| if y[i] > x[i] { p[i] } else { q[i] }, "b > a");
        same(&put::<S>(S::select_eq(a, b, yes, no)), |i| if x[i] == y[i] { p[i] } else { q[i] }, "a == b");
        same(&put::<S>(S::copysign(yes, b)), |i| p[i].copysign(y[i]), "copysign");
    }
}

#[inline(always)]
unsafe fn movements<S: Simd>() {
    let n = S::LANES;
    let x: Vec<S::R> = numbers(n * n, 9);
    // SAFETY: whole vectors; the caller has the instruction set.
    unsafe {
        let a = S::load(x.as_ptr());
        same(&put::<S>(S::splat(x[1])), |_| x[1], "splat");
        same(&put::<S>(S::factor(&x[1])), |_| x[1], "factor");
        same(&put::<S>(S::zero()), |_| S::R::of(0.0), "zero");
        same(&put::<S>(S::alternate(x[0], x[1])), |i| x[i % 2], "alternate");
        same(&put::<S>(S::swap_pairs(a)), |i| x[i ^ 1], "swap_pairs");
        for (by, from) in [(1, 1), (3, 2), (n - 1, 0), (0, n - 1)] {
            let of = |i: usize| by * i + from;
            same(&put::<S>(S::permute(a, S::index(of))), |i| x[of(i) % n], "permute");
        }
        let mut rows: Vec<S::V> = (0..n).map(|i| S::load(x.as_ptr().add(i * n))).collect();
        S::transpose(&mut rows);
        for (j, row) in rows.iter().enumerate() {
            same(&put::<S>(*row), |i| x[i * n + j], "transpose");
        }
        let mut rows: Vec<S::V> = (0..n / 2).map(|i| S::load(x.as_ptr().add(i * n))).collect();
        S::transpose_pairs(&mut rows);
        for (j, row) in rows.iter().enumerate() {
            same(&put::<S>(*row), |i| x[i / 2 * n + 2 * j + i % 2], "transpose_pairs");
        }
    }
}

#[inline(always)]
unsafe fn tails<S: Simd>() {
    let n = S::LANES;
    let x: Vec<S::R> = numbers(n + 2, 10);
    for count in 0..=n + 1 {
        let live = count.min(n);
        let whole: Box<[S::R]> = x[..live].into();
        let mut out = x.iter().map(|x| -*x).collect::<Vec<_>>();
        // SAFETY: `live` numbers; the caller has the instruction set.
        unsafe {
            let v = S::load_n(whole.as_ptr(), count);
            same(&put::<S>(v), |i| if i < live { x[i] } else { S::R::of(0.0) }, "load_n");
            S::store_n(out.as_mut_ptr(), v, count);
        }
        same(&out, |i| if i < live { x[i] } else { -x[i] }, "store_n");
    }
}

#[inline(always)]
unsafe fn tiles<S: Simd>() {
    const ROWS: usize = 5;
    let n = S::LANES;
    let (a, b): (Vec<S::R>, Vec<S::R>) = (numbers(3 * ROWS, 11), numbers(8 * n, 12));
    // SAFETY: three rows of four numbers at a stride of five, four rows of two vectors; the caller has the instruction set.
    unsafe {
        let mut t = [[S::splat(a[0]); 2]; 3];
        S::four_steps(&mut t, a.as_ptr(), ROWS, b.as_ptr());
        for i in 0..3 {
            for j in 0..2 {
                let product = |u: usize, lane: usize| a[i * ROWS + u] * b[(2 * u + j) * n + lane];
                let sum = |lane| (0..4).fold(a[0], |sum, u| sum + product(u, lane));
                close(&put::<S>(t[i][j]), sum, "four_steps");
            }
        }
    }
}

fn all<R: Real>() {
    let kernel = Operations::<R>(PhantomData);
    for isa in Isa::available() {
        // SAFETY: the processor has this instruction set.
        unsafe {
            match isa {
                Isa::Scalar => R::Portable::outlined(&kernel),
                Isa::Avx2 => R::Avx2::outlined(&kernel),
                Isa::Avx512 => R::Avx512::outlined(&kernel),
                Isa::Neon => R::Neon::outlined(&kernel),
            }
        }
    }
}

#[test]
fn every_operation_of_every_vector_type() {
    all::<f32>();
    all::<f64>();
}
