//! Both resets, a matrix and an operator on rows as W_h, every activation, type, direction and thread count against the textbook loop; bits across threads.

mod reference;
mod refusals;
mod sigma;

use super::super::tests::shears::{self, Shears};
use super::super::tests::{gradients, packs};
use super::*;
use crate::activation::Activation;
use crate::activation::tests::all;
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
    reset: Reset,
    activation: Activation,
    varied: bool,
    reverse: bool,
    /// h0, b and hidden_bias are given.
    all: bool,
    /// W_h is an operator on rows: the first 2 (n - 1) numbers of the third matrix are its parameters.
    shears: bool,
}

const NAMES: [&str; 7] = ["x", "w", "u", "b", "h0", "hidden_bias", "activation_bias"];

fn arrays<R: Real>(case: &Case) -> [Vec<R>; 7] {
    let Case { n, d, batch, steps, .. } = *case;
    let units = case.activation.bias_units(n);
    let optional = |len: usize| if case.all { len } else { 0 };
    let hidden = if case.reset == Reset::After { optional(n) } else { 0 };
    let scale = 1.5 / (n as f64).sqrt();
    let mut arrays = [
        fill(steps * batch * d, 1.0, 1),
        fill(3 * n * n, scale, 2),
        fill(3 * n * d, 0.7, 3),
        fill(optional(3 * n), 0.5, 4),
        fill(optional(batch * n), 1.0, 5),
        fill(hidden, 0.5, 6),
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

/// Those of the operator on rows.
fn parameters<R: Real>(case: &Case, w: &[R]) -> Vec<R> {
    let n = case.n;
    w[2 * n * n..][..2 * (n - 1)].to_vec()
}

fn problem<R: Real>(case: &Case, given: &[Vec<R>; 7]) -> Problem {
    let Case { n, d, batch, steps, .. } = *case;
    let sizes = [steps * batch * d, 3 * n * n, 3 * n * d, 3 * n, batch * n, n, given[6].len()];
    let mut arrays = given.each_ref().map(|array| array.iter().map(|x| x.f64()).collect::<Vec<f64>>());
    arrays.iter_mut().zip(sizes).for_each(|(array, len)| array.resize(len, 0.0));
    if case.shears {
        let matrix = shears::matrix(&parameters(case, &arrays[1]), n);
        arrays[1][2 * n * n..].copy_from_slice(&matrix);
    }
    let Case { reset, activation, reverse, .. } = *case;
    Problem { steps, batch, d, n, arrays, reset, activation, lengths: lengths(case), reverse }
}

/// States and all gradients, those that were not asked for empty.
fn run<R: Real>(case: &Case, given: &[Vec<R>; 7], ct: &[R], threads: usize) -> Vec<Vec<R>> {
    let [x, w, u, b, h0, hidden_bias, activation_bias] =
        given.each_ref().map(|array| (!array.is_empty()).then_some(&array[..]));
    let ends = lengths(case);
    let Case { n, d, batch, steps, reset, activation, reverse, .. } = *case;
    let parameters = parameters(case, &given[1]);
    let shears = Shears::new(&parameters, n);
    let gru = Gru {
        run: Run {
            h0,
            activation,
            activation_bias,
            lengths: case.varied.then_some(&ends[..]),
            reverse,
            ..Run::new([steps, batch, d, n], x.unwrap_or(&[]))
        },
        w: if case.shears { &given[1][..2 * n * n] } else { w.unwrap() },
        transition: case.shears.then_some(&shears),
        u: u.unwrap_or(&[]),
        b,
        reset,
        hidden_bias,
    };
    let len = steps * batch * n;
    let mut saved = Guarded::new(gru.saved() * len);
    let mut states = Guarded::new(len);
    forward(&gru, states.inner(), Some(saved.inner()), &Budget::of(threads)).unwrap();
    let (states, saved) = (states.take(), saved.take());
    let mut again = Guarded::new(len);
    let ((gates, own), (of_gates, of_c)) = (gru.w.split_at(2 * n * n), gru.u.split_at(2 * n * d));
    let packs = packs(&[(gates, 2 * n), (own, own.len() / n), (of_gates, 2 * n), (of_c, n)]);
    forward(
        &Gru { run: Run { packs: Some(&packs), ..gru.run }, ..gru },
        again.inner(),
        None,
        &Budget::of(threads),
    )
    .unwrap();
    assert!(again.take() == states, "states depend on what is saved, or packed before: {case:?}");
    let mut wanted = given.each_ref().map(Vec::len);
    wanted[1] = gru.w.len();
    let mut bars: Vec<Guarded<R>> = wanted.iter().map(|&len| Guarded::new(len)).collect();
    let mut given_bars = gradients(ARGUMENTS, &NAMES, &mut bars);
    let mut own = Guarded::new(parameters.len());
    let mut own_bars = [if case.shears { Bar::Own(own.inner()) } else { Bar::None }];
    backward(&gru, &states, &saved, ct, &mut given_bars, &mut own_bars, &Budget::of(threads)).unwrap();
    drop(given_bars);
    let mut results = vec![states];
    results.extend(bars.into_iter().map(Guarded::take));
    if case.shears {
        let own = own.take();
        results[2].extend(own);
    }
    results
}

fn check<R: Real>(case: Case) {
    if !crate::testing::within_work(&[3, case.steps, case.batch, case.n, case.n]) {
        return;
    }
    let mut given = arrays::<R>(&case);
    let Case { n, d, batch, steps, .. } = case;
    let problem = problem(&case, &given);
    let mut ct: Vec<R> = fill(steps * batch * n, 1.0, 8);
    let wide: Vec<f64> = ct.iter().map(|c| c.f64()).collect();
    let mut expected = problem.backward(&wide);
    if case.shears {
        let wide: Vec<f64> = parameters(&case, &given[1]).iter().map(|p| p.f64()).collect();
        let own = shears::pull(&wide, n, &expected[1].split_off(2 * n * n));
        expected[1].extend(own);
    }
    // Values past the end of a sequence must not be read.
    for (b, &length) in problem.lengths.iter().enumerate() {
        for t in length..steps {
            given[0][(t * batch + b) * d..][..d].fill(R::nan());
            ct[(t * batch + b) * n..][..n].fill(R::nan());
        }
    }
    let results = run(&case, &given, &ct, 1);
    for threads in [2, 3] {
        assert!(run(&case, &given, &ct, threads) == results, "{threads} threads change the result: {case:?}");
    }
    let single = size_of::<R>() == 4;
    near(
        &results[0],
        &problem.forward(),
        if single { 2e-5 } else { 1e-12 },
        format_args!("states, {case:?}"),
    );
    for ((name, got), expected) in NAMES.iter().zip(&results[1..]).zip(&expected) {
        if !got.is_empty() {
            near(got, expected, if single { 1e-3 } else { 1e-11 }, format_args!("{name}, {case:?}"));
        }
    }
}

fn sweep<R: Real>() {
    for (n, d, batch, steps) in
        [(2, 1, 1, 1), (6, 3, 5, 9), (38, 2, 1, 20), (36, 1, 3, 12), (70, 9, 2, 11), (34, 0, 13, 5)]
    {
        for (i, activation) in all::<R>().into_iter().enumerate() {
            for variant in 0..8 {
                let (varied, reverse, after) = (variant & 1 == 1, variant & 2 == 2, variant & 4 == 4);
                let reset = if after { Reset::After } else { Reset::Before };
                let all = (variant + i) % 3 != 0;
                check::<R>(Case {
                    n,
                    d,
                    batch,
                    steps,
                    reset,
                    activation,
                    varied,
                    reverse,
                    all,
                    shears: false,
                });
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

fn sweep_rows<R: Real>() {
    for (n, d, batch, steps) in [(2, 1, 1, 1), (6, 3, 5, 9), (38, 2, 1, 20), (34, 0, 13, 5)] {
        for (i, activation) in
            [Activation::Tanh, Activation::Oplu, Activation::Modrelu].into_iter().enumerate()
        {
            for variant in 0..8 {
                let (varied, reverse, after) = (variant & 1 == 1, variant & 2 == 2, variant & 4 == 4);
                let reset = if after { Reset::After } else { Reset::Before };
                let all = (variant + i) % 3 != 0;
                let shears = true;
                check::<R>(Case { n, d, batch, steps, reset, activation, varied, reverse, all, shears });
            }
        }
    }
}

#[test]
fn an_operator_on_rows_serves_as_w_h() {
    sweep_rows::<f32>();
    sweep_rows::<f64>();
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    for (batch, reset, shears) in [
        (70, Reset::After, false),
        (5, Reset::Before, false),
        (70, Reset::Before, true),
        (70, Reset::After, true),
    ] {
        let [n, d, steps] = [18, 3, 4];
        let (activation, varied, reverse, all) = (Activation::Tanh, false, false, true);
        let case = Case { n, d, batch, steps, reset, activation, varied, reverse, all, shears };
        let (given, ct) = (arrays::<f32>(&case), fill(steps * batch * n, 1.0, 8));
        same_bits(&format!("{case:?}"), |threads| run(&case, &given, &ct, threads));
    }
}

#[test]
fn the_textbook_gradient_is_the_difference_quotient() {
    for reset in [Reset::Before, Reset::After] {
        for (varied, reverse, activation) in
            [(false, false, Activation::Tanh), (true, true, Activation::Modrelu)]
        {
            let [n, d, batch, steps] = [4, 2, 2, 4];
            let (all, shears) = (true, false);
            let case = Case { n, d, batch, steps, reset, activation, varied, reverse, all, shears };
            let problem = problem(&case, &arrays::<f64>(&case));
            let ct: Vec<f64> = fill(4 * 2 * 4, 1.0, 9);
            let loss =
                |problem: &Problem| -> f64 { problem.forward().iter().zip(&ct).map(|(h, c)| h * c).sum() };
            let bars = problem.backward(&ct);
            for (which, name) in NAMES.iter().enumerate() {
                for at in 0..problem.arrays[which].len() {
                    let step = 1e-5;
                    let [up, down] = [step, -step].map(|by| {
                        let mut moved = problem.clone();
                        moved.arrays[which][at] += by;
                        loss(&moved)
                    });
                    let (quotient, bar) = ((up - down) / (2.0 * step), bars[which][at]);
                    assert!((quotient - bar).abs() < 1e-8, "{name}[{at}]: {bar} and {quotient}, {case:?}");
                }
            }
        }
    }
}
