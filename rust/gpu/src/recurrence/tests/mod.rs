//! Both routes against the loop in double precision: all activations, options and both fields, on both sides of the tiles.

mod reference;

use super::forward::run;
use super::sequence::Setting;
use super::steps::{Route, WIDEST, route};
use super::*;
use crate::activation::tests::all;
use crate::device::Context;
use crate::device::Record;
use crate::testing::{C, device, fetched, near, numbers, sent};
use crate::{Array, Field};
use isometry_core::activation::Activation;
use reference::Problem;
use std::sync::Arc;

const ALL: Wanted =
    Wanted { w: true, x: true, input_weight: true, h0: true, bias: true, activation_bias: false };

/// Arguments on the device.
struct Sent {
    w: Array,
    x: Array,
    v: Array,
    h0: Option<Array>,
    bias: Option<Array>,
    own: Option<Array>,
}

impl Sent {
    fn new(context: &Arc<Context>, p: &Problem) -> Self {
        let Problem { field, steps, batch, d, n, .. } = *p;
        let some = |x: &[C]| x.iter().any(|x| *x != C::default());
        Sent {
            w: sent(context, field, &[n, n], &p.w),
            x: sent(context, field, &[steps, batch, d], &p.x),
            v: sent(context, field, &[n, d], &p.v),
            h0: some(&p.h0).then(|| sent(context, field, &[batch, n], &p.h0)),
            bias: some(&p.bias).then(|| sent(context, field, &[n], &p.bias)),
            own: (!p.own.is_empty()).then(|| sent(context, Field::Real, &[p.own.len()], &p.own)),
        }
    }

    fn sequence<'a>(&'a self, p: &'a Problem) -> Sequence<'a> {
        Sequence {
            w: &self.w,
            x: &self.x,
            input_weight: &self.v,
            h0: self.h0.as_ref(),
            bias: self.bias.as_ref(),
            activation: p.activation,
            activation_bias: self.own.as_ref(),
            on_input: p.on_input,
            lengths: p.lengths.iter().any(|&length| length < p.steps).then_some(&p.lengths),
            reverse: p.reverse,
        }
    }
}

fn check(context: &Arc<Context>, p: &Problem, routes: &[Route]) {
    let Problem { field, steps, batch, n, .. } = *p;
    let given = Sent::new(context, p);
    let sequence = given.sequence(p);
    let ct = numbers(field, steps * batch * n, 77);
    let dct = sent(context, field, &[steps, batch, n], &ct);
    let (states, bars) = (p.forward(), p.backward(&ct));
    let wanted = Wanted { activation_bias: !p.own.is_empty(), ..ALL };
    // the derivative of a complex modReLU grows like b / |z|, and so does what rounding of z becomes
    let turns = field == Field::Complex || p.activation == Activation::ModreluRealrep;
    let units = if turns && !p.own.is_empty() { 240.0 } else { 32.0 };
    for &route in routes {
        let name = format!(
            "{route:?} {:?} {field:?} T={steps} B={batch} n={n} h0={} bias={} on_input={} lengths={:?} reverse={}",
            p.activation,
            sequence.h0.is_some(),
            sequence.bias.is_some(),
            p.on_input,
            sequence.lengths,
            p.reverse
        );
        let setting = Setting::new(&sequence).unwrap();
        let mut record = Record::new(context).unwrap();
        let own_states = run(&mut record, &setting, route).unwrap();
        let got = backward::pull(&mut record, &setting, &own_states, &dct, wanted, route).unwrap();
        record.submit().unwrap();
        near(&fetched(&own_states), &states, 16.0, &name);
        let pairs = [
            ("w", &got.w, &bars.w),
            ("x", &got.x, &bars.x),
            ("v", &got.input_weight, &bars.v),
            ("h0", &got.h0, &bars.h0),
            ("bias", &got.bias, &bars.bias),
        ];
        for (what, got, expected) in pairs {
            near(&fetched(got.as_ref().unwrap()), expected, units, &format!("{what} of {name}"));
        }
        assert_eq!(got.activation_bias.is_some(), !p.own.is_empty());
        if let Some(own) = got.activation_bias {
            near(&fetched(&own), &bars.own, units, &format!("activation bias of {name}"));
        }
    }
}

