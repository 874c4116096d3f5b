//! The rotational unit of memory.

use crate::sequences::inputs;
use crate::{LENGTHS, THREADS, choices, expect, fits, ones, returns};
use isometry_core::Budget;
use isometry_core::activation::Activation;
use isometry_core::argument::wanted;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::Written;
use isometry_core::recurrence::rum::{ARGUMENTS, Outcome, Rum, SAVED, backward, forward};
use isometry_core::scalar::Real;

/// Sizes at all limits beside arrays of a unit with one state, one sequence and one step.
pub fn rums<R: Real>() {
    for sizes @ [steps, batch, features, n] in choices() {
        for (len, memory) in LENGTHS.into_iter().flat_map(|len| [(len, false), (len, true)]) {
            let (x, w, u, mut states) = (ones::<R>(len), ones::<R>(2), ones::<R>(3 * len), ones::<R>(1));
            let rum = Rum {
                run: Run { activation: Activation::Identity, ..Run::new([steps, batch, features, n], &x) },
                w: &w,
                u: &u,
                b: None,
                memory,
                r0: None,
                eta: None,
            };
            let whole = steps > 0 && batch > 0 && n > 0;
            let weights = fits(2, &[2, n, n]) && fits(3 * len, &[3, n, features]);
            let good = whole && inputs(len, [steps, batch, features]) && weights;
            expect("Rum::check", &sizes, good, || rum.check());
            let own = !memory || fits(1, &[batch, n, n]);
            expect("Rum::check_last", &sizes, own, || rum.check_last("last", usize::from(memory)));
            let good = good && fits(1, &[steps, batch, n]);
            let (mut last, mut saved) = (ones::<R>(usize::from(memory)), ones(SAVED));
            expect("rum::forward", &sizes, good, || {
                forward(&rum, &mut states, &mut last, Some(&mut saved), &Budget::of(THREADS))
            });
            expect("rum::forward", &sizes, false, || {
                let written = Written { last: Some(&mut states), ..Written::default() };
                forward(&rum, written, &mut last, Some(&mut []), &Budget::of(THREADS))
            });
            // without states
            returns("rum::forward", &sizes, || {
                let written = Written { last: Some(&mut states), ..Written::default() };
                forward(&rum, written, &mut last, None, &Budget::of(THREADS))
            });
            let (mut bar, ct) = (ones(2), ones(1));
            let outcome = Outcome {
                states: (&states).into(),
                last: &last,
                saved: &saved,
                ct: (&ct).into(),
                last_ct: None,
            };
            expect("rum::backward", &sizes, good, || {
                let bars = &mut wanted(ARGUMENTS, [("w", &mut bar[..])]);
                backward(&rum, &outcome, bars, &Budget::of(THREADS))
            });
            // empty gradients of arguments that are not given
            for name in ["b", "h0", "r0", "activation_bias"] {
                let bars = &mut wanted(ARGUMENTS, [(name, &mut [][..])]);
                expect("rum::backward", &sizes, false, || {
                    backward(&rum, &outcome, bars, &Budget::of(THREADS))
                });
            }
        }
    }
}
