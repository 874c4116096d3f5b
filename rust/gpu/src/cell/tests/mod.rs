//! Every cell against the core in double precision: all activations, options and routes, on all sides of the tiles.

mod case;

use super::{CELLS, Cell};
use crate::Field;
use crate::activation::tests::all;
use crate::hosted::Uploads;
use crate::proof::roughness;
use crate::recurrence::steps::{Route, WIDEST, route};
use crate::testing::{device, numbers};
use case::Case;
use isometry_core::Error;
use isometry_core::activation::Activation;
use isometry_core::argument::{Array, Given};
use isometry_core::recurrence::{Call, declared};

/// The affine cell of an activation; the derivative of a complex modReLU grows like b / |z|, and so does what rounding of z becomes.
fn affine(field: Field, activation: Activation, on_input: bool) -> Case {
    let turns = field == Field::Complex && activation == Activation::Modrelu;
    let units = if turns || activation == Activation::ModreluRealrep { 240.0 } else { 48.0 };
    let settings: &[f64] = if on_input { &[1.0] } else { &[0.0] };
    Case { field, activation, units, ..Case::new("recurrence", settings) }
}

/// Every cell of real numbers, with its settings.
fn each(test: impl Fn(Case)) {
    for cell in CELLS {
        let settings: &[&[f64]] = match declared(cell.name).unwrap().settings {
            [] => &[&[]],
            [_] => &[&[0.0], &[1.0]],
            // with a memory and without; lengths of the states
            _ => &[&[0.0, f64::NAN], &[1.0, f64::NAN], &[0.0, 1.5], &[1.0, 1.5]],
        };
        settings.iter().for_each(|settings| test(Case::new(cell.name, settings)));
    }
}

const APART: [Option<Route>; 2] = [Some(Route::Together(2)), Some(Route::Apart)];

#[test]
fn all_activations_and_options() {
    let Some(_) = device() else { return };
    each(|case| {
        let activations = all(Field::Real, 6);
        let only = if case.cell == "lstm" { &[Activation::Tanh] } else { &activations[..] };
        for (i, &activation) in only.iter().enumerate() {
            for (all, reverse) in [(true, false), (true, true), (false, false), (false, true)] {
                for lengths in [None, Some(vec![5, 5, 3, 0])] {
                    if lengths.is_some() == (reverse == (i % 2 == 0)) || case.cell == "lstm" {
                        Case { activation, all, lengths, reverse, ..case.clone() }.check();
                    }
                }
            }
        }
    });
}

#[test]
fn both_routes_of_the_affine_cell() {
    let Some(_) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for activation in all(field, 6) {
            for option in 0..16 {
                let on = |bit: usize| option >> bit & 1 == 1;
                let lengths = on(1).then(|| vec![5, 3, 2, 1]);
                Case { reverse: on(2), lengths, all: on(3), ..affine(field, activation, on(0)) }
                    .check_on(&APART);
            }
        }
        for sizes in
            [[1, 1, 1, 1], [1, 3, 2, 2], [6, 5, 4, 33], [3, 17, 5, 40], [2, 9, 17, 31], [3, 2, 3, 70]]
        {
            for activation in [Activation::Tanh, Activation::Modrelu] {
                let [steps, batch, _, n] = sizes;
                let lengths = Some((0..batch).rev().map(|b| b * steps / batch + 1).collect());
                let case = Case { sizes, lengths, reverse: n == 40, ..affine(field, activation, false) };
                case.check_on(&[Some(Route::Together(512)), Some(Route::Together(1)), Some(Route::Apart)]);
            }
        }
    }
    Case { sizes: [3, 2, 0, 4], ..affine(Field::Real, Activation::Tanh, false) }.check_on(&APART);
}

#[test]
fn large_tiles_and_several_sequences_of_a_thread() {
    let Some(_) = device() else { return };
    // 64 x 64 tiles of 4096 sequences; four sequences of a thread from 1024 times its lanes on
    for (field, batch, n) in [(Field::Real, 4033, 6), (Field::Complex, 4097, 3)] {
        let case = affine(field, Activation::Tanh, false);
        Case { sizes: [2, batch, 1, n], ..case }.check_on(&[Some(Route::Apart)]);
    }
    for (field, batch, n) in [(Field::Real, 2051, 130), (Field::Complex, 1025, 258)] {
        let case = affine(field, Activation::OpluHalves, false);
        Case { sizes: [1, batch, 1, n], ..case }.check_on(&[Some(Route::Together(4))]);
    }
}

