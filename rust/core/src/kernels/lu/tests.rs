//! Every test requires bitwise equal results for one, two and three members, and unchanged padding after each row.

use super::*;
use crate::kernels::Buffer;
use crate::parallel::{self, Shared};
use crate::testing::{every_type, numbers, wide, within_work};

const SIZES: [usize; 13] = [0, 1, 2, 3, 8, 9, 31, 32, 33, 64, 65, 100, 200];
/// Numbers of padding after each row.
const PAD: usize = 3;

fn real<T: Scalar>(x: f64) -> T {
    T::real(T::Real::of(x))
}

fn matrix<T>(n: usize, f: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..n * n).map(|e| f(e / n, e % n)).collect()
}

/// The factors of A, its pivots, its inverse, and log |det A| as both found it.
fn on<T: Scalar>(a: &[T], n: usize, threads: usize) -> (Vec<T>, Vec<usize>, Vec<T>, [f64; 2]) {
    let padding = [real(7.0); PAD];
    let mut padded: Vec<T> = a.chunks(n.max(1)).flat_map(|row| [row, &padding].concat()).collect();
    let (mut inverse, mut pivots, mut logs) = (padded.clone(), vec![usize::MAX; n], [0.0; 2]);
    let memory = Buffer::<T>::scratch(n * n);
    let [of_lu, of_inverse, of_x] = [padded.as_mut_ptr(), inverse.as_mut_ptr(), memory.ptr()].map(Shared);
    let (of_pivots, of_logs) = (Shared(pivots.as_mut_ptr()), Shared(logs.as_mut_ptr()));
    parallel::run(threads, &|member| {
        let scratch = Buffer::<T::Real>::scratch(Lu::<T>::scratch(n));
        let factors = Lu { a: of_lu.at(0), ld: n + PAD, n, pivots: of_pivots.at(0) };
        // SAFETY: all sizes are those of A, and one member writes the logarithms.
        unsafe {
            let log = Lu { a: of_inverse.at(0), ..factors }.invert(member, of_x.at(0), scratch.ptr());
            factors.factor(member, scratch.ptr());
            if member.id == 0 {
                *of_logs.at(0) = log;
                *of_logs.at(1) = factors.log_abs_det();
            }
        }
    });
    let [lu, inverse] = [padded, inverse].map(|x| {
        assert!(x.chunks(n + PAD).all(|row| row[n..] == padding), "written beside");
        x.chunks(n + PAD).flat_map(|row| row[..n].to_vec()).collect()
    });
    (lu, pivots, inverse, logs)
}

/// A B and |A| |B|.
fn product<W: Scalar<Real = f64>>(a: &[W], b: &[W], n: usize) -> (Vec<W>, Vec<f64>) {
    let terms = |e: usize| (0..n).map(move |k| (a[e / n * n + k], b[k * n + e % n]));
    let sizes = |e: usize| terms(e).map(|(a, b)| a.modulus() * b.modulus()).sum();
    ((0..n * n).map(|e| terms(e).map(|(a, b)| a * b).sum()).collect(), (0..n * n).map(sizes).collect())
}

