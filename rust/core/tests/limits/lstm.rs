//! The LSTM.

use crate::sequences::inputs;
use crate::{LENGTHS, THREADS, choices, expect, fits, ones};
use isometry_core::Budget;
use isometry_core::argument::wanted;
use isometry_core::recurrence::lstm::{ARGUMENTS, Lstm, SAVED, backward, forward};
use isometry_core::recurrence::{Run, Written};
use isometry_core::scalar::Real;

/// Sizes at all limits, with arrays of an LSTM of one unit (a state of two numbers), one sequence and one step.
pub fn lstms<R: Real>() {
    for sizes @ [steps, batch, features, n] in choices() {
        for len in LENGTHS {
            let (x, w, u, mut states) = (ones::<R>(len), ones::<R>(4), ones::<R>(4 * len), ones::<R>(2));
            let lstm = Lstm { run: Run::new([steps, batch, features, n], &x), w: &w, u: &u, b: None };
            let (whole, half) = (steps > 0 && batch > 0 && n > 0 && n.is_multiple_of(2), n / 2);
            let weights = fits(4, &[4, half, half]) && fits(4 * len, &[4, half, features]);
            let good = whole && inputs(len, [steps, batch, features]) && weights;
            expect("Lstm::check", &sizes, good, || lstm.check());
            let good = good && fits(2, &[steps, batch, n]);
            let mut saved = ones(SAVED);
            expect("lstm::forward", &sizes, good, || {
                forward(&lstm, &mut states, Some(&mut saved), &Budget::of(THREADS))
            });
            expect("lstm::forward", &sizes, false, || {
                let written = Written { last: Some(&mut states), ..Written::default() };
                forward(&lstm, written, Some(&mut []), &Budget::of(THREADS))
            });
            let (mut bar, ct) = (ones(4), ones(2));
            expect("lstm::backward", &sizes, good, || {
                let bars = &mut wanted(ARGUMENTS, [("w", &mut bar[..])]);
                backward(&lstm, &states, &saved, &ct, bars, &Budget::of(THREADS))
            });
            // empty gradients of arguments that are not given
            for name in ["b", "h0", "start_state"] {
                let bars = &mut wanted(ARGUMENTS, [(name, &mut [][..])]);
                expect("lstm::backward", &sizes, false, || {
                    backward(&lstm, &states, &saved, &ct, bars, &Budget::of(THREADS))
                });
            }
        }
    }
}
