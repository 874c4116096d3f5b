//! Arguments that do not fit, what was not given, and interruption.

use super::super::*;
use crate::argument::wanted;
use crate::recurrence::{Cotangent, Run, Trajectory};
use crate::testing::fill;

#[test]
fn refusals_name_the_argument() {
    let (n, d, batch) = (4, 3, 2);
    let (x, w, u) = (vec![0.0; 5 * batch * d], vec![0.0; 2 * n * n], vec![0.0; 3 * n * d]);
    let r0 = vec![0.0; batch * n * n];
    let good = Rum {
        run: Run::new([5, batch, d, n], &x),
        w: &w,
        u: &u,
        b: None,
        memory: false,
        r0: None,
        eta: None,
    };
    let message = |rum: Rum<'_, f32>, saved: usize, last: usize| {
        let (mut states, mut saved, mut last) = (vec![0.0; 40], vec![0.0; saved], vec![0.0; last]);
        let outcome = forward(&rum, &mut states, &mut last, Some(&mut saved), &Budget::of(1));
        outcome.map_err(|e| e.to_string()).err().unwrap_or_default()
    };
    assert_eq!(message(good, 160, 0), "");
    assert_eq!(message(Rum { memory: true, r0: Some(&r0), ..good }, 160, 32), "");
    assert!(message(good, 120, 0).starts_with("saved"));
    assert!(message(good, 160, 32).starts_with("last"));
    assert!(message(Rum { memory: true, ..good }, 160, 0).starts_with("last"));
    for (name, rum) in [
        ("x", Rum { run: Run { steps: 0, ..good.run }, ..good }),
        ("x", Rum { run: Run { x: &x[1..], ..good.run }, ..good }),
        ("w", Rum { w: &w[1..], ..good }),
        ("u", Rum { u: &w, ..good }),
        ("b", Rum { b: Some(&x), ..good }),
        ("h0", Rum { run: Run { h0: Some(&x), ..good.run }, ..good }),
        ("r0", Rum { r0: Some(&r0), ..good }),
        ("r0", Rum { r0: Some(&x), memory: true, ..good }),
        ("eta", Rum { eta: Some(0.0), ..good }),
        ("activation_bias", Rum { run: Run { activation_bias: Some(&x), ..good.run }, ..good }),
        ("packs", Rum { run: Run { packs: Some(&x), ..good.run }, ..good }),
        ("lengths", Rum { run: Run { lengths: Some(&[2, 3]), ..good.run }, ..good }),
    ] {
        let message = message(rum, 160, 0);
        assert_eq!(message.split([':', ' ']).next(), Some(name), "{message}");
    }
    let (zeros, mut bar) = (vec![0.0; 160], vec![0.0; 32]);
    let outcome = Outcome {
        states: (&zeros[..40]).into(),
        last: &[],
        saved: &zeros,
        ct: (&zeros[..40]).into(),
        last_ct: None,
    };
    let bars = &mut wanted(ARGUMENTS, [("r0", &mut bar[..])]);
    let found = backward(&good, &outcome, bars, &Budget::of(1));
    assert!(found.unwrap_err().to_string().starts_with("r0_bar"));
}

#[test]
fn nothing_is_saved_beside_less_than_all_states_and_what_was_not_given_has_no_gradient() {
    let (x, w, u) = (fill::<f32>(6, 1.0, 1), fill::<f32>(18, 0.5, 2), fill::<f32>(9, 0.5, 3));
    let rum =
        Rum { run: Run::new([3, 2, 1, 3], &x), w: &w, u: &u, b: None, memory: true, r0: None, eta: None };
    let (mut last, mut memory, mut saved) = ([0.0; 6], [0.0; 18], [0.0; SAVED * 18]);
    for saved in [&mut [][..], &mut saved] {
        let written = Written { states: None, last: Some(&mut last), marks: None };
        let found = forward(&rum, written, &mut memory, Some(saved), &Budget::of(1));
        assert!(found.unwrap_err().to_string().starts_with("saved: "));
    }
    let states = [0.0; 18];
    let outcome = Outcome {
        states: Trajectory::All(&states),
        last: &memory,
        saved: &saved,
        ct: Cotangent::States(&states),
        last_ct: None,
    };
    let mut bar = [0.0; 18];
    let mut message = |name: &str, len: usize| {
        let bars = &mut wanted(ARGUMENTS, [(name, &mut bar[..len])]);
        let found = backward(&rum, &outcome, bars, &Budget::of(1));
        found.map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    let none = "is wanted, but there is no such argument";
    for (name, len) in [("h0", 6), ("r0", 18), ("b", 9)] {
        assert_eq!(message(name, len), format!("{name}_bar {none}"));
    }
}

#[test]
fn a_raised_flag_interrupts() {
    let (n, batch, steps) = (64, 2, 20_000);
    let (x, w, u) = (vec![0.0f32; steps * batch], vec![0.0; 2 * n * n], vec![0.0; 3 * n]);
    let rum = Rum {
        run: Run::new([steps, batch, 1, n], &x),
        w: &w,
        u: &u,
        b: None,
        memory: true,
        r0: None,
        eta: None,
    };
    let (mut states, mut last) = (vec![0.0; steps * batch * n], vec![0.0; batch * n * n]);
    let saved = vec![0.5; SAVED * states.len()];
    for threads in [1, 2] {
        let outcome = forward(&rum, &mut states, &mut last, None, &Budget { threads, cancel: &|| true });
        assert_eq!(outcome, Err(Error::Interrupted));
        let outcome = Outcome {
            states: (&states).into(),
            last: &last,
            saved: &saved,
            ct: (&states).into(),
            last_ct: None,
        };
        let found = backward(&rum, &outcome, &mut [], &Budget { threads, cancel: &|| true });
        assert_eq!(found, Err(Error::Interrupted));
    }
}