/// W is small, so that a step does not move states apart: of a rotation by angles that depend on the state it may, and then rounding grows
/// with the steps, on some devices to anything.
fn many_steps(steps: usize, case: Case) {
    let n = 3;
    let count = match case.cell {
        "rum" => 2 * n * n,
        "gru" | "goru" => 3 * n * n,
        _ => return Case { sizes: [steps, 1, 1, n], ..case }.check(),
    };
    let w = numbers(Field::Real, count, 7).iter().map(|x| f64::from((x.re / 32.0) as f32)).collect();
    // a memory is turned back step by step, and so is its rounding summed; the lengths of the vectors that turn it are a root and two
    // quotients, off the same way in every step
    let units = case.units * if case.cell == "rum" { steps as f64 / 64.0 * roughness() } else { 1.0 };
    Case { sizes: [steps, 1, 1, n], set: vec![("w", w)], units, ..case }.check();
}

#[test]
fn odd_and_large_sizes() {
    let Some(_) = device() else { return };
    each(|case| {
        for sizes in [[1, 1, 1, 1], [4, 3, 2, 2], [3, 2, 2, 5], [4, 70, 5, 33]] {
            Case { sizes, ..case.clone() }.check();
        }
        many_steps(300, case);
    });
    many_steps(600, Case::new("gru", &[0.0]));
    many_steps(600, Case::new("rum", &[1.0, 1.0]));
    for settings in [&[0.0, f64::NAN], &[1.0, 1.0]] {
        Case { sizes: [3, 2, 4, 160], ..Case::new("rum", settings) }.check();
    }
}

#[test]
fn what_stands_past_the_ends_does_not_matter() {
    let Some(_) = device() else { return };
    each(|case| {
        for reverse in [false, true] {
            let lengths = Some(vec![5, 3, 2, 0]);
            Case { past: f64::NAN, lengths, reverse, ..case.clone() }.check();
        }
    });
}

#[test]
fn states_may_be_their_own_cotangents() {
    let Some(_) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for activation in all(field, 6) {
            for on_input in [false, true] {
                Case { own_ct: true, ..affine(field, activation, on_input) }.check();
            }
        }
    }
    each(|case| Case { own_ct: true, ..case }.check());
}

#[test]
fn the_route_depends_on_the_size_of_w() {
    assert!(matches!(route(Field::Real, 8, 362), Route::Together(_)));
    assert_eq!(route(Field::Real, 8, 363), Route::Apart);
    assert!(matches!(route(Field::Complex, 8, 256), Route::Together(_)));
    assert_eq!(route(Field::Complex, 8, 257), Route::Apart);
    assert_eq!(route(Field::Real, 8, WIDEST + 1), Route::Apart);
}

#[test]
fn much_work_is_divided_into_more_dispatches() {
    assert_eq!(route(Field::Real, 16, 64), Route::Together(512));
    // n = 256: 2^28 multiply-adds for each step of 4096 sequences, 2^30 of complex ones
    assert_eq!(route(Field::Real, 4096, 256), Route::Together(64));
    assert_eq!(route(Field::Complex, 4096, 256), Route::Together(16));
    assert_eq!(route(Field::Complex, 1 << 30, 256), Route::Together(1));
}

/// W and U of zero: e and tau of a RUM are those of b.
fn turned(sizes: [usize; 4], settings: &'static [f64], b: &[f64]) {
    let [_, _, d, n] = sizes;
    let set = vec![("w", vec![0.0; 2 * n * n]), ("u", vec![0.0; 3 * n * d]), ("b", b.to_vec())];
    Case { sizes, activation: Activation::Relu, set, ..Case::new("rum", settings) }.check();
}