/// P A = L U with bounded L and, unless singular, A A^-1 = I, up to a few n eps of |L| |U| (Higham 2002,
/// theorems 9.3 and 9.4). Returns log |det A|, and the inverse.
fn check<T: Scalar>(a: &[T], n: usize, what: &str) -> (f64, Vec<T>) {
    let (lu, pivots, inverse, logs) = on(a, n, 1);
    for threads in [2, 3] {
        // NaN is equal to NaN here
        let [one, other] = [&on(a, n, threads), &(lu.clone(), pivots.clone(), inverse.clone(), logs)]
            .map(|found| format!("{found:?}"));
        assert!(one == other, "{what}, n {n}, {threads} threads");
    }
    assert!(logs[0] == logs[1] && pivots.iter().enumerate().all(|(i, &pivot)| (i..n).contains(&pivot)));
    let eps = T::Real::EPS.f64();
    let near = |found: &[T::Wide], expected: &[T::Wide], bound: &[f64], units: f64, law: &str| {
        for ((x, y), bound) in found.iter().zip(expected).zip(bound) {
            let (error, most) = ((*x - *y).modulus(), units * n as f64 * eps * bound);
            assert!(error <= most, "{what}: {law}, n {n}: {error:e} of {most:e}");
        }
    };
    let (zero, unit) = (T::Wide::default(), |i, j| real::<T::Wide>(f64::from(u8::from(i == j))));
    let entry = |i: usize, j: usize| lu[i * n + j].widen();
    let l = matrix(n, |i, j| if i > j { entry(i, j) } else { unit(i, j) });
    let u = matrix(n, |i, j| if i <= j { entry(i, j) } else { zero });
    let (mut permuted, mut rows) = (wide(a), (0..n).collect::<Vec<_>>());
    for (i, &pivot) in pivots.iter().enumerate() {
        (0..n).for_each(|j| permuted.swap(i * n + j, pivot * n + j));
        rows.swap(i, pivot);
    }
    let (back, sizes) = product(&l, &u, n);
    near(&permuted, &back, &sizes, 2.0, "P A = L U");
    let largest = if T::PARTS == 1 { 1.0 } else { 2f64.sqrt() * (1.0 + 8.0 * eps) };
    assert!(l.iter().all(|l| l.modulus() <= largest), "{what}: |L|");
    let log: f64 = (0..n).map(|i| entry(i, i).modulus().ln()).sum();
    let most = 8.0 * (n + 1) as f64 * eps * (1.0 + log.abs());
    assert!(logs[0] == log || (logs[0] - log).abs() <= most, "{what}: {} for {log}", logs[0]);
    if log.is_finite() {
        let mut of_a = vec![0.0; n * n];
        for (i, row) in rows.into_iter().enumerate() {
            of_a[row * n..][..n].copy_from_slice(&sizes[i * n..][..n]);
        }
        let inverse = wide(&inverse);
        let sizes: Vec<f64> = inverse.iter().map(|x| x.modulus()).collect();
        let (_, bound) = product(&of_a, &sizes, n);
        near(&product(&wide(a), &inverse, n).0, &matrix(n, unit), &bound, 4.0, "A A^-1 = I");
    }
    (logs[0], inverse)
}

fn sizes() -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(|&n| within_work(&[n, n, n]))
}

#[test]
fn factors_and_inverses_leave_small_residuals() {
    fn all<T: Scalar>() {
        for n in sizes() {
            let random: Vec<T> = numbers(n * n, n as u64 + 1);
            check(&random, n, "random");
            let (at, tiny) = (|i: usize, j: usize| random[i * n + j], real::<T>(1e-9));
            // the leading minors of rows 0 and 1 are tiny, and the first two rows nearly equal
            let near = |i: usize, j: usize| match (i, j) {
                (0, 0) => tiny,
                (1, _) if n > 2 => at(0, j) + if j == 2 { tiny } else { T::default() },
                _ => at(i, j),
            };
            check(&matrix(n, near), n, "tiny leading minors");
            let scale = |i: usize| real::<T>(2f64.powi((i * 7 % 41) as i32 - 20));
            check(&matrix(n, |i, j| at(i, j) * scale(i)), n, "rows of all sizes");
        }
    }
    every_type!(all());
}

#[test]
fn singular_matrices_have_factors_and_no_inverse() {
    fn all<T: Scalar>() {
        for n in sizes().filter(|&n| n > 0) {
            let (random, zero) = (numbers::<T>(n * n, n as u64 + 5), T::default());
            for (what, a) in [
                ("zero", matrix(n, |_, _| zero)),
                ("a column of zeros", matrix(n, |i, j| if j == n / 2 { zero } else { random[i * n + j] })),
                ("a row of zeros", matrix(n, |i, j| if i == n / 2 { zero } else { random[i * n + j] })),
                ("ones", matrix(n, |_, _| if n == 1 { zero } else { T::one() })),
            ] {
                let (log, inverse) = check(&a, n, what);
                assert_eq!(log, f64::NEG_INFINITY, "{what}, n {n}");
                assert!(!inverse.iter().all(|x| x.finite()), "{what}, n {n}");
            }
        }
    }
    every_type!(all());
}
