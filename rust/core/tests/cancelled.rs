//! A long call asks its caller whether to go on in the caller's floating-point mode, though it flushes denormal numbers itself.

use isometry_core::delta::{Delta, DeltaGradients, Gate, advance, backward, forward};
use isometry_core::internal::parallel::stoppable;
use isometry_core::linalg::{geqrf, procrustes};
use isometry_core::operators::{cayley, exponential::Exponential, givens::Givens, householder};
use isometry_core::{Budget, Cpu, Error, Result, Side, recurrence};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The call asks, and every answer is computed with denormal numbers.
fn asks(what: &str, call: impl FnOnce(&Budget<'_>) -> Result<()>) {
    let (asked, flushed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let cancel = || {
        asked.fetch_add(1, Relaxed);
        flushed.fetch_add(usize::from(black_box(black_box(f64::MIN_POSITIVE) / 4.0) == 0.0), Relaxed);
        false
    };
    call(&Budget { cancel: &cancel, ..Budget::of(2) }).unwrap();
    assert!(asked.into_inner() > 0, "{what} does not ask");
    assert_eq!(flushed.into_inner(), 0, "{what}");
}

#[test]
fn ensembles() {
    asks("recurrence::ensemble", |budget| {
        recurrence::ensemble::<f32, _>(vec![(); 4], [2, 1, 1, 256], budget, |(), budget| {
            assert!(!(budget.cancel)());
            Ok(())
        })
    });
}

#[test]
fn delta_rules() {
    let [batch, tokens, key, value] = [16, 150, 64, 64];
    let (q, beta) = (vec![0.5f64; batch * tokens * key], vec![1.0; batch * tokens]);
    let delta = Delta {
        batch,
        tokens,
        householders: 1,
        heads: 1,
        value_heads: 1,
        key,
        value,
        q: &q,
        k: &q,
        v: &q,
        beta: &beta,
        gate: Gate::None,
        initial: None,
        ends: None,
        scale: 1.0,
        normalise: true,
    };
    let (mut o, mut state) = (q.clone(), vec![0.0; batch * key * value]);
    let mut saved = vec![0.0; delta.saved().iter().product()];
    asks("delta::forward", |budget| forward(&delta, &mut o, &mut state, Some(&mut saved), budget));
    let cts = (&q[..], &state[..]);
    asks("delta::backward", |budget| backward(&delta, &saved, cts, DeltaGradients::default(), budget));
    let mut state = state.clone();
    asks("delta::advance", |budget| advance(&delta, &mut o, &mut state, budget));
}

#[test]
fn inverse_maps() {
    let n = 8;
    // a rotation of four planes
    let w: Vec<f64> = (0..n * n)
        .map(|at| match (at / n, at % n) {
            (i, j) if i == j => 0.6,
            (i, j) if i == j + 1 && j % 2 == 0 => 0.8,
            (i, j) if j == i + 1 && i % 2 == 0 => -0.8,
            _ => 0.0,
        })
        .collect();
    let (mut vectors, mut sign) = (vec![0.0; n * (n - 1)], [0.0]);
    asks("householder::from_matrix", |budget| {
        householder::from_matrix(&w, 1, n, 1e-8, &mut vectors, &mut sign, budget.cancel)
    });
    let (mut upper, mut signs) = (vec![0.0; n * (n - 1) / 2], vec![1.0; n]);
    asks("cayley::from_matrix", |budget| {
        cayley::from_matrix(&w, &mut signs, true, &mut upper, None, (1, n), 1e-8, 1, budget.cancel)
    });
}

type Call<'a> = &'a mut dyn FnMut(&mut [f64]) -> Result<()>;

/// A call that was stopped halfway leaves no trace in threads or memory: repeated, it gives the same bits.
#[test]
fn operators_and_linalg() {
    let n = 700;
    let a: Vec<f64> = (0..n * n).map(|at| (at as f64).sin()).collect();
    let exponential = Exponential::new(&a[..n * (n - 1) / 2], None, 1, n).unwrap();
    let pairs: Vec<i64> = (0..80 * n).map(|at| (at.div_ceil(2) % n) as i64).collect();
    let givens = Givens::new(&a[..40 * n], &pairs, 1, n, 40 * n).unwrap();
    for threads in [1, 2] {
        let budget = Budget::of(threads);
        let mut tau = vec![0.0; n];
        let mut calls: [Call<'_>; 4] = [
            &mut |out| exponential.matrix(out, None, &budget),
            &mut |out| givens.apply(&a, n, Side::Forward, out, None, &budget),
            &mut |out| geqrf(&a, (1, n, n), out, &mut tau, threads),
            &mut |out| procrustes(&a, (1, n, n), false, out, threads),
        ];
        for (which, call) in calls.iter_mut().enumerate() {
            let [mut first, mut again] = [(); 2].map(|()| vec![0.0; n * n]);
            let asked = AtomicUsize::new(0);
            let after = |count: usize| move |asked: &AtomicUsize| asked.fetch_add(1, Relaxed) + 1 == count;
            let never = after(usize::MAX);
            assert_eq!(stoppable(&|| never(&asked), || call(&mut first)), Ok(()));
            let most = asked.swap(0, Relaxed);
            assert!(most > 1, "call {which} asks {most} times");
            let middle = after(most / 2);
            assert_eq!(
                stoppable(&|| middle(&asked), || call(&mut again)),
                Err(Error::Interrupted),
                "call {which}"
            );
            call(&mut again).unwrap();
            assert!(first == again, "call {which}");
        }
    }
}
