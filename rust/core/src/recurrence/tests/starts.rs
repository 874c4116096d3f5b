//! A state for every mark, in every cell.

use crate::activation::Activation;
use crate::argument::{Array, Bar, Given};
use crate::budget::Budget;
use crate::recurrence::{
    CELLS, Call, Checkpoint, Cotangent, Declaration, Outcome, Trajectory, Written, sequence, sequence_vjp,
};
use crate::testing::{Guarded, fill, near};

const T: usize = 7;
const B: usize = 5;
const D: usize = 2;
const N: usize = 6;

/// The sizes of an argument; none where the cell has none of its own.
fn shape(axes: &str) -> Vec<usize> {
    let size = |axis: &str| {
        let (times, name) = axis.split_at(axis.find(char::is_alphabetic).unwrap_or(axis.len()));
        let own = match name {
            "T" => T,
            "B" => B,
            "d" => D,
            "n" => N,
            _ => 1,
        };
        times.parse().unwrap_or(1) * own
    };
    axes.split(' ').filter(|axis| !axis.is_empty()).map(size).collect()
}

/// The states, and the gradients of x, h0 and the states before marked steps, which are `given`.
fn run(
    cell: &'static Declaration,
    given: (&[usize], &[f64]),
    marks: &[bool],
    (reverse, lengths, checkpoint): (bool, Option<&[usize]>, Option<Checkpoint>),
    threads: usize,
) -> [Vec<f64>; 4] {
    let (last, named) = (cell.arguments.len() - 1, |i: usize| cell.arguments[i].name);
    // marks are refused beside a memory (r0), and tanh and "before" take no bias
    let held = |i: usize| !["r0", "activation_bias", "hidden_bias"].contains(&named(i));
    let mut shapes: Vec<_> = cell.arguments.iter().map(|argument| shape(argument.axes)).collect();
    shapes[last] = given.0.to_vec();
    let drawn = |i: usize| fill::<f64>(shapes[i].iter().product(), 0.5, 1 + i as u64);
    let mut arrays: Vec<_> = (0..=last).map(drawn).collect();
    arrays[last] = given.1.to_vec();
    let array = |i: usize| if held(i) { Array::Own(&arrays[i]) } else { Array::None };
    // W_h of a gated cell is an operator on rows
    let (weight, one, rows) = (fill::<f64>(N * N, 0.4, 20), [N, N], [N]);
    let (start, end) = (&weight[..N], &weight[N..2 * N]);
    let transition = if cell.operator == "w" {
        ("rotation", [start, end].map(|own| Given { shape: &rows, array: Array::Real(own) }).to_vec())
    } else {
        ("dense", vec![Given { shape: &one, array: Array::Own(&weight) }])
    };
    let settings = vec![f64::NAN; cell.settings.len()];
    let call = Call {
        cell,
        given: (0..=last).map(|i| Given { shape: &shapes[i], array: array(i) }).collect(),
        transition: (!cell.operator.is_empty()).then_some(transition),
        activation: Activation::Tanh,
        settings: &settings,
        lengths,
        reverse,
        marks: Some(marks),
        packs: None,
    };
    let (len, budget) = (T * B * N * cell.width, Budget::of(threads));
    let whole = checkpoint.is_none();
    let borders = checkpoint.map_or(0, |kind| kind.borders(T, B, cell.saves(&settings)));
    let mut states = Guarded::new(len);
    let mut saved = vec![0.0; if whole { cell.saves(&settings) * len } else { 0 }];
    let (mut kept, mut ends) = (vec![0.0; borders * len / T], vec![0.0; len / T]);
    let written = Written {
        states: Some(states.inner()),
        last: Some(&mut ends),
        marks: checkpoint.map(|kind| (kind, &mut kept[..])),
    };
    sequence(call.clone(), written, &mut [], whole.then_some(&mut saved[..]), &budget).unwrap();
    let (states, ct) = (states.take(), fill::<f64>(len, 1.0, 21));
    let outcome = Outcome {
        states: checkpoint.map_or(Trajectory::All(&states), |kind| Trajectory::Marks(kind, &kept, &ends)),
        last: &[],
        saved: &saved,
        ct: Cotangent::States(&ct),
        last_ct: None,
    };
    let mut rooms: Vec<_> = arrays.iter().map(|array| Guarded::<f64>::new(array.len())).collect();
    let each = rooms.iter_mut().enumerate();
    let mut bars: Vec<_> =
        each.map(|(i, room)| if held(i) { Bar::Own(room.inner()) } else { Bar::None }).collect();
    sequence_vjp(call, &outcome, &mut bars, &mut [], &budget).unwrap();
    drop(bars);
    let h0 = (0..last).find(|&i| named(i) == "h0").unwrap();
    [states, rooms[0].read().to_vec(), rooms[h0].read().to_vec(), rooms[last].read().to_vec()]
}

#[test]
fn every_mark_has_a_state_of_its_own() {
    let marks: Vec<bool> = (0..T * B).map(|at| at * 7 % 5 == 1 || at % 11 == 3).collect();
    for cell in CELLS {
        let width = N * cell.width;
        let one = fill::<f64>(B * width, 1.0, 30);
        // the same at every mark; the others may hold anything
        let mut all: Vec<f64> = (0..T).flat_map(|_| one.iter().copied()).collect();
        let own: Vec<bool> = marks.iter().flat_map(|mark| std::iter::repeat_n(*mark, width)).collect();
        all.iter_mut().zip(&own).filter(|(_, own)| !**own).for_each(|(state, _)| *state = f64::NAN);
        for (reverse, lengths) in
            [(false, None), (true, None), (false, Some([7, 6, 6, 3, 2])), (true, Some([7, 6, 6, 3, 2]))]
        {
            let way = (reverse, lengths.as_ref().map(|lengths| &lengths[..]), None);
            let what = format!("{}, reverse {reverse}, lengths {lengths:?}", cell.name);
            let [states, x, h0, state] = run(cell, (&[B, width], &one), &marks, way, 1);
            let found = run(cell, (&[T, B, width], &all), &marks, way, 1);
            assert!([&states, &x, &h0].into_iter().eq(&found[..3]), "{what}");
            let sum = |at: usize| found[3].iter().skip(at).step_by(B * width).sum::<f64>();
            near(&(0..B * width).map(sum).collect::<Vec<_>>(), &state, 1e-13, &what);
            assert!(found[3].iter().zip(&own).all(|(bar, own)| *own || *bar == 0.0), "{what}");
            assert!(state.iter().any(|bar| *bar != 0.0), "{what}: no mark counts");
            let kept = (way.0, way.1, Some(Checkpoint::Sqrt));
            for (threads, way) in [(2, way), (3, way), (1, kept), (2, kept)] {
                assert!(
                    run(cell, (&[T, B, width], &all), &marks, way, threads) == found,
                    "{what}, {threads}"
                );
            }
        }
        // the states of two marks of a column are told apart: each moves what follows its own mark
        let mut other = all.clone();
        let (t, b) = (0..T * B).rev().map(|at| (at / B, at % B)).find(|&(t, b)| marks[t * B + b]).unwrap();
        other[(t * B + b) * width..][..width].fill(0.125);
        let [before, after] = [&all, &other]
            .map(|given| run(cell, (&[T, B, width], given), &marks, (false, None, None), 1)[0].clone());
        for at in 0..T * B {
            let same = before[at * width..][..width] == after[at * width..][..width];
            assert!(same != (at % B == b && at / B >= t), "{} {at}", cell.name);
        }
    }
}
