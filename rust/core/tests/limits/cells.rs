//! Every cell by its name.

use crate::{LENGTHS, THREADS, choices, ones, returns};
use isometry_core::Budget;
use isometry_core::activation::Activation;
use isometry_core::argument::{Array, Bar, Given, wanted};
use isometry_core::recurrence::{
    CELLS, Call, Cotangent, Declaration, Outcome, Trajectory, Written, declared, sequence, sequence_vjp,
};
use isometry_core::scalar::Scalar;

/// Sizes at all limits beside arrays of a few numbers, whatever their shapes say.
pub fn cells<T: Scalar>() {
    for cell in CELLS {
        for sizes in choices() {
            for len in LENGTHS {
                returns("recurrence::declared", &sizes, || declared(cell.name));
                let array = ones::<T>(len);
                let shapes: Vec<_> =
                    (0..cell.arguments.len()).map(|i| cell.shape(i, sizes).unwrap_or_default()).collect();
                let given = |i: usize| match cell.arguments[i].optional {
                    true => Given { shape: &[], array: Array::None },
                    false => Given { shape: &shapes[i], array: Array::Own(&array) },
                };
                let operator = [sizes[3], sizes[3]];
                let call = Call {
                    cell,
                    given: (0..shapes.len()).map(given).collect(),
                    transition: (!cell.operator.is_empty())
                        .then(|| ("dense", vec![Given { shape: &operator, array: Array::Own(&array) }])),
                    activation: Activation::Tanh,
                    settings: &[0.0, 1.0, 1.0][..cell.settings.len()],
                    lengths: None,
                    reverse: false,
                    marks: None,
                    packs: None,
                };
                let (mut states, mut bar, budget) = (ones::<T>(len), ones::<T>(len), Budget::of(THREADS));
                returns("recurrence::sequence", &sizes, || {
                    let written = Written::from(&mut states);
                    sequence(call.clone(), written, &mut [], None, &budget)
                });
                returns("recurrence::sequence_vjp", &sizes, || {
                    let outcome = Outcome {
                        states: Trajectory::All(&states),
                        last: &[],
                        saved: &ones::<T>(cell.saved * len / cell.width),
                        ct: Cotangent::States(&array),
                        last_ct: None,
                    };
                    sequence_vjp(call, &outcome, &mut [Bar::Own(&mut bar)], &mut [], &budget)
                });
            }
        }
    }
}

/// What the declaration of a cell says of arrays of other cells.
pub fn declarations() {
    let two: Vec<Given<'_, f32>> = vec![Given { shape: &[1, 1, 1], array: Array::Own(&[1.0]) }; 2];
    assert!(CELLS.iter().all(|cell: &Declaration| cell.sizes(&two).is_err()));
    assert!(declared("none").is_err());
    let cell = &CELLS[0];
    returns("argument::wanted", &[], || Ok(wanted::<f32, 1>(cell.arguments, [("none", &mut [])]).len()));
}
