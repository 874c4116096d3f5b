//! W equals the reference for every size, batch, thread count and last factor, without out-of-bounds access.

use super::guarded::Guarded;
use super::{Parameters, Random, for_all_types, relative, signs};
use crate::operators::Last;
use crate::scalar::{Real, Scalar};
use crate::side::Side;
use crate::testing::square::unitarity;
use crate::{Budget, Cpu, Error, operators::cayley::Cayley};

fn check<T: Scalar>(batch: usize, n: usize, last: usize, threads: usize) {
    if !crate::testing::within_work(&[batch, n, n, n]) {
        return;
    }
    let p = Parameters::<T>::random(batch, n, last, 2.0 / (n as f64).sqrt());
    let mut upper = Guarded::new(&p.upper);
    let mut w = Guarded::new(&vec![T::real(T::Real::of(f64::NAN)); batch * n * n]);
    let mut diagonal = p.diagonal.as_ref().map(|d| Guarded::new(d));
    let diagonal = diagonal.as_mut().map(|d| &*d.slice());
    let view = Cayley::new(upper.slice(), diagonal, p.last(), batch, n).unwrap();
    view.matrix(w.slice(), None, &Budget::of(threads)).unwrap();
    w.check();
    for b in 0..batch {
        let w = &w.slice()[b * n * n..(b + 1) * n * n];
        let error = relative(w, &p.matrix(b)) / T::Real::EPS.f64();
        assert!(error < 40.0, "batch {batch} n {n} last {last} matrix {b}: {error:.1} eps");
    }
}

fn all_sizes<T: Scalar>() {
    for n in (1..40).chain([48]) {
        for batch in [1, 3, 17, 33] {
            check::<T>(batch, n, (n + batch) % 3, 1 + batch % 2);
        }
        check::<T>(9, n, 2, 2);
    }
    for n in 63..=70 {
        check::<T>(1 + n % 3, n, n % 3, 1 + n % 2);
    }
    for n in [100, 150] {
        for last in 0..3 {
            check::<T>(1, n, last, 2);
        }
    }
}

#[test]
fn matrices_equal_the_reference() {
    for_all_types!(all_sizes);
}

fn identity<T: Scalar>() {
    for (batch, n) in [(1, 1), (3, 2), (40, 7), (20, 16), (1, 33), (2, 64), (1, 150)] {
        let mut p = Parameters::<T>::random(batch, n, 0, 0.0);
        let mut w = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut w, None, &Budget::of(2)).unwrap();
        let delta = |e: usize| T::real(T::Real::of(f64::from(u8::from(e / n % n == e % n))));
        assert!((0..w.len()).all(|e| w[e] == delta(e)), "W(0) = I, n {n}");
        p.signs = Some(signs(&mut Random::new(n as u64 + 1), batch * n));
        p.view().matrix(&mut w, None, &Budget::of(2)).unwrap();
        let signs = p.signs.as_ref().unwrap();
        let at = |e: usize| delta(e).scale(signs[e / (n * n) * n + e % n]);
        assert!((0..w.len()).all(|e| w[e] == at(e)), "W(0) = D, n {n}");
    }
}

#[test]
fn no_rotation_is_exactly_the_last_factor() {
    for_all_types!(identity);
}

fn threads<T: Scalar>() {
    for (batch, n, scale) in [
        (700, 4, 3.0),
        (301, 8, 300.0),
        (200, 13, 10.0),
        (70, 32, 0.3),
        (40, 40, 50.0),
        (1, 150, 0.2),
        (2, 200, 9.0),
    ] {
        if !crate::testing::within_work(&[batch, n, n, n]) {
            continue;
        }
        let p = Parameters::<T>::random(batch, n, 2, scale);
        let mut one = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut one, None, &Budget::of(1)).unwrap();
        for threads in [2, 3, 5] {
            let mut more = vec![T::zero(); batch * n * n];
            p.view().matrix(&mut more, None, &Budget::of(threads)).unwrap();
            assert!(one == more, "batch {batch} n {n}: {threads} threads change the result");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for_all_types!(threads);
}

fn neighbours<T: Scalar>() {
    for n in [3, 4, 8, 15, 32] {
        let batch = 29;
        let mut p = Parameters::<T>::random(batch, n, 2, 1.0);
        let len = p.upper.len() / batch;
        let mut before = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut before, None, &Budget::of(1)).unwrap();
        for (e, x) in p.upper.iter_mut().enumerate() {
            if (e / len).is_multiple_of(2) {
                // matrices that fail the check next to others, and one that holds NaN
                *x *= T::real(T::Real::of(if e / len == 4 { f64::NAN } else { 1e3 }));
            }
        }
        let mut after = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut after, None, &Budget::of(1)).unwrap();
        for b in 0..batch {
            let part = b * n * n..(b + 1) * n * n;
            if b % 2 == 1 {
                assert!(before[part.clone()] == after[part], "n {n}: neighbours change matrix {b}");
            } else if b == 4 {
                assert!(after[part].iter().all(|x| !x.finite()), "n {n}: NaN in, NaN out");
            } else {
                assert!(unitarity(&after[part], n) < 20.0);
            }
        }
    }
}

#[test]
fn neighbours_do_not_change_a_bit() {
    for_all_types!(neighbours);
}

fn applies<T: Scalar>() {
    for (batch, n, rows) in [(1, 5, 3), (4, 40, 7), (20, 6, 1), (1, 70, 90), (0, 3, 2), (2, 3, 0)] {
        let p = Parameters::<T>::random(batch, n, 2, 0.5);
        let x: Vec<T> = Random::new(n as u64 + 1).array(batch * rows * n, 1.0);
        for side in [Side::Forward, Side::Adjoint] {
            let mut out = vec![T::zero(); batch * rows * n];
            p.view().apply(&x, rows, side, &mut out, None, &Budget::of(2)).unwrap();
            let mut expected = vec![T::Wide::default(); batch * rows * n];
            for b in 0..batch {
                let w = p.matrix(b);
                for r in 0..rows {
                    let at = (b * rows + r) * n;
                    for i in 0..n {
                        for j in 0..n {
                            let w = if side == Side::Forward { w[i * n + j] } else { w[j * n + i].conj() };
                            expected[at + i] += w * x[at + j].widen();
                        }
                    }
                }
            }
            let error = relative(&out, &expected) / T::Real::EPS.f64();
            assert!(error < 40.0, "apply {side:?} n {n}: {error:.1} eps");
        }
    }
}

#[test]
fn apply_is_the_product_with_the_matrix() {
    for_all_types!(applies);
}

#[test]
fn bad_arguments_are_named() {
    let (upper, row) = ([0.0f32; 3], [0.0f32; 3]);
    let text = |r: crate::Result<Cayley<'_, f32>>| r.unwrap_err().to_string();
    assert!(
        text(Cayley::new(&upper, None, Last::None, 1, 4)).starts_with("upper: expected 6 elements, got 3")
    );
    assert!(text(Cayley::new(&upper, Some(&row), Last::None, 1, 3)).starts_with("diagonal must not"));
    assert!(text(Cayley::new(&upper, None, Last::Signs(&row[..2]), 1, 3)).starts_with("signs: expected 3"));
    let bad = [1.0, -1.0, 0.5];
    assert!(text(Cayley::new(&upper, None, Last::Signs(&bad), 1, 3)).contains("got 0.5 at index 2"));
    assert!(matches!(Cayley::new(&upper, None, Last::Phases(&row), 1, 3), Err(Error::Value { .. })));
}
