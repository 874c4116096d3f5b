//! Parameters of given matrices: round trips, bounds on the entries, and refusals.

use super::Parameters;
use crate::operators::Last;
use crate::operators::cayley::{Cayley, from_matrix};
use crate::scalar::{Real, Scalar};
use crate::testing::{every_type, members, within_work};
use crate::{Budget, Cpu};

/// Recovers, checks |A_ij| <= 1 (if D is chosen), transforms again and compares.
fn round_trip<T: Scalar>(w: &[T], batch: usize, n: usize, bound: f64, what: &str) {
    let mut last = vec![T::Real::of(9.0); batch * n];
    let mut upper = vec![T::zero(); batch * n * n.saturating_sub(1) / 2];
    let mut diagonal = vec![T::Real::of(9.0); batch * n];
    let tol = 1e4 * T::Real::EPS.f64();
    let d = (T::PARTS == 2).then_some(&mut diagonal[..]);
    from_matrix(w, &mut last, true, &mut upper, d, (batch, n), tol, members(2), &|| false).unwrap();
    let slack = if T::PARTS == 1 { 1e-9 } else { 1e-7 } + 4.0 * T::Real::EPS.f64();
    for x in &upper {
        assert!(x.modulus().f64() <= 1.0 + slack, "{what}: |A_ij| = {:?}", x.modulus());
    }
    if T::PARTS == 2 {
        assert!(diagonal.iter().all(|g| g.f64().abs() <= 1e-9 + 4.0 * T::Real::EPS.f64()), "{what}");
    }
    again(w, &last, &upper, &diagonal, (batch, n), bound, what);
}

fn again<T: Scalar>(
    w: &[T],
    last: &[T::Real],
    upper: &[T],
    diagonal: &[T::Real],
    (batch, n): (usize, usize),
    bound: f64,
    what: &str,
) {
    let view = if T::PARTS == 1 {
        Cayley::new(upper, None, Last::Signs(last), batch, n).unwrap()
    } else {
        Cayley::new(upper, Some(diagonal), Last::Phases(last), batch, n).unwrap()
    };
    let mut back = vec![T::zero(); w.len()];
    view.matrix(&mut back, None, &Budget::of(1)).unwrap();
    let worst = w.iter().zip(&back).map(|(x, y)| (*x - *y).modulus().f64()).fold(0.0, f64::max);
    let (worst, name) = (worst / T::Real::EPS.f64(), std::any::type_name::<T>());
    assert!(worst <= bound, "{name} {what}: off by {worst:.1} eps");
}

fn random<T: Scalar>() {
    const SIZES: [(usize, usize); 7] = [(4, 1), (20, 2), (20, 3), (9, 5), (17, 8), (3, 20), (2, 40)];
    for (batch, n) in SIZES.into_iter().filter(|&(batch, n)| within_work(&[3, batch, n, n])) {
        for scale in [0.1, 1.0, 30.0] {
            let p = Parameters::<T>::random(batch, n, 2, scale);
            let mut w = vec![T::zero(); batch * n * n];
            p.view().matrix(&mut w, None, &Budget::of(1)).unwrap();
            round_trip(&w, batch, n, 60.0 * n as f64, &format!("random n {n} scale {scale}"));
        }
    }
}

#[test]
fn random_matrices_come_back() {
    every_type!(random());
}

/// Matrices with eigenvalue -1 or nearly so.
fn special<T: Scalar>() {
    let one = |x: f64| T::real(T::Real::of(x));
    for n in (1..9).filter(|n| within_work(&[20, *n, *n])) {
        for sign in [1.0, -1.0] {
            let w: Vec<T> = (0..n * n).map(|e| one(if e % (n + 1) == 0 { sign } else { 0.0 })).collect();
            round_trip(&w, 1, n, 8.0, &format!("{sign} I, n {n}"));
        }
        for shift in 1..n {
            let w: Vec<T> =
                (0..n * n).map(|e| one(f64::from(u8::from((e / n + shift) % n == e % n)))).collect();
            round_trip(&w, 1, n, 60.0 * n as f64, &format!("cyclic permutation by {shift}, n {n}"));
        }
        let w: Vec<T> = (0..n * n).map(|e| one(f64::from(u8::from(e / n + e % n == n - 1)))).collect();
        round_trip(&w, 1, n, 60.0 * n as f64, &format!("reversal, n {n}"));
    }
    for gap in [0.0, 1e-12, 1e-8, 1e-4, 1e-2] {
        let (s, c) = (std::f64::consts::PI - gap).sin_cos();
        round_trip(&[one(c), one(-s), one(s), one(c)], 1, 2, 20.0, &format!("rotation by pi - {gap}"));
    }
}

#[test]
fn matrices_with_eigenvalue_minus_one_come_back() {
    every_type!(special());
}

fn given<T: Scalar>() {
    for n in [1, 2, 5, 12, 33].into_iter().filter(|n| within_work(&[3, *n, *n])) {
        let p = Parameters::<T>::random(3, n, 2, 1.0);
        let mut w = vec![T::zero(); 3 * n * n];
        p.view().matrix(&mut w, None, &Budget::of(1)).unwrap();
        let mut last = p.signs.clone().or(p.phases.clone()).unwrap();
        let mut upper = vec![T::zero(); p.upper.len()];
        let mut diagonal = vec![T::Real::of(0.0); 3 * n];
        let d = (T::PARTS == 2).then_some(&mut diagonal[..]);
        from_matrix(&w, &mut last, false, &mut upper, d, (3, n), 1e-3, 1, &|| false).unwrap();
        let bound = 4000.0 * n as f64 * T::Real::EPS.f64();
        let worst = upper.iter().zip(&p.upper).map(|(x, y)| (*x - *y).modulus().f64()).fold(0.0, f64::max);
        assert!(worst < bound, "{} n {n}: {worst:e}", std::any::type_name::<T>());
        for (x, y) in diagonal.iter().zip(p.diagonal.iter().flatten()) {
            assert!((x.f64() - y.f64()).abs() < bound, "n {n}");
        }
        again(&w, &last, &upper, &diagonal, (3, n), 60.0 * n as f64, "given D");
    }
}

#[test]
fn the_parameters_of_a_given_last_factor_are_unique() {
    every_type!(given());
}
