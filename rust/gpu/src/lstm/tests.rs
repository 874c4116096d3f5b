//! Against the cell of the core in double precision.

use super::*;
use crate::testing::{bar, close, device, draw, sent_reals as send};
use isometry_core::Budget;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::lstm::{Lstm, SAVED, backward as pull, forward as run};

/// All arrays given, or those that must be.
fn check(sizes: [usize; 4], all: bool, lengths: Option<&[usize]>, reverse: bool) {
    let Some(context) = device() else { return };
    let [steps, batch, d, n] = sizes;
    let (x, w, u) = (draw(steps * batch * d, 1, 1.0), draw(4 * n * n, 2, 0.7), draw(4 * n * d, 3, 1.0));
    let (b, h0, ct) = (draw(4 * n, 4, 1.0), draw(batch * 2 * n, 5, 1.0), draw(steps * batch * 2 * n, 6, 1.0));
    let of_run =
        Run { h0: all.then_some(&h0[..]), lengths, reverse, ..Run::new([steps, batch, d, 2 * n], &x) };
    let lstm = Lstm { run: of_run, w: &w, u: &u, b: all.then_some(&b[..]) };
    let mut states = vec![0.0; ct.len()];
    let mut saved = vec![0.0; SAVED * ct.len()];
    let budget = Budget::of(1);
    run(&lstm, &mut states[..], Some(&mut saved), &budget).unwrap();
    let zeros = |like: &[f64]| vec![0.0; like.len()];
    let (mut x_bar, mut w_bar, mut u_bar) = (zeros(&x), zeros(&w), zeros(&u));
    let (mut b_bar, mut h0_bar) = (zeros(&b), zeros(&h0));
    let mut bars = vec![bar(&mut x_bar, true), bar(&mut w_bar, true), bar(&mut u_bar, true)];
    bars.extend([bar(&mut b_bar, all), bar(&mut h0_bar, all)]);
    pull(&lstm, &states[..], &saved, &ct[..], &mut bars, &budget).unwrap();
    drop(bars);

    let send = |shape: &[usize], data: &[f64]| send(&context, shape, data);
    let (dx, dw, du) = (send(&[steps, batch, d], &x), send(&[4 * n, n], &w), send(&[4 * n, d], &u));
    let (db, dh0) = (send(&[4 * n], &b), send(&[batch, 2 * n], &h0));
    let arguments = Arguments {
        x: &dx,
        w: &dw,
        u: &du,
        bias: all.then_some(&db),
        h0: all.then_some(&dh0),
        activation: Activation::Tanh,
        activation_bias: None,
        lengths,
        reverse,
    };
    let name = format!("{sizes:?} all={all} lengths={lengths:?} reverse={reverse}");
    let own_states = forward(&arguments).unwrap();
    close(&own_states, &states, 64.0, &format!("states of {name}"));
    let wanted = Wanted { x: true, w: true, u: true, bias: all, h0: all, activation_bias: false };
    let dct = send(&[steps, batch, 2 * n], &ct);
    let found = backward(&arguments, &own_states, &dct, wanted).unwrap();
    let [of_w]: [Array; 1] = found.w.unwrap().try_into().unwrap();
    for (found, expected, what) in [
        (Some(of_w), &w_bar, "W"),
        (found.x, &x_bar, "x"),
        (found.u, &u_bar, "U"),
        (found.bias, &b_bar, "b"),
        (found.h0, &h0_bar, "h0"),
    ] {
        found.iter().for_each(|found| close(found, expected, 64.0, &format!("{what} of {name}")));
    }
}

#[test]
fn all_options_and_sizes() {
    for sizes in [[1, 1, 1, 1], [5, 4, 3, 6], [4, 70, 5, 33], [300, 1, 1, 3]] {
        for (all, reverse) in [(true, false), (false, true)] {
            check(sizes, all, None, reverse);
        }
    }
    for reverse in [false, true] {
        check([5, 4, 3, 6], true, Some(&[5, 5, 3, 0]), reverse);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let array = |shape: &[usize]| send(&context, shape, &vec![0.5; shape.iter().product()]);
    let (x, w, u, h0) = (array(&[2, 3, 4]), array(&[20, 5]), array(&[20, 4]), array(&[3, 5]));
    let arguments = Arguments {
        x: &x,
        w: &w,
        u: &u,
        h0: None,
        bias: None,
        activation: Activation::Tanh,
        activation_bias: None,
        lengths: None,
        reverse: false,
    };
    let states = forward(&arguments).unwrap();
    assert_eq!(states.shape(), [2, 3, 10]);
    assert!(forward(&Arguments { h0: Some(&h0), ..arguments }).is_err());
    assert!(forward(&Arguments { w: &u, ..arguments }).is_err());
    assert!(forward(&Arguments { activation: Activation::Relu, ..arguments }).is_err());
    let wanted = Wanted { x: true, ..Wanted::default() };
    assert!(backward(&arguments, &states, &h0, wanted).is_err());
    assert!(backward(&arguments, &states, &states, Wanted { activation_bias: true, ..wanted }).is_err());
    assert!(backward(&arguments, &states, &states, wanted).unwrap().w.is_none());
}
