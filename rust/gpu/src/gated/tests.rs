//! Against the cell of the core in double precision.

use super::*;
use crate::cell;
use crate::testing::{bar, close, device, draw, sent_reals as send};
use isometry_core::Budget;
use isometry_core::activation::Activation;
use isometry_core::argument::Bar;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::gru::{Gru, Reset, backward as pull, forward as run};

/// Numbers for all arrays of a unit of these sizes.
struct Problem {
    sizes: [usize; 4],
    after: bool,
    activation: Activation,
    h0: bool,
    biased: bool,
    lengths: Option<Vec<usize>>,
    reverse: bool,
}

fn check(p: &Problem) {
    let Some(context) = device() else { return };
    let [steps, batch, d, n] = p.sizes;
    let units = p.activation.bias_units(n);
    let (x, w) = (draw(steps * batch * d, 1, 1.0), draw(3 * n * n, 2, 0.7));
    let (u, b, h0) = (draw(3 * n * d, 3, 1.0), draw(3 * n, 4, 1.0), draw(batch * n, 5, 1.0));
    let (hidden, own, ct) = (draw(n, 6, 1.0), draw(units, 7, 0.3), draw(steps * batch * n, 8, 1.0));
    let hidden_bias = p.biased && p.after;
    let gru = Gru {
        run: Run {
            h0: p.h0.then_some(&h0[..]),
            activation: p.activation,
            activation_bias: (units > 0).then_some(&own[..]),
            lengths: p.lengths.as_deref(),
            reverse: p.reverse,
            ..Run::new(p.sizes, &x)
        },
        w: &w,
        transition: None,
        u: &u,
        b: p.biased.then_some(&b[..]),
        reset: if p.after { Reset::After } else { Reset::Before },
        hidden_bias: hidden_bias.then_some(&hidden[..]),
    };
    let mut states = vec![0.0; steps * batch * n];
    let mut saved = vec![0.0; gru.saved() * states.len()];
    let budget = Budget::of(1);
    run(&gru, &mut states[..], Some(&mut saved), &budget).unwrap();
    let zeros = |like: &[f64]| vec![0.0; like.len()];
    let (mut x_bar, mut w_bar, mut u_bar, mut b_bar) = (zeros(&x), zeros(&w), zeros(&u), zeros(&b));
    let (mut h0_bar, mut hidden_bar, mut own_bar) = (zeros(&h0), zeros(&hidden), zeros(&own));
    let mut bars =
        vec![bar(&mut x_bar, true), bar(&mut w_bar, true), bar(&mut u_bar, true), bar(&mut b_bar, p.biased)];
    bars.extend([bar(&mut h0_bar, p.h0), bar(&mut hidden_bar, hidden_bias)]);
    bars.push(if units > 0 { Bar::Real(&mut own_bar) } else { Bar::None });
    pull(&gru, &states[..], &saved, &ct[..], &mut bars, &mut [], &budget).unwrap();
    drop(bars);

    let wide = [vec![0.0; 2 * n], hidden].concat();
    let send = |shape: &[usize], data: &[f64]| send(&context, shape, data);
    let (dx, dw, du) = (send(&[steps, batch, d], &x), send(&[3 * n, n], &w), send(&[3 * n, d], &u));
    let (db, dh0, dhidden) = (send(&[3 * n], &b), send(&[batch, n], &h0), send(&[3 * n], &wide));
    let (down, dct) = (send(&[units], &own), send(&[steps, batch, n], &ct));
    let gated = Gated {
        arguments: Arguments {
            x: &dx,
            w: &dw,
            u: &du,
            h0: p.h0.then_some(&dh0),
            bias: p.biased.then_some(&db),
            activation: p.activation,
            activation_bias: (units > 0).then_some(&down),
            lengths: p.lengths.as_deref(),
            reverse: p.reverse,
        },
        hidden_bias: hidden_bias.then_some(&dhidden),
        after: p.after,
    };
    let name = format!(
        "{:?} {:?} after={} h0={} biased={} lengths={:?} reverse={}",
        p.sizes, p.activation, p.after, p.h0, p.biased, p.lengths, p.reverse
    );
    let own_states = forward(&gated).unwrap();
    close(&own_states, &states, 64.0, &format!("states of {name}"));
    let arguments =
        cell::Wanted { x: true, w: true, u: true, bias: p.biased, h0: p.h0, activation_bias: units > 0 };
    let wanted = Wanted { arguments, hidden_bias };
    let Gradients { arguments: found, hidden_bias } = backward(&gated, &own_states, &dct, wanted).unwrap();
    let [gates, of_h]: [Array; 2] = found.w.unwrap().try_into().unwrap();
    let pairs = [
        (Some(gates), &w_bar[..2 * n * n], "W_z and W_r"),
        (Some(of_h), &w_bar[2 * n * n..], "W_h"),
        (found.x, &x_bar[..], "x"),
        (found.u, &u_bar, "U"),
        (found.bias, &b_bar, "b"),
        (found.h0, &h0_bar, "h0"),
        (hidden_bias, &hidden_bar, "c_h"),
        (found.activation_bias, &own_bar, "activation bias"),
    ];
    for (found, expected, what) in pairs {
        found.iter().for_each(|found| close(found, expected, 64.0, &format!("{what} of {name}")));
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
        for after in [false, true] {
            for reverse in [false, true] {
                let lengths = [None, Some(vec![5, 5, 3, 0])][(i + usize::from(reverse)) % 2].clone();
                for (h0, biased) in [(true, true), (false, i % 2 == 0)] {
                    let sizes = [5, 4, 3, 6];
                    check(&Problem {
                        sizes,
                        after,
                        activation,
                        h0,
                        biased,
                        lengths: lengths.clone(),
                        reverse,
                    });
                }
            }
        }
    }
}