#[test]
fn opposite_vanishing_and_extreme_directions() {
    let Some(_) = device() else { return };
    let e = [0.5, -1.0, 0.25, 0.125, 2.0];
    let other = [1.0, 0.5, -0.25, 0.75, 0.125];
    // from 33 on threads of several subgroups read the state that others replace
    for n in [2, 3, 5, 33, 70] {
        let times = |of: &[f64], by: f64| of.iter().cycle().take(n).map(|x| x * by).collect::<Vec<_>>();
        for (steps, e, tau) in [
            (3, times(&e, 1.0), times(&e, -1.0)),
            (3, times(&e, 1.0), times(&e, 2.0)),
            (3, times(&e, 0.0), times(&other, 1.0)),
            (3, times(&e, 1.0), times(&other, 0.0)),
            (1, times(&e, 1e25), times(&other, 1e-25)),
        ] {
            let b = [vec![0.25; n], tau, e].concat();
            turned([steps, 2, 1, n], &[0.0, f64::NAN], &b);
            turned([steps, 2, 1, n], &[1.0, f64::NAN], &b);
        }
    }
    // where they nearly cancel, in the plane gradients do not depend on how nearly
    turned([1, 2, 1, 2], &[0.0, f64::NAN], &[0.25, 0.25, -1.0, 0.25 + 1.0 / 65536.0, 1.0, -0.25]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let made = |call: &Call<'_, f32>| {
        let mut uploads = Uploads::new().unwrap();
        let w = call.transition.as_ref().map(|(_, given)| uploads.needed("w", &given[0], &[6, 6]).unwrap());
        Cell::new(&mut uploads, call, w).map(drop)
    };
    let complex = crate::Array::upload(&context, Field::Complex, &[1], &[0.0; 2]).unwrap();
    let complex = crate::Room::from(complex);
    each(|case| {
        let drawn = case.drawn::<f32>();
        let call = case.call(&drawn);
        made(&call).unwrap();
        let refused = |changed: Call<'_, f32>, what: &str| {
            assert!(made(&changed).is_err(), "{what} of {}", case.cell);
        };
        for (i, argument) in call.cell.arguments.iter().enumerate() {
            let (shape, array) = (call.given[i].shape, call.given[i].array);
            let wrong = [
                Given { shape, array: Array::Remote(&complex) },
                Given { shape: &[7, 7], array },
                Given { shape, array: Array::None },
            ];
            for wrong in &wrong[..if argument.optional { 2 } else { 3 }] {
                let mut changed = call.clone();
                changed.given[i] = *wrong;
                if !matches!(array, Array::None) {
                    refused(changed, argument.name);
                }
            }
        }
        refused(Call { lengths: Some(&[3]), ..call.clone() }, "lengths");
        refused(Call { lengths: Some(&[6, 1, 1, 1]), ..call.clone() }, "lengths");
        refused(Call { activation: Activation::Modrelu, ..call.clone() }, "a missing bias");
        refused(Call { settings: &[0.0; 3], ..call.clone() }, "settings");
        refused(Call { marks: Some(&[false; 20]), ..call.clone() }, "starts");
    });
    let refused = |case: Case, settings: &'static [f64]| {
        let drawn = case.drawn::<f32>();
        assert!(made(&Call { settings, ..case.call(&drawn) }).is_err(), "{case:?} {settings:?}");
    };
    refused(Case::new("gru", &[1.0]), &[0.0]); // a bias behind W_h, and the reset before it
    refused(Case::new("rum", &[1.0, f64::NAN]), &[0.0, f64::NAN]); // a memory, and none wanted
    for settings in [&[0.0, 0.0], &[0.0, -1.0], &[0.0, f64::INFINITY], &[0.0, 1e-40]] {
        refused(Case::new("rum", &[0.0, 1.0]), settings);
    }
    let relu = Case { activation: Activation::Relu, ..Case::new("lstm", &[]) };
    refused(relu, &[]);
    let gru = Case::new("gru", &[0.0]);
    let drawn = gru.drawn::<f32>();
    let goru = Call { cell: declared("goru").unwrap(), ..gru.call(&drawn) };
    assert!(matches!(made(&goru), Err(Error::Unsupported(_))));
}
