//! What every object has: it is made of arrays of all lengths by its name, and has four calls.

use crate::common::Bars;
use crate::{LENGTHS, SIDES, SIZES, THREADS, called, choices, expect, fits, ones, real, returns};
use isometry_core::argument::{Argument, Array, Given, Kind};
use isometry_core::internal::sizes::size;
use isometry_core::internal::{Beside, BesideMut, Blocks, Buffer};
use isometry_core::operators::dense::Dense;
use isometry_core::operators::{OBJECTS, arguments, check_values, route, view};
use isometry_core::recurrence::{self, Cotangent, Run, Sequence, Trajectory, Workload, Written};
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu, Result, Saves};
use std::collections::BTreeSet;

/// The value of an axis in the sizes of that name.
fn axis(axis: &str, names: &[&str], sizes: &[usize]) -> usize {
    let size = |name| names.iter().position(|own| *own == name).map_or(0, |at| sizes[at]);
    match axis.strip_suffix("(n-1)/2") {
        Some(n) => size(n).saturating_mul(size(n).saturating_sub(1)) / 2,
        None => axis.parse().unwrap_or_else(|_| size(axis)),
    }
}

/// Every object with sizes at all limits, made of arrays of all lengths, some of which are not given.
pub fn objects<T: Scalar>() {
    let (own, numbers) = (ones::<T>(2), real::<T>(2));
    // a mesh has five sizes, of which few make a layout
    for (object, list) in OBJECTS.iter().filter(|(object, _)| *object != "mesh") {
        let axes = list.iter().flat_map(|argument| argument.axes.split_whitespace());
        let axes = axes.map(|axis| axis.trim_end_matches("(n-1)/2"));
        let names: BTreeSet<_> = axes.filter(|axis| axis.parse::<usize>().is_err()).collect();
        let names: Vec<_> = ["batch"].into_iter().chain(names).collect();
        // an empty `upper` means n = 1, so n = 0 fits no other argument
        let above = list.iter().any(|argument| argument.axes.contains("(n-1)/2"));
        let named = |sizes: &[usize; 4]| sizes[names.len()..].iter().all(|&size| size == 0);
        for sizes in choices::<4>().filter(named).filter(|sizes| !above || axis("n", &names, sizes) > 0) {
            let shape = |argument: &Argument| -> Vec<usize> {
                let axes = ["batch"].into_iter().chain(argument.axes.split_whitespace());
                axes.map(|each| axis(each, &names, &sizes)).collect()
            };
            let shapes: Vec<_> = list.iter().map(shape).collect();
            for choice in 0..4usize.pow(list.len() as u32) {
                let length = |i: usize| choice >> (2 * i) & 3;
                if (0..list.len()).any(|i| length(i) == 3 && !list[i].optional) {
                    continue;
                }
                let array = |i: usize| match (list[i].kind, length(i)) {
                    (Kind::Shape, _) => Array::Own(&[]),
                    (_, 3) => Array::None,
                    (Kind::Integer, len) => Array::Integers(&[0, 1][..len]),
                    (kind, len) if kind.real() => Array::Real(&numbers[..len]),
                    (_, len) => Array::Own(&own[..len]),
                };
                let given: Vec<_> =
                    (0..list.len()).map(|i| Given { shape: &shapes[i], array: array(i) }).collect();
                let fit = (0..list.len()).all(|i| match given[i].array {
                    Array::Own(array) => fits(array.len(), &shapes[i]),
                    Array::Real(array) => fits(array.len(), &shapes[i]),
                    Array::Integers(array) => fits(array.len(), &shapes[i]),
                    _ => true,
                });
                if let Ok(op) = called("operators::view", &sizes, || view(object, &given)) {
                    assert!(fit, "{object} of {given:?}");
                    operator(&*op, &sizes);
                }
            }
        }
    }
}

