//! Without and with a memory, every activation, type, direction and thread count against the textbook loop and its difference
//! quotients; bits across threads; what is left of a memory after it was undone.

mod reference;
mod refusals;

use super::super::tests::{gradients, packs};
use super::*;
use crate::activation::Activation;
use crate::activation::tests::all;
use crate::argument::wanted;
use crate::recurrence::Run;
use crate::testing::threads::same_bits;
use crate::testing::{Guarded, fill, near};
use reference::Problem;

#[derive(Clone, Copy, Debug)]
struct Case {
    n: usize,
    d: usize,
    batch: usize,
    steps: usize,
    memory: bool,
    eta: Option<f64>,
    activation: Activation,
    varied: bool,
    reverse: bool,
    /// h0, b and r0 are given.
    all: bool,
}

const NAMES: [&str; 7] = ["x", "w", "u", "b", "h0", "r0", "activation_bias"];

fn arrays<R: Real>(case: &Case) -> [Vec<R>; 7] {
    let Case { n, d, batch, steps, .. } = *case;
    let units = case.activation.bias_units(n);
    let optional = |len: usize| if case.all { len } else { 0 };
    let memory = if case.memory { optional(batch * n * n) } else { 0 };
    let scale = 1.0 / (n as f64).sqrt();
    let mut arrays = [
        fill(steps * batch * d, 1.0, 1),
        fill(2 * n * n, scale, 2),
        fill(3 * n * d, 0.7, 3),
        fill(optional(3 * n), 0.5, 4),
        fill(optional(batch * n), 1.0, 5),
        fill(memory, scale, 6),
        fill(units, 0.2, 7),
    ];
    let shift = R::of(if case.all { 0.0 } else { -0.21 });
    arrays[6].iter_mut().for_each(|b| *b += shift);
    arrays
}

fn lengths(case: &Case) -> Vec<usize> {
    let shorter = |b: usize| if case.varied { (b * 2).min(case.steps - 1) } else { 0 };
    (0..case.batch).map(|b| case.steps - shorter(b)).collect()
}

fn problem<R: Real>(case: &Case, given: &[Vec<R>; 7]) -> Problem {
    let Case { n, d, batch, steps, .. } = *case;
    let sizes = [steps * batch * d, 2 * n * n, 3 * n * d, 3 * n, batch * n, batch * n * n, given[6].len()];
    let mut arrays = given.each_ref().map(|array| array.iter().map(|x| x.f64()).collect::<Vec<f64>>());
    if arrays[5].is_empty() {
        arrays[5] = (0..batch * n * n).map(|at| f64::from(u8::from(at % (n * n) % (n + 1) == 0))).collect();
    }
    arrays.iter_mut().zip(sizes).for_each(|(array, len)| array.resize(len, 0.0));
    let Case { memory, eta, activation, reverse, .. } = *case;
    Problem { steps, batch, d, n, arrays, memory, eta, activation, lengths: lengths(case), reverse }
}

/// States, memory and all gradients, those that were not asked for empty.
fn run<R: Real>(case: &Case, given: &[Vec<R>; 7], cts: &[Vec<R>; 2], threads: usize) -> Vec<Vec<R>> {
    let [x, w, u, b, h0, r0, activation_bias] =
        given.each_ref().map(|array| (!array.is_empty()).then_some(&array[..]));
    let ends = lengths(case);
    let Case { n, d, batch, steps, memory, eta, activation, reverse, .. } = *case;
    let rum = Rum {
        run: Run {
            h0,
            activation,
            activation_bias,
            lengths: case.varied.then_some(&ends[..]),
            reverse,
            ..Run::new([steps, batch, d, n], x.unwrap_or(&[]))
        },
        w: w.unwrap(),
        u: u.unwrap_or(&[]),
        b,
        memory,
        r0,
        eta: eta.map(R::of),
    };
    let (len, matrices) = (steps * batch * n, if memory { batch * n * n } else { 0 });
    let (mut saved, mut states, mut last) =
        (Guarded::new(SAVED * len), Guarded::new(len), Guarded::new(matrices));
    forward(&rum, states.inner(), last.inner(), Some(saved.inner()), &Budget::of(threads)).unwrap();
    let (states, last, saved) = (states.take(), last.take(), saved.take());
    let (mut again, mut last_again) = (Guarded::new(len), Guarded::new(matrices));
    let (of_gates, of_e) = rum.u.split_at(2 * n * d);
    let packs = packs(&[(rum.w, 2 * n), (of_gates, 2 * n), (of_e, n)]);
    let packed = Rum { run: Run { packs: Some(&packs), ..rum.run }, ..rum };
    forward(&packed, again.inner(), last_again.inner(), None, &Budget::of(threads)).unwrap();
    assert!(again.take() == states, "states depend on what is saved, or packed before: {case:?}");
    let wanted = given.each_ref().map(Vec::len);
    let mut bars: Vec<Guarded<R>> = wanted.iter().map(|&len| Guarded::new(len)).collect();
    let mut given_bars = gradients(ARGUMENTS, &NAMES, &mut bars);
    let outcome = Outcome {
        states: (&states).into(),
        last: &last,
        saved: &saved,
        ct: (&cts[0]).into(),
        last_ct: memory.then_some(&cts[1]),
    };
    backward(&rum, &outcome, &mut given_bars, &Budget::of(threads)).unwrap();
    drop(given_bars);
    let mut results = vec![states, last];
    results.extend(bars.into_iter().map(Guarded::take));
    results
}

