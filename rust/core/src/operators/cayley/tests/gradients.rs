//! The gradients against V = 2 S^H W_bar D^* S^H written out, and the formula itself against finite differences.

use super::{Parameters, Random, for_all_types, relative};
use crate::argument::Bar;
use crate::operators::Last;
use crate::operators::cayley::Cayley;
use crate::scalar::{Real, Scalar, c64};
use crate::testing::square::{adjoint, product};
use crate::{Budget, Cpu};

/// Gradients of matrix b: upper, diagonal, phases.
fn reference<T: Scalar>(p: &Parameters<T>, b: usize, ct: &[T]) -> (Vec<T::Wide>, Vec<f64>, Vec<f64>) {
    let n = p.n;
    let (s, d, w) = (adjoint(&p.inverse(b), n), p.factors(b), p.matrix(b));
    let ct: Vec<T::Wide> = ct.iter().map(|x| x.widen()).collect();
    let scaled: Vec<_> = (0..n * n).map(|e| (ct[e] * d[e % n].conj()).scale(2.0)).collect();
    let v = product(&product(&s, &scaled, n), &s, n);
    let mut upper = vec![];
    for i in 0..n {
        for j in i + 1..n {
            // A_bar = -V
            let (x, y) = (-v[i * n + j], -v[j * n + i]);
            upper.push(T::Wide::new(x.re() - y.re(), x.im() + y.im()));
        }
    }
    let diagonal = (0..n).map(|j| -v[j * n + j].im()).collect();
    let phases =
        (0..n).map(|j| (0..n).map(|i| (ct[i * n + j] * w[i * n + j].conj()).im()).sum::<f64>()).collect();
    (upper, diagonal, phases)
}

fn check<T: Scalar>(batch: usize, n: usize, last: usize, threads: usize) {
    if !crate::testing::within_work(&[batch, n, n, n]) {
        return;
    }
    let p = Parameters::<T>::random(batch, n, last, 2.0 / (n as f64).sqrt());
    let len = p.upper.len();
    let ct: Vec<T> = Random::new((n + batch) as u64 + 1).array(batch * n * n, 1.0);
    let mut w = vec![T::zero(); batch * n * n];
    p.view().matrix(&mut w, None, &Budget::of(threads)).unwrap();
    let pad = 64;
    let canary = T::real(T::Real::of(7.0));
    let mut upper = vec![canary; len + 2 * pad];
    let mut rows = [vec![canary.re(); batch * n + 2 * pad], vec![canary.re(); batch * n + 2 * pad]];
    let [diagonal, phases] = &mut rows;
    let (has_diagonal, has_phases) = (p.diagonal.is_some(), p.phases.is_some());
    let bars = &mut [
        Bar::Own(&mut upper[pad..pad + len]),
        if has_diagonal { Bar::Real(&mut diagonal[pad..pad + batch * n]) } else { Bar::None },
        Bar::None,
        if has_phases { Bar::Real(&mut phases[pad..pad + batch * n]) } else { Bar::None },
    ];
    let view = p.view();
    view.matrix_vjp(Some(&w), &ct, bars, &Budget::of(threads)).unwrap();
    let ends = |at: usize, len: usize| at < pad || at >= pad + len;
    assert!((0..upper.len()).filter(|&e| ends(e, len)).all(|e| upper[e] == canary));
    for rows in &rows {
        assert!((0..rows.len()).filter(|&e| ends(e, batch * n)).all(|e| rows[e] == canary.re()));
    }
    let bound = 100.0;
    for b in 0..batch {
        let (u, g, t) = reference(&p, b, &ct[b * n * n..(b + 1) * n * n]);
        let m = len / batch;
        let scale = T::Real::EPS.f64();
        let error = relative(&upper[pad + b * m..pad + (b + 1) * m], &u) / scale;
        assert!(error < bound, "upper_bar batch {batch} n {n} last {last} matrix {b}: {error:.1} eps");
        let real = [(has_diagonal, &rows[0], g, "diagonal_bar"), (has_phases, &rows[1], t, "phases_bar")];
        for (_, rows, expected, name) in real.into_iter().filter(|(given, ..)| *given) {
            let error = relative(&rows[pad + b * n..pad + (b + 1) * n], &expected) / scale;
            assert!(error < bound, "{name} batch {batch} n {n} last {last} matrix {b}: {error:.1} eps");
        }
    }
    // one gradient alone, or without W at hand, is the same
    let mut alone = vec![canary; len];
    view.matrix_vjp(Some(&w), &ct, &mut [Bar::Own(&mut alone)], &Budget::of(1)).unwrap();
    assert!(alone == upper[pad..pad + len]);
    view.matrix_vjp(None, &ct, &mut [Bar::Own(&mut alone)], &Budget::of(1)).unwrap();
    assert!(alone == upper[pad..pad + len]);
    if has_phases {
        let mut alone = vec![canary.re(); batch * n];
        let bars = &mut [Bar::None, Bar::None, Bar::None, Bar::Real(&mut alone)];
        view.matrix_vjp(Some(&w), &ct, bars, &Budget::of(3)).unwrap();
        assert!(alone == rows[1][pad..pad + batch * n]);
    }
}

