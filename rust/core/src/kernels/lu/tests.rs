use super::*;
use crate::scalar::c64;
use crate::scratch::Scratch;
use crate::testing::{numbers, within_work};

const SIZES: [usize; 12] = [1, 2, 3, 8, 9, 31, 32, 33, 64, 65, 100, 200];

fn matrix<T>(n: usize, f: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..n * n).map(|e| f(e / n, e % n)).collect()
}

/// log |det A|, column by column.
fn log_det<T: Scalar<Real = f64>>(a: &[T], n: usize) -> f64 {
    let (mut rows, mut log) = (a.chunks(n).map(<[T]>::to_vec).collect::<Vec<_>>(), 0.0);
    for k in 0..n {
        let largest = (k..n).max_by(|&i, &j| rows[i][k].modulus().total_cmp(&rows[j][k].modulus())).unwrap();
        rows.swap(k, largest);
        log += rows[k][k].modulus().ln();
        for i in k + 1..n {
            let by = rows[i][k] / rows[k][k];
            (k..n).for_each(|j| rows[i][j] = rows[i][j] - by * rows[k][j]);
        }
    }
    log
}

/// The inverse and log |det A|; unless A is singular, A A^-1 = I up to some n eps of |A| |A^-1|.
fn check<T: Scalar<Real = f64>>(a: &[T], n: usize, what: &str) -> (Vec<T>, f64) {
    let room = Scratch::new(|arena| Pivoted::carve::<T>(arena, n)).unwrap();
    let mut inverse = a.to_vec();
    // SAFETY: the room is alive, and used here alone.
    let log = unsafe { room.invert(&mut inverse, n) };
    if log.is_finite() {
        let near = |x: f64| (x - log).abs() <= 1e-4 * (1.0 + log.abs());
        assert!(near(log_det(a, n)), "{what}, n {n}: log {log}");
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let terms = || (0..n).map(|k| (a[i * n + k], inverse[k * n + j]));
            let sum: T = terms().map(|(a, b)| a * b).sum();
            let size: f64 = terms().map(|(a, b)| a.modulus() * b.modulus()).sum();
            let off = (sum - T::real(f64::from(u8::from(i == j)))).modulus();
            assert!(off <= 16.0 * n as f64 * f64::EPSILON * size, "{what}, n {n}: {off:e} of {size:e}");
        }
    }
    (inverse, log)
}

fn sizes() -> impl Iterator<Item = usize> {
    SIZES.into_iter().filter(|&n| within_work(&[n, n, n]))
}

#[test]
fn a_matrix_times_its_inverse_is_the_identity() {
    fn all<T: Scalar<Real = f64>>() {
        for n in sizes() {
            let random: Vec<T> = numbers(n * n, n as u64 + 1);
            let (at, tiny) = (|i: usize, j: usize| random[i * n + j], T::real(1e-9));
            // the leading minors of rows 0 and 1 are tiny, and the first two rows nearly equal
            let near = |i: usize, j: usize| match (i, j) {
                (0, 0) => tiny,
                (1, _) if n > 2 => at(0, j) + if j == 2 { tiny } else { T::default() },
                _ => at(i, j),
            };
            let scale = |i: usize| T::real(2f64.powi((i * 7 % 41) as i32 - 20));
            for (what, a) in [
                ("random", random.clone()),
                ("tiny leading minors", matrix(n, near)),
                ("rows of all sizes", matrix(n, |i, j| at(i, j) * scale(i))),
            ] {
                assert!(check(&a, n, what).1.is_finite(), "{what}, n {n}");
            }
        }
    }
    all::<f64>();
    all::<c64>();
}

#[test]
fn a_singular_matrix_has_no_inverse() {
    fn all<T: Scalar<Real = f64>>() {
        for n in sizes() {
            let (random, zero) = (numbers::<T>(n * n, n as u64 + 5), T::default());
            for (what, a) in [
                ("zero", matrix(n, |_, _| zero)),
                ("a column of zeros", matrix(n, |i, j| if j == n / 2 { zero } else { random[i * n + j] })),
                ("a row of zeros", matrix(n, |i, j| if i == n / 2 { zero } else { random[i * n + j] })),
                ("ones", matrix(n, |_, _| if n == 1 { zero } else { T::one() })),
            ] {
                let (inverse, log) = check(&a, n, what);
                assert_eq!(log, f64::NEG_INFINITY, "{what}, n {n}");
                assert!(!inverse.iter().all(|x| x.finite()), "{what}, n {n}");
            }
        }
    }
    all::<f64>();
    all::<c64>();
}