/// Values, and gradients along two directions of every array.
fn check<R: Real>(case: Case) {
    let Case { n, d, batch, steps, memory, .. } = case;
    let cube = if memory { n } else { 8 };
    if !crate::testing::within_work(&[3, steps, batch, n, n, cube]) {
        return;
    }
    let mut given = arrays::<R>(&case);
    let problem = problem(&case, &given);
    let matrices = if memory { batch * n * n } else { 0 };
    let mut cts = [fill(steps * batch * n, 1.0, 8), fill(matrices, 1.0, 9)];
    let wide = cts.each_ref().map(|ct: &Vec<R>| ct.iter().map(|c| c.f64()).collect::<Vec<f64>>());
    // Values past the end of a sequence must not be read.
    for (b, &length) in problem.lengths.iter().enumerate() {
        for t in length..steps {
            given[0][(t * batch + b) * d..][..d].fill(R::nan());
            cts[0][(t * batch + b) * n..][..n].fill(R::nan());
        }
    }
    let results = run(&case, &given, &cts, 1);
    for threads in [2, 3] {
        assert!(
            run(&case, &given, &cts, threads) == results,
            "{threads} threads change the result: {case:?}"
        );
    }
    let single = size_of::<R>() == 4;
    let tolerance = if single { 2e-4 } else { 1e-11 };
    let [states, last] = problem.forward();
    near(&results[0], &states, tolerance, format_args!("states, {case:?}"));
    near(&results[1], if memory { &last } else { &[] }, tolerance, format_args!("last, {case:?}"));
    let loss = |problem: &Problem| -> f64 {
        let [states, last] = problem.forward();
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        sum(&states, &wide[0]) + sum(&last, &wide[1])
    };
    for (which, (name, bar)) in NAMES.iter().zip(&results[2..]).enumerate() {
        for seed in if bar.is_empty() { 0..0 } else { 10..12 } {
            let way: Vec<f64> = fill(bar.len(), 1.0, seed);
            let along: f64 = bar.iter().zip(&way).map(|(b, w)| b.f64() * w).sum();
            let size: f64 = bar.iter().map(|b| b.f64() * b.f64()).sum::<f64>().sqrt();
            let step = 1e-6;
            let [up, down] = [step, -step].map(|by| {
                let mut moved = problem.clone();
                moved.arrays[which].iter_mut().zip(&way).for_each(|(x, w)| *x += by * w);
                loss(&moved)
            });
            let quotient = (up - down) / (2.0 * step);
            let slack = if single { 1e-3 } else { 1e-5 } * (size.max(quotient.abs()) + 1e-2);
            assert!((quotient - along).abs() < slack, "{name}: {along} and {quotient}, {case:?}");
        }
    }
}

fn sweep<R: Real>() {
    for (n, d, batch, steps) in [(1, 1, 1, 2), (2, 1, 1, 1), (6, 3, 5, 6), (18, 2, 3, 8), (20, 0, 13, 3)] {
        for (i, activation) in all::<R>().into_iter().enumerate() {
            let units = n % 2 == 0 || activation.check::<R>(n, None).is_ok();
            for variant in if units { 0..8 } else { 0..0 } {
                let (varied, reverse, memory) = (variant & 1 == 1, variant & 2 == 2, variant & 4 == 4);
                let (all, eta) = (
                    d == 0 || (variant + i) % 3 != 0,
                    [None, Some(1.3)][if n > 2 { (variant + i) % 2 } else { 0 }],
                );
                check::<R>(Case { n, d, batch, steps, memory, eta, activation, varied, reverse, all });
            }
        }
    }
}

