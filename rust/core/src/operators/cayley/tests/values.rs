//! W and its gradients equal the reference for every size, batch, thread count and last factor.

use super::{Parameters, signs};
use crate::argument::Bar;
use crate::operators::Last;
use crate::scalar::{Real, Scalar};
use crate::testing::rows::{Definition, check_defined};
use crate::testing::square::unitarity;
use crate::testing::{Random, every_type, within_work};
use crate::{Budget, Cpu, Error, operators::cayley::Cayley};

fn check<T: Scalar>(batch: usize, n: usize, last: usize, rows: usize) {
    if !within_work(&[batch, n, n, n]) {
        return;
    }
    let p = Parameters::<T>::random(batch, n, last, 2.0 / (n as f64).sqrt());
    let definition = Definition {
        matrices: (0..batch).map(|b| p.definition(b)).collect(),
        tolerances: [40.0, 100.0].map(|units| units * T::Real::EPS.f64()),
        floor: 0.0,
        scale: &|_| 1.0,
        every: 1,
        threads: [&[1, 2, 3][..], &[1, 2], &[2]][(n + batch) % 3],
    };
    check_defined(&p.view(), rows, &definition, &format!("batch {batch} n {n} last {last}"));
}

fn all_sizes<T: Scalar>() {
    for n in (1..40).chain([48]) {
        for batch in [1, 3, 17, 33] {
            check::<T>(batch, n, (n + batch) % 3, 1 + n % 3);
        }
        check::<T>(9, n, 2, 2);
    }
    for n in 63..=70 {
        check::<T>(1 + n % 3, n, n % 3, 1);
    }
    for n in [100, 150] {
        for last in 0..3 {
            check::<T>(1, n, last, 2);
        }
        check::<T>(3, n, 0, 0);
    }
    for (batch, n, rows) in [(1, 5, 3), (4, 40, 7), (20, 6, 1), (1, 70, 90), (0, 3, 2), (2, 3, 0)] {
        check::<T>(batch, n, 2, rows);
    }
}

#[test]
fn matrices_and_gradients_equal_the_reference() {
    every_type!(all_sizes());
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
    every_type!(identity());
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
        if !within_work(&[batch, n, n, n]) {
            continue;
        }
        let p = Parameters::<T>::random(batch, n, 2, scale);
        let ct: Vec<T> = Random::new(n as u64 + 1).array(batch * n * n, 1.0);
        let [one, others @ ..] = [1, 2, 3, 5].map(|threads| {
            let (mut w, mut upper) = (vec![T::zero(); ct.len()], vec![T::zero(); p.upper.len()]);
            p.view().matrix(&mut w, None, &Budget::of(threads)).unwrap();
            let bars = &mut [Bar::Own(&mut upper)];
            p.view().matrix_vjp(Some(&w), &ct, bars, &Budget::of(threads)).unwrap();
            (w, upper)
        });
        assert!(others.iter().all(|other| *other == one), "batch {batch} n {n}: threads change the result");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    every_type!(threads());
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
    every_type!(neighbours());
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

#[test]
fn bad_gradients_are_named() {
    let (upper, w, mut row) = ([0.0f32], [0.0f32; 4], [0.0f32; 2]);
    let view = Cayley::new(&upper, None, Last::None, 1, 2).unwrap();
    let refused = |bars: &mut [Bar<'_, f32>]| {
        view.matrix_vjp(Some(&w), &w, bars, &Budget::of(1)).unwrap_err().to_string()
    };
    let error = refused(&mut [Bar::None, Bar::Real(&mut row)]);
    assert_eq!(error, "diagonal_bar is wanted, but there is no such argument");
    assert_eq!(refused(&mut [Bar::Own(&mut row)]), "upper_bar: expected 1 elements, got 2");
    let signs = [1.0; 2];
    let view = Cayley::new(&upper, None, Last::Signs(&signs), 1, 2).unwrap();
    let bars = &mut [Bar::None, Bar::None, Bar::Real(&mut row)];
    let error = view.matrix_vjp(Some(&w), &w, bars, &Budget::of(1)).unwrap_err().to_string();
    assert_eq!(error, "signs_bar is wanted, but the argument is fixed");
}
