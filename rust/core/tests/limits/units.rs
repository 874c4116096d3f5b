//! The cells that have a typed struct, each with a law of its own.

use crate::sequences::inputs;
use crate::{LENGTHS, THREADS, choices, expect, fits, ones, returns};
use isometry_core::Budget;
use isometry_core::argument::wanted;
use isometry_core::recurrence::cornn::Cornn;
use isometry_core::recurrence::gru::{Gru, Reset};
use isometry_core::recurrence::{Outcome, Run, Unit, Written, lem::Lem, lstm::Lstm, rum::Rum};
use isometry_core::scalar::Real;

/// A cell, where `good` says that its arrays fit, beside arrays of one unit, one sequence and one step.
fn unit<'a, R: Real>(sizes: [usize; 4], unit: &impl Unit<'a, R>, good: bool, last: &mut [R]) {
    let ([steps, batch, ..], declaration, budget) = (sizes, unit.declaration(), Budget::of(THREADS));
    let (mut states, mut saved) = (ones::<R>(declaration.width), ones::<R>(unit.saves()));
    expect("Unit::check", &sizes, good, || unit.check());
    let good = good && fits(states.len(), &[steps, batch, unit.run().n]);
    expect("Unit::forward", &sizes, good, || {
        unit.forward((&mut states).into(), last, Some(&mut saved), &budget)
    });
    for (saved, good) in [(Some(&mut [][..]), Some(false)), (None, None)] {
        let written = Written { last: Some(&mut states), ..Written::default() };
        let call = || unit.forward(written, last, saved, &budget);
        match good {
            Some(good) => expect("Unit::forward", &sizes, good, call),
            None => returns("Unit::forward", &sizes, call),
        }
    }
    let (ct, w) = (states.clone(), unit.own()[0].map_or(0, <[R]>::len));
    let outcome =
        Outcome { states: (&states).into(), last: &*last, saved: &saved, ct: (&ct).into(), last_ct: None };
    let backward = |name: &str, len: usize, good: bool| {
        let mut bar = ones(len);
        expect("Unit::backward", &sizes, good, || {
            let bars = &mut wanted(declaration.arguments, [(name, &mut bar[..])]);
            unit.backward(&outcome, bars, &mut [], &budget)
        });
    };
    backward("w", w, good);
    // empty gradients of arguments that are not given
    for argument in declaration.arguments.iter().filter(|argument| argument.optional) {
        backward(argument.name, 0, false);
    }
}

/// Sizes at all limits beside arrays of cells of one unit, one sequence and one step.
pub fn units<R: Real>() {
    for sizes @ [steps, batch, features, n] in choices() {
        for len in LENGTHS {
            let (x, w, u) = (ones::<R>(len), ones::<R>(4), ones::<R>(4 * len));
            let (run, whole) = (Run::new(sizes, &x), steps > 0 && batch > 0 && n > 0);
            let good = |of_w: usize, of_u: usize, n: usize| {
                let weights = fits(of_w, &[of_w, n, n]) && fits(of_u * len, &[of_u, n, features]);
                whole && inputs(len, [steps, batch, features]) && weights
            };
            for reset in [Reset::Before, Reset::After] {
                let (w, u) = (&w[..3], &u[..3 * len]);
                let gru =
                    Gru { run, w, transition: None, u, b: None, reset, hidden_bias: None, r_first: false };
                returns("Gru::saved", &sizes, || Ok(gru.saved()));
                unit(sizes, &gru, good(3, 3, n), &mut []);
            }
            for memory in [false, true] {
                let rum = Rum { run, w: &w[..2], u: &u[..3 * len], b: None, memory, r0: None, eta: None };
                unit(sizes, &rum, good(2, 3, n), &mut ones(usize::from(memory)));
            }
            let (w, u, even, half, one) = (&w[..], &u[..], n.is_multiple_of(2), n / 2, R::one());
            unit(sizes, &Lstm { run, w, u, b: None }, even && good(4, 4, half), &mut []);
            unit(sizes, &Lem { run, w, u, b: None, dt: one }, even && good(4, 4, half), &mut []);
            let (w, u) = (&w[..2], &u[..len]);
            let cornn = Cornn { run, w, u, b: None, dt: one, gamma: one, epsilon: one };
            unit(sizes, &cornn, even && good(2, 1, half), &mut []);
        }
    }
}