#[test]
fn odd_and_large_sizes() {
    for sizes in [[1, 1, 1, 1], [3, 2, 2, 5], [4, 70, 5, 33], [600, 1, 1, 3]] {
        for after in [false, true] {
            let activation = Activation::Tanh;
            check(&Problem {
                sizes,
                after,
                activation,
                h0: true,
                biased: true,
                lengths: None,
                reverse: false,
            });
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let array = |shape: &[usize]| send(&context, shape, &vec![0.5; shape.iter().product()]);
    let (x, w, u, bias) = (array(&[2, 3, 4]), array(&[15, 5]), array(&[15, 4]), array(&[15]));
    let arguments = Arguments {
        x: &x,
        w: &w,
        u: &u,
        h0: None,
        bias: Some(&bias),
        activation: Activation::Tanh,
        activation_bias: None,
        lengths: None,
        reverse: false,
    };
    let gated = Gated { arguments, hidden_bias: None, after: false };
    let of = |arguments| Gated { arguments, ..gated };
    let states = forward(&gated).unwrap();
    assert!(forward(&Gated { hidden_bias: Some(&bias), ..gated }).is_err());
    assert!(forward(&of(Arguments { u: &w, ..arguments })).is_err());
    assert!(forward(&of(Arguments { w: &u, ..arguments })).is_err());
    assert!(forward(&of(Arguments { h0: Some(&x), ..arguments })).is_err());
    assert!(forward(&of(Arguments { lengths: Some(&[3, 1, 1]), ..arguments })).is_err());
    let x_alone = cell::Wanted { x: true, ..cell::Wanted::default() };
    let wanted = Wanted { arguments: x_alone, hidden_bias: false };
    assert!(backward(&gated, &states, &x, wanted).is_err());
    assert!(backward(&gated, &states, &states, Wanted { hidden_bias: true, ..wanted }).is_err());
    let biased = Wanted { arguments: cell::Wanted { activation_bias: true, ..x_alone }, ..wanted };
    assert!(backward(&gated, &states, &states, biased).is_err());
    assert!(backward(&gated, &states, &states, wanted).unwrap().arguments.w.is_none());
}
