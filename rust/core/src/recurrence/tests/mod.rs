//! Laws of all cells: each is drawn from its declaration and held against one textbook step.

mod expected;
mod problem;
mod refusals;
mod textbook;

use super::{Checkpoint, declared};
use crate::activation::Activation;
use crate::activation::tests::all;
use crate::budget::Budget;
use crate::error::Error;
use crate::scalar::{Scalar, c32, c64};
use crate::testing::{fill, near, within_work};
use crate::transition::SHORT;
use isometry_kernels::recurrence::FEW;
use problem::{Case, Marks, Matrix, Problem, Results, remembers};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use textbook::{CELLS, Textbook};

/// A few steps of every cell, plain ones.
fn plain(cell: &'static Textbook) -> Case {
    Case {
        cell,
        settings: cell.settings[0],
        matrix: if cell.name == "recurrence" { Matrix::Dense } else { Matrix::Rows },
        sizes: [4, 3, 2, 4],
        activation: Activation::Tanh,
        reverse: false,
        varied: false,
        all: true,
        marks: Marks::None,
    }
}

/// Every cell with every choice of settings and of operators of each kind, for n states.
fn variants(complex: bool, n: usize) -> Vec<Case> {
    let mut cases = vec![];
    for cell in CELLS.iter().filter(|cell| !complex || cell.name == "recurrence") {
        let [few, half] = [3, n + 5].map(|m| Matrix::Reflections(m, 1 + usize::from(complex)));
        let operators = match cell.name {
            "recurrence" => vec![Matrix::Dense, Matrix::Reflections(n / 2, 0), few, half, Matrix::Rows],
            _ => vec![Matrix::Rows],
        };
        // a single state has no rotation, and no gradient of a reflection
        let fits =
            |own: &Matrix| n > 1 || *own == Matrix::Dense || declared(cell.name).unwrap().operator.is_empty();
        let operators: Vec<_> = operators.into_iter().filter(fits).collect();
        for (&settings, matrix) in
            cell.settings.iter().flat_map(|settings| operators.iter().map(move |own| (settings, *own)))
        {
            cases.push(Case { settings, matrix, ..plain(cell) });
        }
    }
    cases
}

fn check<T: Scalar>(case: Case) {
    let mut problem = Problem::<T>::new(case);
    let results = problem.run(1, None).unwrap();
    let kept = (!remembers(&case)).then_some(Checkpoint::Sqrt);
    for (threads, checkpoint) in [(2, None), (3, None), (1, kept), (2, kept)] {
        let again = problem.run(threads, checkpoint).unwrap();
        assert!(again == results, "{threads} threads, {checkpoint:?} change the result: {case}");
    }
    problem.beside = true;
    for (threads, checkpoint) in [(1, None), (3, None), (2, kept)] {
        let again = problem.run(threads, checkpoint).unwrap();
        assert!(again == results, "{threads} threads, {checkpoint:?}, beside others: {case}");
    }
    problem.beside = false;
    let (packs, single) = (problem.packs(), size_of::<T::Real>() == 4);
    let [steps, batch, ..] = case.sizes;
    for packs in [None, Some(&packs[..])] {
        let states = problem.states(packs, &Budget::of(2)).unwrap();
        if packs.is_some() && steps <= SHORT && batch <= FEW && T::PARTS == 1 {
            // otherwise the matrices are read in place, in another order
            near(&states, &results[0].1, if single { 1e-5 } else { 1e-13 }, format!("packed before: {case}"));
        } else {
            assert!(states == results[0].1, "states depend on what is saved, or packed before: {case}");
        }
    }
    let close = |found: &Results, expected: &Results, tolerance: f64| {
        for ((name, found), (_, expected)) in found.iter().zip(expected) {
            let scale = if ["states", "last", "memory"].contains(&&name[..]) { 1.0 } else { 10.0 };
            near(found, expected, scale * tolerance, format!("{name}, {case}"));
        }
    };
    close(&results, &problem.expected(), if single { 1e-4 } else { 1e-12 });
    let linear = matches!(case.activation, Activation::Identity | Activation::Oplu | Activation::OpluHalves);
    let undoable = linear || case.settings.first().is_some_and(|on_input| *on_input == 1.0);
    if undoable && matches!(case.matrix, Matrix::Reflections(_, 0 | 2)) && case.marks == Marks::None {
        let undone = problem.run(2, Some(Checkpoint::Reversible)).unwrap();
        assert!(undone[0] == results[0], "{case}");
        close(&undone, &results, if single { 1e-4 } else { 1e-12 });
    }
}