/// Arrays of every length, beside rows of every number.
pub fn operator<T: Scalar>(op: &dyn Cpu<T>, sizes: &[usize]) {
    let (budget, batch, (p, q)) = (Budget::of(THREADS), op.batch(), op.shape());
    let mut bars = Bars::new(op, op.arguments().len());
    returns("matrix_saves", sizes, || op.matrix_saves());
    // rows go through a matrix that is kept
    let through = matches!(op.matrix_saves(), Ok(Saves::Result));
    let known = !through || size("saved", &[p, q]).is_ok();
    for len in LENGTHS {
        let (x, mut out) = (ones::<T>(len), ones::<T>(len));
        let square = fits(len, &[batch, p, q]);
        expect("matrix", sizes, square, || op.matrix(&mut out, None, &budget));
        expect("matrix_vjp", sizes, square, || op.matrix_vjp(None, &x, &mut bars.view(), &budget));
        for kept in [0, 1, 2, 6, 8] {
            let mut saved = ones::<T>(kept);
            let Ok(saves) = op.matrix_saves() else { continue };
            // an object of which nothing is saved may leave the array as it is
            let good = match saves {
                Saves::Result => Some(fits(kept, &[batch, p, q])),
                Saves::Elements(0) => None,
                Saves::Elements(each) => Some(fits(kept, &[batch, each])),
            };
            let outcome = |what, call: &mut dyn FnMut() -> Result<()>| match good {
                Some(good) => expect(what, sizes, square && good, call),
                None => returns(what, sizes, call),
            };
            if !through {
                outcome("matrix saving", &mut || op.matrix(&mut out, Some(&mut saved), &budget));
            }
            outcome("matrix_vjp saved", &mut || op.matrix_vjp(Some(&saved), &x, &mut bars.view(), &budget));
        }
        for (rows, side) in SIZES.into_iter().flat_map(|rows| SIDES.map(|side| (rows, side))) {
            let (from, into) = side.features((p, q));
            for other in [len, len + 1, 0] {
                let good = known && fits(len, &[batch, rows, from]) && fits(other, &[batch, rows, into]);
                let (mut out, mut x_bar) = (ones::<T>(other), ones::<T>(len));
                let ct = ones::<T>(other);
                expect("apply", sizes, good, || op.apply(&x, rows, side, &mut out, None, &budget));
                returns("apply saving", sizes, || {
                    op.apply(&x, rows, side, &mut out, Some(&mut x_bar), &budget)
                });
                expect("apply_vjp", sizes, good, || {
                    op.apply_vjp(None, &x, &ct, rows, side, &mut bars.view(), Some(&mut x_bar), &budget)
                });
                returns("apply_vjp", sizes, || {
                    op.apply_vjp(Some(&x), &x, &ct, rows, side, &mut bars.view(), None, &budget)
                });
                expect("apply_vjp", sizes, false, || {
                    let x_bar = &mut ones(len + 1)[..];
                    op.apply_vjp(None, &x, &ct, rows, side, &mut bars.view(), Some(x_bar), &budget)
                });
            }
        }
    }
}

/// Arguments of every object by name, with shapes of any sizes, which fit each other or not.
pub fn shapes<T: Scalar>() {
    // not the size that machines have and that takes seconds to fill
    for len in SIZES.into_iter().filter(|len| *len != 1 << 32) {
        expect("Buffer::zeroed", &[len], true, || Buffer::<f64>::zeroed(len).map(drop));
    }
    for sizes @ [steps, batch, _] in choices::<3>() {
        let workload = Workload { steps, batch, gated: false };
        for (object, list) in OBJECTS {
            expect("operators::arguments", &sizes, true, || arguments(object));
            let shapes = vec![&sizes[..]; list.len()];
            returns("operators::route", &sizes, || route(object, &shapes, workload));
            assert!(route(object, &[], workload).is_err());
        }
        for len in LENGTHS {
            let (own, numbers, integers) = (ones::<T>(len), real::<T>(len), vec![0i64; len]);
            for (object, arguments) in OBJECTS {
                let given: Vec<_> = arguments
                    .iter()
                    .map(|argument| Given {
                        shape: &sizes[..(argument.rank() + 1).min(sizes.len())],
                        array: match argument.kind {
                            Kind::Integer => Array::Integers(&integers),
                            kind if kind.real() => Array::Real(&numbers),
                            _ => Array::Own(&own),
                        },
                    })
                    .collect();
                returns("operators::view", &sizes, || view(object, &given).map(drop));
                returns("operators::check_values", &sizes, || check_values(object, &given));
            }
        }
    }
}