fn all_sizes<T: Scalar>() {
    for n in (1..40).chain([48]) {
        for batch in [1, 3, 17, 33] {
            check::<T>(batch, n, (n + batch) % 3, 1 + batch % 2);
        }
    }
    for n in 63..=70 {
        check::<T>(1 + n % 3, n, n % 3, 1 + n % 2);
    }
    for n in [100, 150] {
        check::<T>(1, n, 2, 2);
        check::<T>(3, n, 0, 2);
    }
}

#[test]
fn gradients_equal_the_formula() {
    for_all_types!(all_sizes);
}

#[test]
fn the_formula_equals_differences() {
    for n in 1..6 {
        let p = Parameters::<c64>::random(1, n, 2, 1.0);
        let ct: Vec<c64> = Random::new(n as u64 + 1).array(n * n, 1.0);
        let (upper, diagonal, phases) = reference(&p, 0, &ct);
        let loss =
            |p: &Parameters<c64>| p.matrix(0).iter().zip(&ct).map(|(w, c)| (w * c.conj()).re).sum::<f64>();
        let h = 1e-6;
        let slope = |change: &dyn Fn(&mut Parameters<c64>, f64)| {
            let [high, low] = [h, -h].map(|h| {
                let mut moved = Parameters::<c64>::random(1, n, 2, 1.0);
                change(&mut moved, h);
                loss(&moved)
            });
            (high - low) / (2.0 * h)
        };
        for e in 0..upper.len() {
            assert!((slope(&|p, h| p.upper[e].re += h) - upper[e].re).abs() < 1e-7);
            assert!((slope(&|p, h| p.upper[e].im += h) - upper[e].im).abs() < 1e-7);
        }
        for j in 0..n {
            assert!((slope(&|p, h| p.diagonal.as_mut().unwrap()[j] += h) - diagonal[j]).abs() < 1e-7);
            assert!((slope(&|p, h| p.phases.as_mut().unwrap()[j] += h) - phases[j]).abs() < 1e-7);
        }
    }
}

fn threads<T: Scalar>() {
    for (batch, n) in [(700, 4), (200, 13), (70, 32), (20, 40), (1, 150), (2, 200)] {
        if !crate::testing::within_work(&[batch, n, n, n]) {
            continue;
        }
        let p = Parameters::<T>::random(batch, n, 2, 0.5);
        let mut w = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut w, None, &Budget::of(2)).unwrap();
        let ct: Vec<T> = Random::new(n as u64 + 1).array(batch * n * n, 1.0);
        let results: Vec<Vec<T>> = [1, 2, 3]
            .map(|threads| {
                let mut upper = vec![T::zero(); p.upper.len()];
                let bars = &mut [Bar::Own(&mut upper)];
                p.view().matrix_vjp(Some(&w), &ct, bars, &Budget::of(threads)).unwrap();
                upper
            })
            .into();
        assert!(results[0] == results[1] && results[0] == results[2], "batch {batch} n {n}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for_all_types!(threads);
}

#[test]
fn bad_arguments_are_named() {
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
