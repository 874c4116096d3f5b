//! Lengths, directions, marks, checkpoints, thread counts and types against the textbook loop; bits across threads.

mod reference;

use super::super::tests::{gradients as of_arguments, packs};
use super::*;
use crate::argument::wanted;
use crate::recurrence::Starts;
use crate::testing::threads::same_bits;
use crate::testing::{Guarded, fill, near};
use reference::Problem;

#[derive(Clone, Copy, Debug)]
struct Case {
    n: usize,
    d: usize,
    batch: usize,
    steps: usize,
    varied: bool,
    reverse: bool,
    /// h0, b and the state at marks are given.
    all: bool,
    marked: bool,
}

const NAMES: [&str; 6] = ["x", "w", "u", "b", "h0", "start_state"];

impl Case {
    fn arrays<R: Real>(&self) -> [Vec<R>; 6] {
        let Case { n, d, batch, steps, all, marked, .. } = *self;
        let optional = |len: usize, given: bool| if given { len } else { 0 };
        [
            fill(steps * batch * d, 1.0, 1),
            fill(4 * n * n, 1.5 / (n as f64).sqrt(), 2),
            fill(4 * n * d, 0.7, 3),
            fill(optional(4 * n, all), 0.5, 4),
            fill(optional(2 * batch * n, all), 1.0, 5),
            fill(optional(2 * batch * n, all && marked), 1.0, 6),
        ]
    }

    fn lengths(&self) -> Vec<usize> {
        let shorter = |b: usize| if self.varied { (b * 2).min(self.steps - 1) } else { 0 };
        (0..self.batch).map(|b| self.steps - shorter(b)).collect()
    }

    fn marks(&self) -> Vec<bool> {
        (0..self.steps * self.batch).map(|at| self.marked && at * 7 % 5 == 1).collect()
    }

    fn problem<R: Real>(&self, given: &[Vec<R>; 6]) -> Problem {
        let Case { n, d, batch, steps, reverse, .. } = *self;
        let sizes = [steps * batch * d, 4 * n * n, 4 * n * d, 4 * n, 2 * batch * n, 2 * batch * n];
        let mut arrays = given.each_ref().map(|array| array.iter().map(|x| x.f64()).collect::<Vec<f64>>());
        arrays.iter_mut().zip(sizes).for_each(|(array, len)| array.resize(len, 0.0));
        Problem { steps, batch, d, n, arrays, lengths: self.lengths(), reverse, marks: self.marks() }
    }

    /// States and all gradients, those that were not asked for empty.
    fn run<R: Real>(&self, given: &[Vec<R>; 6], ct: &[R], threads: usize) -> Vec<Vec<R>> {
        let Case { n, d, batch, steps, reverse, .. } = *self;
        let [x, w, u, b, h0, state] = given.each_ref().map(|array| (!array.is_empty()).then_some(&array[..]));
        let (ends, marks) = (self.lengths(), self.marks());
        let run = Run {
            h0,
            lengths: self.varied.then_some(&ends[..]),
            reverse,
            starts: self.marked.then_some(Starts { marks: &marks, state }),
            ..Run::new([steps, batch, d, 2 * n], x.unwrap_or(&[]))
        };
        let (w, u) = (w.unwrap(), u.unwrap_or(&[]));
        let lstm = Lstm { run, w, u, b };
        let (len, budget) = (2 * steps * batch * n, Budget::of(threads));
        let (mut states, mut saved) = (Guarded::new(len), Guarded::new(SAVED * len));
        forward(&lstm, states.inner(), Some(saved.inner()), &budget).unwrap();
        let (states, saved) = (states.take(), saved.take());
        let packs = packs(&[(w, 4 * n), (u, 4 * n)]);
        let packed = Lstm { run: Run { packs: Some(&packs), ..run }, ..lstm };
        let mut again = Guarded::new(len);
        forward(&packed, again.inner(), None, &budget).unwrap();
        assert!(again.take() == states, "states depend on what is saved, or packed before: {self:?}");

        let gradients = |from: Option<Checkpoint>| {
            let mut bars: Vec<Guarded<R>> = given.iter().map(|array| Guarded::new(array.len())).collect();
            let mut wanted = of_arguments(ARGUMENTS, &NAMES, &mut bars);
            if let Some(kind) = from {
                let borders = kind.segments(steps, batch, SAVED).borders();
                let (mut last, mut marks) =
                    (vec![R::zero(); 2 * batch * n], vec![R::zero(); 2 * borders * batch * n]);
                let written =
                    Written { states: None, last: Some(&mut last), marks: Some((kind, &mut marks)) };
                forward(&lstm, written, None, &budget).unwrap();
                backward(&lstm, Trajectory::Marks(kind, &marks, &last), &[], ct, &mut wanted, &budget)
                    .unwrap();
            } else {
                backward(&lstm, &states, &saved, ct, &mut wanted, &budget).unwrap();
            }
            drop(wanted);
            bars.into_iter().map(Guarded::take).collect::<Vec<_>>()
        };
        let bars = gradients(None);
        assert!(gradients(Some(Checkpoint::Sqrt)) == bars, "a checkpoint changes gradients: {self:?}");
        [vec![states], bars].concat()
    }

