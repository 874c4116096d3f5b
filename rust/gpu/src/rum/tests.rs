//! Against the cell of the core in double precision.

use super::*;
use crate::cell;
use crate::testing::{bar, close, device, draw, sent_reals as send};
use isometry_core::Budget;
use isometry_core::activation::Activation;
use isometry_core::argument::Bar;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::rum::{Outcome, Rum, SAVED, backward as pull, forward as run};

#[derive(Clone, Debug)]
struct Case {
    sizes: [usize; 4],
    memory: bool,
    eta: Option<f64>,
    activation: Activation,
    /// b, h0 and R_0 are given.
    all: bool,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    /// What changes the drawn U x_t + b.
    b: Option<Vec<f64>>,
    /// Units of rounding.
    units: f64,
}

const PLAIN: Case = Case {
    sizes: [5, 4, 3, 6],
    memory: false,
    eta: None,
    activation: Activation::Relu,
    all: true,
    lengths: None,
    reverse: false,
    b: None,
    units: 256.0,
};

fn check(case: &Case) {
    let Some(context) = device() else { return };
    let Case { sizes: [steps, batch, d, n], memory, eta, activation, all, reverse, .. } = *case;
    let units = activation.bias_units(n);
    let scale = 1.0 / (n as f64).sqrt();
    let given = case.b.is_some();
    let quiet = if given { 0.0 } else { 1.0 };
    let (x, w) = (draw(steps * batch * d, 1, 1.0), draw(2 * n * n, 2, scale * quiet));
    let (u, h0) = (draw(3 * n * d, 3, 0.7 * quiet), draw(batch * n, 5, 1.0));
    let b = case.b.clone().unwrap_or_else(|| draw(3 * n, 4, 0.5));
    let (r0, own) = (draw(batch * n * n, 6, scale), draw(units, 7, 0.2));
    let (ct, last_ct) = (draw(steps * batch * n, 8, 1.0), draw(batch * n * n, 9, 1.0));
    let remembered = all && memory;
    let rum = Rum {
        run: Run {
            h0: all.then_some(&h0[..]),
            activation,
            activation_bias: (units > 0).then_some(&own[..]),
            lengths: case.lengths.as_deref(),
            reverse,
            ..Run::new(case.sizes, &x)
        },
        w: &w,
        u: &u,
        b: (all || given).then_some(&b[..]),
        memory,
        r0: remembered.then_some(&r0[..]),
        eta,
    };
    let zeros = |like: &[f64]| vec![0.0; like.len()];
    let (mut states, mut saved) = (zeros(&ct), vec![0.0; SAVED * ct.len()]);
    let mut last = vec![0.0; if memory { r0.len() } else { 0 }];
    let budget = Budget::of(1);
    run(&rum, &mut states[..], &mut last, Some(&mut saved), &budget).unwrap();
    let (mut x_bar, mut w_bar, mut u_bar, mut b_bar) = (zeros(&x), zeros(&w), zeros(&u), zeros(&b));
    let (mut h0_bar, mut r0_bar, mut own_bar) = (zeros(&h0), zeros(&r0), zeros(&own));
    let mut bars = vec![bar(&mut x_bar, true), bar(&mut w_bar, true), bar(&mut u_bar, true)];
    bars.extend([bar(&mut b_bar, rum.b.is_some()), bar(&mut h0_bar, all), bar(&mut r0_bar, remembered)]);
    bars.push(if units > 0 { Bar::Real(&mut own_bar) } else { Bar::None });
    let last_ct = memory.then_some(&last_ct[..]);
    let outcome =
        Outcome { states: (&states[..]).into(), last: &last, saved: &saved, ct: (&ct[..]).into(), last_ct };
    pull(&rum, &outcome, &mut bars, &budget).unwrap();
    drop(bars);

    let send = |shape: &[usize], data: &[f64]| send(&context, shape, data);
    let (dx, dw, du) = (send(&[steps, batch, d], &x), send(&[2 * n, n], &w), send(&[3 * n, d], &u));
    let (db, dh0, dr0) = (send(&[3 * n], &b), send(&[batch, n], &h0), send(&[batch, n, n], &r0));
    let (down, dct) = (send(&[units], &own), send(&[steps, batch, n], &ct));
    let dlast = last_ct.map(|ct| send(&[batch, n, n], ct));
    let rotational = Rotational {
        arguments: Arguments {
            x: &dx,
            w: &dw,
            u: &du,
            bias: rum.b.map(|_| &db),
            h0: all.then_some(&dh0),
            activation,
            activation_bias: (units > 0).then_some(&down),
            lengths: case.lengths.as_deref(),
            reverse,
        },
        memory,
        r0: remembered.then_some(&dr0),
        eta: eta.map(|eta| eta as f32),
    };
    let compare = |found: &Array, expected: &[f64], what: &str| {
        close(found, expected, case.units, &format!("{what} of {case:?}"));
    };
    let (own_states, own_last) = forward(&rotational).unwrap();
    compare(&own_states, &states, "states");
    assert_eq!(own_last.is_some(), memory);
    own_last.iter().for_each(|found| compare(found, &last, "memory"));
    let arguments =
        cell::Wanted { x: true, w: true, u: true, bias: true, h0: all, activation_bias: units > 0 };
    let wanted = Wanted { arguments, r0: remembered };
    let found = backward(&rotational, &own_states, (&dct, dlast.as_ref()), wanted).unwrap();
    let Gradients { arguments: found, r0 } = found;
    let [of_w]: [Array; 1] = found.w.unwrap().try_into().unwrap();
    for (found, expected, what) in [
        (Some(of_w), &w_bar, "W"),
        (found.x, &x_bar, "x"),
        (found.u, &u_bar, "U"),
        (found.bias.filter(|_| rum.b.is_some()), &b_bar, "b"),
        (found.h0, &h0_bar, "h0"),
        (r0, &r0_bar, "R_0"),
        (found.activation_bias, &own_bar, "activation bias"),
    ] {
        found.iter().for_each(|found| compare(found, expected, what));
    }
}