#[test]
fn follows_the_textbook_f32() {
    sweep::<f32>();
}

#[test]
fn follows_the_textbook_f64() {
    sweep::<f64>();
}

const PLAIN: Case = Case {
    n: 3,
    d: 1,
    batch: 2,
    steps: 4,
    memory: false,
    eta: Some(1.0),
    activation: Activation::Relu,
    varied: false,
    reverse: false,
    all: false,
};

#[test]
fn any_number_of_threads_has_the_same_bits() {
    for (batch, memory) in [(5, true), (70, false), (70, true)] {
        let case = Case { n: 10, batch, memory, all: true, ..PLAIN };
        let matrices = if memory { batch * 100 } else { 0 };
        let cts = [fill(4 * batch * 10, 1.0, 8), fill(matrices, 1.0, 9)];
        let given = arrays::<f32>(&case);
        same_bits(&format!("{case:?}"), |threads| run(&case, &given, &cts, threads));
    }
}

#[test]
fn zero_states_stay_zero_without_a_gradient() {
    for memory in [false, true] {
        let case = Case { memory, ..PLAIN };
        let mut given = arrays::<f64>(&case);
        given[0].fill(0.0);
        let matrices = if memory { 18 } else { 0 };
        given[4] = vec![0.0; 6];
        given[5] = (0..matrices).map(|at| f64::from(u8::from(at % 9 % 4 == 0))).collect();
        let cts = [fill(24, 1.0, 8), fill(matrices, 1.0, 9)];
        let results = run(&case, &given, &cts, 1);
        assert!(results.iter().skip(2).take(5).all(|array| array.iter().all(|x| *x == 0.0)), "{results:?}");
        assert!(results[0].iter().all(|x| *x == 0.0));
        assert_eq!(results[7].len(), matrices);
        assert!(results[7] == cts[1], "the identity hands on the cotangent of the memory");
    }
}

/// The largest element of R_0 - I that is left after T rotations there and back.
fn drift<R: Real>(n: usize, steps: usize) -> f64 {
    let case = Case { n, batch: 1, steps, memory: true, all: true, ..PLAIN };
    let mut given = arrays::<R>(&case);
    // tau without h: then no rounding error comes back through the states
    given[1].fill(R::zero());
    let [x, w, u, b, h0, _, _] = given.each_ref().map(|array| &array[..]);
    let r0: Vec<R> = (0..n * n).map(|at| R::of(f64::from(u8::from(at % (n + 1) == 0)))).collect();
    let rum = Rum {
        run: Run { h0: Some(h0), activation: Activation::Relu, ..Run::new([steps, 1, 1, n], x) },
        w,
        u,
        b: Some(b),
        memory: true,
        r0: Some(&r0),
        eta: Some(R::one()),
    };
    let len = steps * n;
    let (mut states, mut last, mut saved) =
        (vec![R::zero(); len], vec![R::zero(); n * n], vec![R::zero(); SAVED * len]);
    forward(&rum, &mut states, &mut last, Some(&mut saved), &Budget::of(1)).unwrap();
    // Without cotangents of the states that of the memory is turned back as the memory is: R_T arrives at R_0.
    let mut bar = vec![R::zero(); n * n];
    let ct = vec![R::zero(); len];
    let outcome = Outcome {
        states: (&states).into(),
        last: &last,
        saved: &saved,
        ct: (&ct).into(),
        last_ct: Some(&last),
    };
    let mut bars = wanted(ARGUMENTS, [("r0", &mut bar[..])]);
    backward(&rum, &outcome, &mut bars, &Budget::of(1)).unwrap();
    drop(bars);
    bar.iter().zip(&r0).map(|(a, b)| (a.f64() - b.f64()).abs()).fold(0.0, f64::max)
}

#[test]
fn a_memory_is_undone_to_rounding() {
    for (n, steps) in [(16, 100), (16, 4000), (64, 1000)] {
        for (drift, eps) in
            [(drift::<f32>(n, steps), f64::from(f32::EPSILON)), (drift::<f64>(n, steps), f64::EPSILON)]
        {
            let bound = steps as f64 * eps;
            assert!(drift > 0.0 && drift < bound, "n {n}, T {steps}: {drift:e}, below {bound:e} expected");
        }
    }
}