    fn check<R: Real>(&self) {
        let Case { n, d, batch, steps, .. } = *self;
        if !crate::testing::within_work(&[4, steps, batch, n, n]) {
            return;
        }
        let mut given = self.arrays::<R>();
        let problem = self.problem(&given);
        let mut ct: Vec<R> = fill(2 * steps * batch * n, 1.0, 8);
        let wide: Vec<f64> = ct.iter().map(|c| c.f64()).collect();
        let expected = problem.backward(&wide);
        // Values past the end of a sequence must not be read.
        for (b, &length) in problem.lengths.iter().enumerate() {
            for row in (length..steps).map(|t| t * batch + b) {
                given[0][row * d..][..d].fill(R::nan());
                ct[2 * row * n..][..2 * n].fill(R::nan());
            }
        }
        let results = self.run(&given, &ct, 1);
        for threads in [2, 3] {
            assert!(
                self.run(&given, &ct, threads) == results,
                "{threads} threads change the result: {self:?}"
            );
        }
        let (states, bars) = if size_of::<R>() == 4 { (2e-5, 1e-3) } else { (1e-12, 1e-11) };
        near(&results[0], &problem.forward(), states, format_args!("states, {self:?}"));
        for ((name, got), expected) in NAMES.iter().zip(&results[1..]).zip(&expected) {
            if !got.is_empty() {
                near(got, expected, bars, format_args!("{name}, {self:?}"));
            }
        }
    }
}

fn sweep<R: Real>() {
    for (n, d, batch, steps) in
        [(1, 1, 1, 1), (6, 3, 5, 9), (38, 2, 1, 20), (36, 1, 3, 12), (70, 9, 2, 11), (34, 0, 13, 5)]
    {
        for variant in 0..16 {
            let [varied, reverse, all, marked] = [1, 2, 4, 8].map(|bit| variant & bit != 0);
            Case { n, d, batch, steps, varied, reverse, all, marked }.check::<R>();
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

#[test]
fn any_number_of_threads_has_the_same_bits() {
    for batch in [5, 70] {
        let case =
            Case { n: 18, d: 3, batch, steps: 4, varied: false, reverse: false, all: true, marked: true };
        let (given, ct) = (case.arrays::<f32>(), fill(2 * 4 * batch * 18, 1.0, 8));
        same_bits(&format!("{case:?}"), |threads| case.run(&given, &ct, threads));
    }
}

#[test]
fn the_textbook_gradient_is_the_difference_quotient() {
    for (varied, reverse, marked) in [(false, false, false), (true, true, true), (false, false, true)] {
        let case = Case { n: 3, d: 2, batch: 2, steps: 4, varied, reverse, all: true, marked };
        let problem = case.problem(&case.arrays::<f64>());
        let ct: Vec<f64> = fill(2 * 4 * 2 * 3, 1.0, 9);
        let loss = |problem: &Problem| -> f64 { problem.forward().iter().zip(&ct).map(|(h, c)| h * c).sum() };
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

#[test]
fn wrong_arguments_are_errors() {
    let x = [0.0; 6];
    let run = Run::new([2, 1, 3, 4], &x);
    let lstm = Lstm { run, w: &[0.0; 16], u: &[0.0; 24], b: None };
    let mut states = vec![0.0; 8];
    assert!(forward(&lstm, &mut states, None, &Budget::of(1)).is_ok());
    for wrong in [
        Lstm { run: Run { n: 3, ..run }, ..lstm },
        Lstm { w: &[0.0; 15], ..lstm },
        Lstm { u: &[0.0; 23], ..lstm },
        Lstm { b: Some(&[0.0; 7]), ..lstm },
        Lstm { run: Run { activation: Activation::Relu, ..run }, ..lstm },
        Lstm { run: Run { activation_bias: Some(&[0.0; 2]), ..run }, ..lstm },
        Lstm { run: Run { packs: Some(&[0.0; 3]), ..run }, ..lstm },
    ] {
        assert!(forward(&wrong, &mut states, None, &Budget::of(1)).is_err());
    }
    let mut bar = [0.0; 8];
    let mut bars = wanted(ARGUMENTS, [("b", &mut bar[..])]);
    assert!(backward(&lstm, &states, &[0.0; 16], &[0.0; 8], &mut bars, &Budget::of(1)).is_err());
}