#[test]
fn all_activations_and_options() {
    let activations = [
        Activation::Tanh,
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.2 },
        Activation::Oplu,
        Activation::OpluHalves,
        Activation::Modrelu,
        Activation::ModreluRealrep,
    ];
    for (i, activation) in activations.into_iter().enumerate() {
        for (memory, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
            let lengths = [None, Some(vec![5, 5, 3, 0])][(i + usize::from(reverse)) % 2].clone();
            for (all, eta) in [(true, [None, Some(1.5)][i % 2]), (false, [Some(1.0), None][i % 2])] {
                check(&Case { memory, eta, activation, all, lengths: lengths.clone(), reverse, ..PLAIN });
            }
        }
    }
}

#[test]
fn odd_and_large_sizes() {
    for sizes in [[1, 1, 1, 1], [4, 3, 2, 2], [3, 2, 2, 5], [4, 70, 5, 33], [3, 2, 4, 160]] {
        for (memory, eta) in [(false, None), (false, Some(1.0)), (true, None), (true, Some(1.0))] {
            check(&Case { sizes, memory, eta, activation: Activation::Tanh, ..PLAIN });
        }
    }
}

/// W and U of zero: e and tau are those of b.
#[test]
fn opposite_vanishing_and_extreme_directions() {
    let e = [0.5, -1.0, 0.25, 0.125, 2.0];
    let other = [1.0, 0.5, -0.25, 0.75, 0.125];
    for n in [2, 3, 5] {
        let with = |steps: usize, e: Vec<f64>, tau: Vec<f64>| {
            let b = [vec![0.25; n], tau, e].concat();
            for memory in [false, true] {
                check(&Case { sizes: [steps, 2, 1, n], memory, b: Some(b.clone()), ..PLAIN });
            }
        };
        let times = |of: &[f64], by: f64| of[..n].iter().map(|x| x * by).collect::<Vec<_>>();
        with(3, times(&e, 1.0), times(&e, -1.0));
        with(3, times(&e, 1.0), times(&e, 2.0));
        with(3, times(&e, 0.0), times(&other, 1.0));
        with(3, times(&e, 1.0), times(&other, 0.0));
        with(1, times(&e, 1e25), times(&other, 1e-25));
    }
}

/// Where directions nearly cancel, in the plane gradients do not depend on how nearly.
#[test]
fn nearly_opposite_directions_of_the_plane() {
    let b = vec![0.25, 0.25, -1.0, 0.25 + 1.0 / 65536.0, 1.0, -0.25];
    check(&Case { sizes: [1, 2, 1, 2], b: Some(b), ..PLAIN });
}

#[test]
fn a_memory_after_many_steps() {
    check(&Case { sizes: [600, 1, 1, 3], memory: true, eta: Some(1.0), units: 4096.0, ..PLAIN });
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let array = |shape: &[usize]| send(&context, shape, &vec![0.5; shape.iter().product()]);
    let (x, w, u, r0) = (array(&[2, 3, 4]), array(&[10, 5]), array(&[15, 4]), array(&[3, 5, 5]));
    let arguments = Arguments {
        x: &x,
        w: &w,
        u: &u,
        h0: None,
        bias: None,
        activation: Activation::Relu,
        activation_bias: None,
        lengths: None,
        reverse: false,
    };
    let rum = Rotational { arguments, memory: false, r0: None, eta: None };
    let (states, last) = forward(&rum).unwrap();
    assert!(last.is_none());
    assert!(forward(&Rotational { r0: Some(&r0), ..rum }).is_err());
    assert!(forward(&Rotational { r0: Some(&r0), memory: true, ..rum }).is_ok());
    assert!(forward(&Rotational { r0: Some(&x), memory: true, ..rum }).is_err());
    for eta in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
        assert!(forward(&Rotational { eta: Some(eta), ..rum }).is_err());
    }
    assert!(forward(&Rotational { arguments: Arguments { w: &u, ..arguments }, ..rum }).is_err());
    let wanted = Wanted::default();
    assert!(backward(&rum, &x, (&states, None), wanted).is_err());
    assert!(backward(&rum, &states, (&states, Some(&r0)), wanted).is_err());
    let biased = cell::Wanted { activation_bias: true, ..wanted.arguments };
    assert!(backward(&rum, &states, (&states, None), Wanted { arguments: biased, ..wanted }).is_err());
    assert!(backward(&rum, &states, (&states, None), wanted).unwrap().arguments.w.is_none());
}
