//! Arguments that do not fit, and gradients of what was not given.

use super::textbook::CELLS;
use super::{Case, Marks, Problem, plain, remembers, variants};
use crate::argument::Bar;
use crate::budget::Budget;
use crate::recurrence::{Checkpoint, Cotangent, Outcome, Trajectory, Written, sequence, sequence_vjp};
use crate::testing::drawn::Held;

fn refusal(problem: &Problem<f32>) -> String {
    problem.run(1, None).err().map_or(String::new(), |error| error.to_string())
}

/// What the call with a change is refused with.
fn refused(case: &Case, change: impl FnOnce(&mut Problem<f32>)) -> String {
    let mut problem = Problem::<f32>::new(*case);
    change(&mut problem);
    refusal(&problem)
}

#[test]
fn arrays_lengths_and_packs_are_refused_by_name() {
    for case in variants(false, 4) {
        let case =
            Case { varied: true, marks: if remembers(&case) { Marks::None } else { Marks::Own }, ..case };
        let problem = Problem::<f32>::new(case);
        assert_eq!(refusal(&problem), "", "{case}");
        let held = |i: &usize| matches!(problem.arrays[*i].1, Held::Own(_));
        for i in (0..problem.arrays.len()).filter(held) {
            let name = problem.cell.arguments[i].name;
            let shorter = refused(&case, |wrong| {
                if let Held::Own(array) = &mut wrong.arrays[i].1 {
                    array.pop();
                }
            });
            let larger = refused(&case, |wrong| *wrong.arrays[i].0.last_mut().unwrap() += 1);
            assert!(shorter.starts_with(name), "{name} too short: {shorter}, {case}");
            // another d of x is one that u does not have
            assert!(
                i == 0 || larger.starts_with(name) || larger.contains("shape"),
                "{name}: {larger}, {case}"
            );
        }
        let none = refused(&case, |wrong| wrong.arrays[0].0[0] = 0);
        assert!(none.starts_with('x'), "no steps: {none}, {case}");
        for lengths in [vec![4], vec![5, 1, 1], vec![1, 2, 2]] {
            let found = refused(&case, |wrong| wrong.lengths = lengths);
            assert!(found.starts_with("lengths"), "{found}, {case}");
        }
        let found = refused(&Case { marks: Marks::Own, ..case }, |wrong| wrong.case.marks = Marks::None);
        let missing = "start_state must not be given without starts";
        assert!(remembers(&case) || found == missing, "{found}, {case}");
        let bias = problem.at("activation_bias");
        let found = refused(&case, |wrong| wrong.arrays[bias].1 = Held::Real(vec![0.0; 4]));
        assert!(found.starts_with("activation"), "{found}, {case}");
        let packs = problem.packs();
        for wrong in [0, packs.len() - 1] {
            let found = problem.states(Some(&packs[..wrong]), &Budget::of(1)).unwrap_err().to_string();
            assert!(found.starts_with("packs"), "{found}, {case}");
        }
    }
}

#[test]
fn rooms_and_gradients_are_refused_by_name() {
    let budget = Budget::of(1);
    for cell in CELLS {
        for &settings in cell.settings {
            let case = Case { all: false, settings, ..plain(cell) };
            let problem = Problem::<f32>::new(case);
            let (len, ends) = (problem.ct.len(), problem.ct.len() / case.sizes[0]);
            let saves = problem.cell.saves(settings);
            let (mut states, mut last, mut memory) =
                (vec![0.0; len], vec![0.0; ends], vec![0.0; problem.memory_ct.len()]);
            let forward = |written: Written<'_, f32>, memory: &mut [f32], saved: Option<&mut [f32]>| {
                let found = sequence(problem.call(None), written, memory, saved, &budget);
                found.err().map_or(String::new(), |error| error.to_string())
            };
            let mut saved = vec![0.0; saves * len / problem.cell.width];
            assert_eq!(forward((&mut states).into(), &mut memory, (saves > 0).then_some(&mut saved)), "");
            if saves > 0 {
                let short = forward((&mut states).into(), &mut memory, Some(&mut saved[1..]));
                assert!(short.starts_with("saved"), "{short}, {case}");
                for saved in [&mut [][..], &mut saved] {
                    let written = Written { last: Some(&mut last), ..Written::default() };
                    let found = forward(written, &mut memory, Some(saved));
                    assert!(found.starts_with("saved: "), "{found}, {case}");
                }
            }
            if !problem.cell.memory.is_empty() {
                let found = forward((&mut states).into(), &mut [0.0; 7], None);
                assert!(found.starts_with("last"), "{found}, {case}");
            }
            let outcome = Outcome {
                states: (&states).into(),
                last: &memory,
                saved: &saved,
                ct: (&states).into(),
                last_ct: None,
            };
            for (i, argument) in problem.cell.arguments.iter().enumerate().filter(|(_, own)| own.optional) {
                let mut room = vec![0.0; problem.arrays[i].0.iter().product()];
                let mut bars: Vec<_> = (0..=i).map(|_| Bar::None).collect();
                bars[i] = if argument.kind.real() { Bar::Real(&mut room) } else { Bar::Own(&mut room) };
                let found = sequence_vjp(problem.call(None), &outcome, &mut bars, &mut [], &budget);
                let none = format!("{}_bar is wanted, but there is no such argument", argument.name);
                assert_eq!(found.unwrap_err().to_string(), none, "{case}");
            }
            let undone = Outcome {
                states: Trajectory::Marks(Checkpoint::Reversible, &[], &states[..ends]),
                ct: Cotangent::Last(&states[..ends]),
                saved: &[],
                ..outcome
            };
            let found = sequence_vjp(problem.call(None), &undone, &mut [], &mut [], &budget);
            let found = found.err().map_or(String::new(), |error| error.to_string());
            let undoable = cell.name == "recurrence" && !settings[0].is_nan();
            assert!(found.is_empty() == undoable, "{found}, {case}");
        }
    }
}
