//! Activations and recurrences.

use crate::{LENGTHS, SIZES, THREADS, choices, expect, fits, ones, real};
use isometry_core::Budget;
use isometry_core::activation::{Activation, NAMES, activate, activate_vjp};
use isometry_core::argument::Bar;
use isometry_core::operators::{Last, dense::Dense, householder, householder::Householder};
use isometry_core::recurrence::{self, Gradients, Sequence, Trajectory};
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
        packs: None,
    }
}

pub fn recurrences<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [steps, batch, features, n] in choices() {
        let whole = steps > 0 && batch > 0 && n > 0;
        for (len, given) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (x, v, states) = (ones::<T>(len), ones::<T>(given), ones::<T>(1));
            let given = sequence(sizes, &x, &v);
            let good = whole && fits(len, &[steps, batch, features]) && fits(v.len(), &[n, features]);
            expect("Sequence::check", &sizes, good, || given.check());
            let one = fits(1, &[steps, batch, n]);
            expect("Trajectory::check", &sizes, one, || {
                Trajectory::from(&states).check(given.sizes(), (0, 0))
            });
            let mut out = states.clone();
            let weight = ones::<T>(1);
            let square = fits(1, &[n, n]);
            expect("forward, dense", &sizes, good && one && square, || {
                recurrence::forward(&Dense::new(&weight, 1, n, n)?, &given, &mut out, &budget)
            });
            let (mut own, mut x_bar, mut v_bar) = (ones::<T>(1), x.clone(), v.clone());
            expect("backward, dense", &sizes, good && one && square, || {
                let bars =
                    Gradients { x: Some(&mut x_bar), input_weight: Some(&mut v_bar), ..Default::default() };
                let (dense, own) = (Dense::new(&weight, 1, n, n)?, &mut [Bar::Own(&mut own)]);
                recurrence::backward(&dense, own, &given, &states, &states, bars, &budget)
            });
            if good {
                let bars = Gradients { x: Some(&mut x_bar), bias: Some(&mut out), ..Default::default() };
                let given = Sequence { bias: Some(&states), ..given };
                expect("Gradients::check", &sizes, fits(1, &[n]), || bars.check(&given));
            }
            for m in SIZES {
                for vectors in [0, 1] {
                    let vectors = ones::<T>(vectors);
                    let factors = || Householder::new(&vectors, Last::None, 1, n, m);
                    let good = good && one && fits(vectors.len(), &[1, n, m]);
                    expect("forward, reflections", &sizes, good, || {
                        recurrence::forward(&factors()?, &given, &mut out, &budget)
                    });
                    let mut bar = vectors.clone();
                    expect("backward, reflections", &sizes, good, || {
                        let (bars, own, states) = (Gradients::default(), &mut [Bar::Own(&mut bar)], &states);
                        recurrence::backward(&factors()?, own, &given, states, states, bars, &budget)
                    });
                }
            }
        }
        let route = householder::plan(steps, batch, features, n).name();
        assert!(["dense", "factored"].contains(&route));
    }
}
