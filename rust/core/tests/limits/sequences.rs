//! Activations and recurrences.

use crate::{LENGTHS, SIZES, THREADS, choices, expect, fits, never, ones, real};
use isometry_core::activation::{Activation, NAMES, activate, activate_vjp};
use isometry_core::recurrence::{
    self, Gradients, ReflectionGradients, Reflections, Sequence, Transition, TransitionVjp,
};
use isometry_core::scalar::Scalar;

pub fn activations<T: Scalar>() {
    let all = NAMES.map(|name| Activation::parse(name, 0.5).unwrap());
    for sizes @ [rows, n] in choices() {
        for (len, units) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            for activation in all {
                let (z, numbers) = (ones::<T>(len), real::<T>(units));
                let (mut out, mut bar) = (ones::<T>(len), real::<T>(units));
                let own = activation.bias_units(n);
                for bias in [None, Some(&numbers[..])] {
                    let good = activation.check::<T>(n, bias).is_ok();
                    assert!(!good || bias.map_or(own == 0, |bias| own > 0 && own == bias.len()), "{sizes:?}");
                    let good = good && fits(len, &sizes);
                    expect("activate", &sizes, good, || {
                        activate(&z, rows, n, activation, bias, &mut out, THREADS)
                    });
                    expect("activate_vjp", &sizes, good, || {
                        let bar = bias.map(|_| &mut bar[..]);
                        activate_vjp(&z, rows, n, activation, bias, &z, &mut out, bar, THREADS)
                    });
                }
            }
        }
    }
    assert!(Activation::parse("none", 0.0).is_err() && Activation::parse("leaky_relu", f64::NAN).is_err());
}

pub fn sequence<'a, T: Scalar>(sizes: [usize; 4], x: &'a [T], v: &'a [T]) -> Sequence<'a, T> {
    let [steps, batch, features, n] = sizes;
    Sequence {
        steps,
        batch,
        features,
        n,
        x,
        input_weight: v,
        h0: None,
        bias: None,
        activation: Activation::Tanh,
        activation_bias: None,
        on_input: false,
        lengths: None,
        reverse: false,
    }
}

pub fn recurrences<T: Scalar>() {
    for sizes @ [steps, batch, features, n] in choices() {
        let whole = steps > 0 && batch > 0 && n > 0;
        for (len, given) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (x, v, states) = (ones::<T>(len), ones::<T>(given), ones::<T>(1));
            let given = sequence(sizes, &x, &v);
            let good = whole && fits(len, &[steps, batch, features]) && fits(v.len(), &[n, features]);
            expect("Sequence::check", &sizes, good, || given.check());
            let one = fits(1, &[steps, batch, n]);
            expect("check_states", &sizes, one, || given.check_states("states", &states));
            let mut out = states.clone();
            let weight = ones::<T>(1);
            expect("forward, dense", &sizes, good && one, || {
                recurrence::forward(&Transition::Dense(&weight), &given, &mut out, THREADS, &never)
            });
            let (mut own, mut x_bar, mut v_bar) = (ones::<T>(1), x.clone(), v.clone());
            expect("backward, dense", &sizes, good && one, || {
                let bars =
                    Gradients { x: Some(&mut x_bar), input_weight: Some(&mut v_bar), ..Default::default() };
                let vjp = TransitionVjp::Dense(&weight, Some(&mut own[..]));
                recurrence::backward(vjp, &given, &states, &states, bars, THREADS, &never)
            });
            if good {
                let bars = Gradients { x: Some(&mut x_bar), bias: Some(&mut out), ..Default::default() };
                expect("Gradients::check", &sizes, fits(1, &[n]), || bars.check(&given));
            }
            for m in SIZES {
                for vectors in [0, 1] {
                    let vectors = ones::<T>(vectors);
                    let (sign, phases) = (None, None);
                    let given_factors = Reflections { vectors: &vectors, m, sign, phases };
                    let fitting = fits(vectors.len(), &[n, m]);
                    expect("Reflections::check", &sizes, fitting, || given_factors.check(n));
                    let good = good && one && fitting;
                    expect("forward, reflections", &sizes, good, || {
                        let transition = Transition::Reflections(given_factors);
                        recurrence::forward(&transition, &given, &mut out, THREADS, &never)
                    });
                    let mut bar = vectors.clone();
                    let own = ReflectionGradients { vectors: Some(&mut bar), ..Default::default() };
                    assert!(own.any() && own.check(&given_factors).is_ok());
                    expect("backward, reflections", &sizes, good, || {
                        let (bars, states) = (Gradients::default(), &states);
                        let vjp = TransitionVjp::Reflections(given_factors, own);
                        recurrence::backward(vjp, &given, states, states, bars, THREADS, &never)
                    });
                }
            }
        }
        let route = recurrence::plan(steps, batch, features, n).name();
        assert!(["dense", "factored"].contains(&route));
    }
}