pub fn blocks<T: Scalar>() {
    for sizes @ [nb, p, q, rows] in choices() {
        for (weights, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (weight, x) = (ones::<T>(weights), ones::<T>(len));
            let blocks = Blocks::new(&weight, (nb, p, q));
            returns("Blocks::new", &sizes, || Ok(blocks));
            let good = fits(weights, &[nb, p, q]) && fits(len, &[rows, nb, q]);
            for other in LENGTHS {
                let good = good && fits(other, &[rows, nb, p]);
                let ct = ones::<T>(other);
                expect("Blocks::apply", &sizes, good, || blocks.apply(&x, rows, &mut ones(other), THREADS));
                for (own, x_bar) in [(weights, len), (weights + 1, len), (weights, len + 1)] {
                    let good = good && (own, x_bar) == (weights, len);
                    let (mut own, mut x_bar) = (ones(own), ones(x_bar));
                    expect("Blocks::apply_vjp", &sizes, good, || {
                        blocks.apply_vjp(&x, &ct, rows, Some(&mut own), Some(&mut x_bar), THREADS)
                    });
                }
            }
        }
    }
}

/// States and cotangents among those of other recurrences, in arrays of every length.
pub fn beside<T: Scalar>() {
    let (weight, x) = ([T::one(); 4], [T::one(); 6]);
    for (len, count, own) in
        LENGTHS.into_iter().flat_map(|len| [0, 1, 3].map(|count| (len, count, 1 + len % 2)))
    {
        let sizes = [len, count, own];
        let run = Run::new([3, 2, 1, own], &x);
        let sequence = Sequence { run, input_weight: &weight[..own], bias: None, on_input: false };
        let w = || Dense::new(&weight[..own * own], 1, own, own);
        let (mut states, ct, budget) = (ones::<T>(len), ones::<T>(len), Budget::of(THREADS));
        let (good, whole) = (fits(len, &[3, 2, count, own]), ones::<T>(6 * own));
        returns("BesideMut::cut", &sizes, || Ok(BesideMut::cut(&mut states, count, own).count()));
        returns("Beside::cut", &sizes, || Ok(Beside::cut(&ct, count, own).count()));
        let forward = |beside: BesideMut<'_, T>| {
            let written = Written { beside: Some(beside), ..Written::default() };
            recurrence::forward(&w()?, &sequence, written, &budget)
        };
        for beside in BesideMut::cut(&mut states, count, own) {
            expect("recurrence::forward", &sizes, good, || forward(beside));
        }
        for part in [0, 1, own, own + 1] {
            let first = BesideMut::first(&mut states, part, own);
            let good = (1..=own).contains(&part) && fits(len, &[3, 2, part]);
            expect("BesideMut::first", &sizes, good, || forward(first));
        }
        for (ct, states) in Beside::cut(&ct, count, own).zip(Beside::cut(&states, count, own)) {
            let (states, ct) = (Trajectory::Beside(states), Cotangent::Beside(ct));
            let pull = |states| recurrence::backward(&w()?, &mut [], &sequence, states, ct, &mut [], &budget);
            expect("recurrence::backward", &sizes, good, || pull(states));
            expect("recurrence::backward", &sizes, false, || pull(Trajectory::All(&whole)));
        }
    }
}