/// Sequences of all lengths, in no order.
fn lengths(steps: usize, batch: usize) -> Vec<usize> {
    (0..batch).map(|b| (b + 1) % steps + 1).collect()
}

#[test]
fn all_activations_and_options() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        let (steps, batch, d, n) = (5, 4, 3, 6);
        for activation in all(field, n) {
            for option in 0..32 {
                let on = |bit: usize| option >> bit & 1 == 1;
                let mut p = Problem::new(field, [steps, batch, d, n], activation, 11 + option as u64);
                (p.on_input, p.reverse) = (on(0), on(1));
                if on(2) {
                    p.lengths = lengths(steps, batch);
                }
                if on(3) {
                    p.h0.fill(C::default());
                }
                if on(4) {
                    p.bias.fill(C::default());
                }
                check(&context, &p, &[Route::Together(2), Route::Apart]);
            }
        }
    }
}

#[test]
fn sizes_beside_the_tiles() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (steps, batch, d, n) in
            [(1, 1, 1, 1usize), (1, 3, 2, 2), (6, 5, 4, 33), (3, 17, 5, 40), (2, 9, 17, 31), (3, 2, 3, 70)]
        {
            let mut activations = vec![Activation::Tanh, Activation::Modrelu];
            activations.extend((n.is_multiple_of(2)).then_some(Activation::OpluHalves));
            for activation in activations {
                let mut p = Problem::new(field, [steps, batch, d, n], activation, 5);
                p.reverse = n == 40;
                p.lengths = lengths(steps, batch);
                check(&context, &p, &[Route::Together(512), Route::Together(1), Route::Apart]);
            }
        }
    }
}

#[test]
fn large_tiles_and_several_sequences_of_a_thread() {
    let Some(context) = device() else { return };
    // 64 x 64 tiles of 4096 sequences; four sequences of a thread from 1024 times its lanes on
    for (field, batch, n) in [(Field::Real, 4033, 6), (Field::Complex, 4097, 3)] {
        let p = Problem::new(field, [2, batch, 1, n], Activation::Tanh, 6);
        check(&context, &p, &[Route::Apart]);
    }
    for (field, batch, n) in [(Field::Real, 2051, 130), (Field::Complex, 1025, 258)] {
        let p = Problem::new(field, [1, batch, 1, n], Activation::OpluHalves, 6);
        check(&context, &p, &[Route::Together(4)]);
    }
}

#[test]
fn the_loop_has_the_gradients_of_its_differences() {
    for field in [Field::Real, Field::Complex] {
        let (steps, batch, d, n) = (3, 2, 2, 4);
        for activation in all(field, n) {
            for on_input in [false, true] {
                let mut p = Problem::new(field, [steps, batch, d, n], activation, 21);
                (p.on_input, p.reverse, p.lengths) = (on_input, true, vec![2, 3]);
                let ct = numbers(field, steps * batch * n, 22);
                let bars = p.backward(&ct);
                // an imaginary part is no part of a real argument
                let own = |x: Vec<C>, field: Field| {
                    x.iter().map(|x| if field == Field::Real { C(x.0, 0.0) } else { *x }).collect::<Vec<C>>()
                };
                let name = format!("{activation:?} {field:?} {on_input}");
                near(&own(p.differences(&ct, |p| &mut p.w), field), &bars.w, 1.0, &name);
                near(&own(p.differences(&ct, |p| &mut p.x), field), &bars.x, 1.0, &name);
                near(&own(p.differences(&ct, |p| &mut p.v), field), &bars.v, 1.0, &name);
                near(&own(p.differences(&ct, |p| &mut p.h0), field), &bars.h0, 1.0, &name);
                near(&own(p.differences(&ct, |p| &mut p.bias), field), &bars.bias, 1.0, &name);
                near(&own(p.differences(&ct, |p| &mut p.own), Field::Real), &bars.own, 1.0, &name);
            }
        }
    }
}

