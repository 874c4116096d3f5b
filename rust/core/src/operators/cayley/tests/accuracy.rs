//! e(W) = max |W^H W - I| / (n eps) <= 20 for any ||A||, and the check detects every W that is worse.

use super::{Parameters, Random};
use crate::testing::{every_type, near, within_work};
use crate::scalar::{Real, Scalar};
use crate::testing::square::unitarity;
use crate::{Budget, Cpu};

#[derive(Clone, Copy, Debug)]
enum Spread {
    Dense,
    /// One dominant row and column.
    Row,
    /// One dominant plane.
    Plane,
    /// Entries over many orders of magnitude.
    Magnitudes,
}

/// A batch with ||A||_2 = norm for every matrix.
fn parameters<T: Scalar>(batch: usize, n: usize, spread: Spread, norm: f64) -> Parameters<T> {
    let mut p = Parameters::<T>::random(batch, n, 0, 1.0);
    let mut random = Random::new((n * 7 + norm as usize) as u64 + 1);
    let len = p.upper.len() / batch;
    for b in 0..batch {
        let chosen = ((random.number() + 1.0) * 0.5 * len as f64) as usize % len.max(1);
        let mut e = 0;
        for i in 0..n {
            for j in i + 1..n {
                let by = match spread {
                    Spread::Dense => 1.0,
                    Spread::Row if i == b % n || j == b % n => 1.0,
                    Spread::Row => 0.02,
                    Spread::Plane if e == chosen => 1.0,
                    Spread::Plane => 0.01,
                    Spread::Magnitudes => (6.0 * random.number()).exp(),
                };
                p.upper[b * len + e] *= T::real(T::Real::of(by));
                e += 1;
            }
        }
        // power iteration on A^H A = -A A
        let a = p.skew(b);
        let mut x: Vec<T::Wide> = random.array(n, 1.0);
        let mut size = 1.0;
        for _ in 0..30 {
            for _ in 0..2 {
                x = (0..n).map(|i| (0..n).map(|j| a[i * n + j] * x[j]).sum()).collect();
            }
            size = x.iter().map(|x| x.abs2()).sum::<f64>().sqrt();
            x.iter_mut().for_each(|x| *x = x.scale(1.0 / size));
        }
        let by = T::Real::of(norm / size.sqrt().max(1e-300));
        p.upper[b * len..(b + 1) * len].iter_mut().for_each(|x| *x = x.scale(by));
        if let Some(diagonal) = &mut p.diagonal {
            diagonal[b * n..(b + 1) * n].iter_mut().for_each(|x| *x *= by);
        }
    }
    p
}

fn law<T: Scalar>() {
    for (n, batch) in
        (2..14).map(|n| (n, 40)).chain([(16, 30), (31, 18), (32, 18), (40, 8), (64, 4), (65, 4), (100, 2)])
    {
        if !within_work(&[batch, n, n, n]) {
            continue;
        }
        for spread in [Spread::Dense, Spread::Row, Spread::Plane, Spread::Magnitudes] {
            for norm in [0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 1e5] {
                let p = parameters::<T>(batch, n, spread, norm);
                let mut w = vec![T::zero(); batch * n * n];
                p.view().matrix(&mut w, None, &Budget::of(2)).unwrap();
                for b in 0..batch {
                    let part = &w[b * n * n..(b + 1) * n * n];
                    let e = unitarity(part, n);
                    let what = format!("n {n} {spread:?} norm {norm}: e(W) {e:.1}");
                    assert!(e <= 20.0, "{what}");
                    if b < 4 {
                        let most = 30.0 * (1.0 + norm) * n as f64 * T::Real::EPS.f64();
                        near(part, &p.matrix(b), most, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn orthogonal_for_every_norm() {
    every_type!(law());
}

/// Beyond any condition number W is orthogonal, or the error names the argument.
fn extremes<T: Scalar>() {
    for n in [2, 3, 4, 5, 8, 33, 70] {
        for size in [1e8, 1e12, 1e18, 1e30, 3e38] {
            let p = Parameters::<T>::random(3, n, 2, size);
            let mut w = vec![T::zero(); 3 * n * n];
            if let Err(error) = p.view().matrix(&mut w, None, &Budget::of(2)) {
                assert!(error.to_string().starts_with("upper must give an A "), "{error}");
                continue;
            }
            for w in w.chunks(n * n) {
                let e = unitarity(w, n);
                assert!(e <= 20.0, "n {n} size {size:e}: e(W) {e:.1e}");
            }
        }
    }
}

#[test]
fn enormous_parameters_return() {
    every_type!(extremes());
}

fn not_numbers<T: Scalar>() {
    for n in [2, 3, 4, 5, 8, 17, 33, 70, 150] {
        for bad in [f64::NAN, f64::INFINITY] {
            for batch in [1, 20] {
                if !within_work(&[batch, n, n, n]) {
                    continue;
                }
                let mut p = Parameters::<T>::random(batch, n, 1, 1.0);
                let len = p.upper.len() / batch;
                p.upper[(batch - 1) * len + len / 2] = T::real(T::Real::of(bad));
                let mut w = vec![T::zero(); batch * n * n];
                p.view().matrix(&mut w, None, &Budget::of(2)).unwrap();
                let (good, last) = w.split_at((batch - 1) * n * n);
                assert!(good.iter().all(|x| x.finite()));
                assert!(last.iter().all(|x| !x.finite()), "n {n} batch {batch}: {bad} must come out");
            }
        }
    }
}

#[test]
fn nan_in_nan_out() {
    every_type!(not_numbers());
}