/// Sizes on both sides of every change of algorithm, with four options: reverse order, lengths, optional arguments and
/// marks. One precision tests the combinations with an even number of options, the other those with an odd number, and
/// at the next size they swap; each half contains every pair of options.
fn sweep<T: Scalar>() {
    let sizes = [[1, 1, 1, 1], [9, 5, 3, 6], [20, 1, 2, 38], [12, 3, 1, 36], [11, 2, 9, 70], [5, 13, 0, 34]];
    let mut turn = 0;
    let many = [[4, 3, 40, 9], [3, 40, 33, 8]];
    // up to eight steps, whose matrices are read in place up to three sequences, with whole vectors and others
    let single = [[1, 1, 40, 20], [1, 2, 16, 16], [1, 3, 5, 37], [1, 4, 17, 33]];
    let few = [[8, 1, 1, 2], [5, 2, 1, 7], [8, 3, 12, 16], [9, 3, 1, 5]];
    let all_sizes = sizes.into_iter().chain(many).chain(single).chain(few).chain([[3, 40, 2, 20]]);
    for (parity, sizes) in (size_of::<T::Real>() as u32 / 4..).zip(all_sizes) {
        let [steps, batch, _, n] = sizes;
        let activations: Vec<_> = all::<T>();
        for case in variants(T::PARTS == 2, n) {
            for choice in 0..16u32 {
                turn += 1;
                let [reverse, varied, all, marked] = [1, 2, 4, 8].map(|bit| choice & bit != 0);
                let marks =
                    if marked { [Marks::Plain, Marks::Own, Marks::Each][turn % 3] } else { Marks::None };
                let other = (choice.count_ones() + parity) % 2 == 1;
                if other || (marked && remembers(&case)) || !within_work(&[3, steps, batch, n, n]) {
                    continue;
                }
                let own = activations[turn % activations.len()];
                let paired =
                    matches!(own, Activation::Oplu | Activation::OpluHalves | Activation::ModreluRealrep);
                let fits = case.cell.activations && (n % 2 == 0 || !paired);
                let activation = if fits { own } else { Activation::Tanh };
                check::<T>(Case { sizes, activation, reverse, varied, all, marks, ..case });
            }
        }
    }
}

#[test]
fn every_cell_has_a_textbook_step() {
    assert!(super::CELLS.iter().map(|cell| cell.name).eq(CELLS.iter().map(|cell| cell.name)));
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
fn follows_the_textbook_c32() {
    sweep::<c32>();
}

#[test]
fn follows_the_textbook_c64() {
    sweep::<c64>();
}

/// Small enough for Miri in every change.
#[test]
fn a_few_steps_follow_the_textbook() {
    for sizes in [[4, 3, 2, 4], [5, 2, 1, 1]] {
        check::<f64>(Case { sizes, ..plain(&CELLS[0]) });
    }
}

/// The last states alone have the gradients of all states with cotangents at their ends; sequences without a step have h0.
#[test]
fn cotangents_of_the_last_states() {
    for case in variants(false, 6) {
        for (varied, reverse) in [(false, false), (true, false), (true, true)] {
            let case = Case { sizes: [40, 21, 2, 6], varied, reverse, ..case };
            let mut problem = Problem::<f64>::new(case);
            problem.ct = fill(21 * 6 * problem.cell.width, 1.0, 5);
            problem.of_last = true;
            let results = problem.run(1, None).unwrap();
            for ((name, found), (_, expected)) in results.iter().zip(problem.expected()) {
                near(found, &expected, 1e-10, format!("{name}, {case}"));
            }
            for checkpoint in [None, (!remembers(&case)).then_some(Checkpoint::Sqrt)] {
                assert!(problem.run(2, checkpoint).unwrap() == results, "{checkpoint:?}, {case}");
            }
        }
    }
}

/// A long call asks whether to go on, in its caller's floating-point mode, and a raised flag ends it.
#[test]
fn a_raised_flag_interrupts_all_members() {
    if !within_work(&[400_000_000]) {
        return;
    }
    let (asked, flushed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let asks = |answer: bool| {
        asked.fetch_add(1, Relaxed);
        flushed.fetch_add(usize::from(black_box(black_box(f64::MIN_POSITIVE) / 4.0) == 0.0), Relaxed);
        answer
    };
    for cell in CELLS {
        for (batch, threads) in [(1, 1), (1, 2), (4, 2)] {
            let problem = Problem::<f32>::new(Case { sizes: [6400 / batch, batch, 1, 256], ..plain(cell) });
            let raised = Budget { threads, cancel: &|| asks(true) };
            let (goes_on, before) = (Budget { threads, cancel: &|| asks(false) }, asked.load(Relaxed));
            for budgets in [[&raised; 2], [&goes_on, &raised]] {
                let found = problem.results(budgets, None);
                assert_eq!(found.err(), Some(Error::Interrupted), "{}", problem.case);
            }
            assert!(asked.load(Relaxed) > before + 2, "{} does not ask", problem.case);
        }
    }
    assert_eq!(flushed.into_inner(), 0);
}