#[test]
fn what_stands_past_the_ends_does_not_matter() {
    let Some(context) = device() else { return };
    let field = Field::Real;
    let (steps, batch, d, n) = (4, 3, 2, 6);
    for activation in all(field, n) {
        for (on_input, reverse) in [(false, false), (false, true), (true, false)] {
            let mut p = Problem::new(field, [steps, batch, d, n], activation, 31);
            (p.on_input, p.reverse, p.lengths) = (on_input, reverse, vec![2, 4, 1]);
            let ct = numbers(field, steps * batch * n, 32);
            let spoilt = |x: &[C], m: usize| {
                let past = |at: usize| at / m / batch >= p.lengths[at / m % batch];
                x.iter()
                    .enumerate()
                    .map(|(at, x)| if past(at) { C(f64::NAN, 0.0) } else { *x })
                    .collect::<Vec<C>>()
            };
            let mut broken = p.clone();
            broken.x = spoilt(&p.x, d);
            let results = [(&p, ct.clone()), (&broken, spoilt(&ct, n))].map(|(p, ct)| {
                let given = Sent::new(&context, p);
                let sequence = given.sequence(p);
                let dct = sent(&context, field, &[steps, batch, n], &ct);
                let done = forward(&sequence).unwrap();
                let got = backward(&sequence, &done, &dct, ALL).unwrap();
                let bars = [got.w, got.x, got.input_weight, got.h0, got.bias];
                let bars = bars.into_iter().flatten().flat_map(|bar| fetched(&bar));
                fetched(&done).into_iter().chain(bars).collect::<Vec<C>>()
            });
            assert_eq!(results[0], results[1], "{activation:?}");
        }
    }
}

#[test]
fn states_may_be_their_own_cotangents() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for activation in all(field, 6) {
            for on_input in [false, true] {
                let mut p = Problem::new(field, [4, 3, 2, 6], activation, 41);
                p.on_input = on_input;
                let given = Sent::new(&context, &p);
                let sequence = given.sequence(&p);
                let done = forward(&sequence).unwrap();
                let got = backward(&sequence, &done, &done, ALL).unwrap();
                let bars = p.backward(&p.forward());
                near(&fetched(&got.w.unwrap()), &bars.w, 48.0, &format!("{activation:?} {field:?}"));
                near(&fetched(&got.x.unwrap()), &bars.x, 48.0, &format!("{activation:?} {field:?}"));
                assert!(got.activation_bias.is_none());
                let none = backward(&sequence, &done, &done, Wanted::default()).unwrap();
                assert!(none.w.is_none() && none.x.is_none() && none.h0.is_none());
            }
        }
    }
}

#[test]
fn no_features_leave_the_bias() {
    let Some(context) = device() else { return };
    let p = Problem::new(Field::Real, [3, 2, 0, 4], Activation::Tanh, 51);
    check(&context, &p, &[Route::Together(512), Route::Apart]);
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

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let p = Problem::new(Field::Real, [3, 2, 2, 4], Activation::Tanh, 61);
    let given = Sent::new(&context, &p);
    let good = given.sequence(&p);
    let done = forward(&good).unwrap();
    let small = sent(&context, Field::Real, &[2], &numbers(Field::Real, 2, 1));
    let complex = sent(&context, Field::Complex, &[4], &numbers(Field::Complex, 4, 1));
    let refused = |sequence: Sequence<'_>| assert!(forward(&sequence).is_err(), "{sequence:?}");
    refused(Sequence { w: &small, ..good });
    refused(Sequence { x: &small, ..good });
    refused(Sequence { x: &Array::room(&context, Field::Real, &[0, 2, 2]).unwrap(), ..good });
    refused(Sequence { input_weight: &given.w, ..good });
    refused(Sequence { h0: Some(&small), ..good });
    refused(Sequence { bias: Some(&complex), ..good });
    refused(Sequence { activation_bias: Some(&small), ..good });
    refused(Sequence { activation: Activation::Modrelu, ..good });
    refused(Sequence { lengths: Some(&[3]), ..good });
    refused(Sequence { lengths: Some(&[4, 3]), ..good });
    let wanted = Wanted { activation_bias: true, ..ALL };
    assert!(backward(&good, &done, &done, wanted).is_err());
    assert!(backward(&good, &done, &small, ALL).is_err());
    assert!(backward(&good, &small, &done, ALL).is_err());
}
