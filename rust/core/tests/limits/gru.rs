//! The gated recurrent unit.

use crate::sequences::inputs;
use crate::{LENGTHS, THREADS, choices, expect, fits, ones, returns};
use isometry_core::Budget;
use isometry_core::activation::Activation;
use isometry_core::argument::wanted;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::Written;
use isometry_core::recurrence::gru::{ARGUMENTS, Gru, Reset, backward, forward};
use isometry_core::scalar::Real;

/// Sizes at all limits beside arrays of a GRU with one state, one sequence and one step.
pub fn grus<R: Real>() {
    for sizes @ [steps, batch, features, n] in choices() {
        for (len, reset) in LENGTHS.into_iter().flat_map(|len| [(len, Reset::Before), (len, Reset::After)]) {
            let (x, w, u, mut states) = (ones::<R>(len), ones::<R>(3), ones::<R>(3 * len), ones::<R>(1));
            let gru = Gru {
                run: Run { activation: Activation::Identity, ..Run::new([steps, batch, features, n], &x) },
                w: &w,
                transition: None,
                u: &u,
                b: None,
                reset,
                hidden_bias: None,
            };
            returns("Gru::saved", &sizes, || Ok(gru.saved()));
            let whole = steps > 0 && batch > 0 && n > 0;
            let weights = fits(3, &[3, n, n]) && fits(3 * len, &[3, n, features]);
            let good = whole && inputs(len, [steps, batch, features]) && weights;
            expect("Gru::check", &sizes, good, || gru.check());
            let good = good && fits(1, &[steps, batch, n]);
            let mut saved = ones(gru.saved());
            expect("gru::forward", &sizes, good, || {
                forward(&gru, &mut states, Some(&mut saved), &Budget::of(THREADS))
            });
            expect("gru::forward", &sizes, false, || {
                let written = Written { last: Some(&mut states), ..Written::default() };
                forward(&gru, written, Some(&mut []), &Budget::of(THREADS))
            });
            // without states
            returns("gru::forward", &sizes, || {
                let written = Written { last: Some(&mut states), ..Written::default() };
                forward(&gru, written, None, &Budget::of(THREADS))
            });
            let (mut bar, ct) = (ones(3), ones(1));
            expect("gru::backward", &sizes, good, || {
                let bars = &mut wanted(ARGUMENTS, [("w", &mut bar[..])]);
                backward(&gru, &states, &saved, &ct, bars, &mut [], &Budget::of(THREADS))
            });
            // empty gradients of arguments that are not given
            for name in ["b", "h0", "hidden_bias", "activation_bias"] {
                let bars = &mut wanted(ARGUMENTS, [(name, &mut [][..])]);
                expect("gru::backward", &sizes, false, || {
                    backward(&gru, &states, &saved, &ct, bars, &mut [], &Budget::of(THREADS))
                });
            }
        }
    }
}
