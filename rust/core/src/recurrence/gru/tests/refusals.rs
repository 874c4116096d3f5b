//! Arguments that do not fit, what was not given, and interruption.

use super::super::super::tests::shears::Shears;
use super::super::*;
use crate::argument::{Array, Given, wanted};
use crate::operators::dense::Dense;
use crate::recurrence::Run;
use crate::testing::fill;

#[test]
fn a_transition_is_refused_by_name() {
    let (x, w, states) = (vec![0.0; 6], vec![0.0; 32], vec![0.0; 24]);
    let (parameters, weight) = (vec![0.1; 8], vec![0.0; 16]);
    let [small, right] = [3, 4].map(|n| Shears::new(&parameters[..2 * (n - 1)], n));
    let given = [Given { shape: &[4, 4], array: Array::Own(&weight) }];
    let dense = Dense::of(&given).unwrap();
    let message = |transition: &dyn Cpu<f64>, w: &[f64]| {
        let gru = Gru {
            run: Run::new([3, 2, 1, 4], &x),
            w,
            transition: Some(transition),
            u: &states[..12],
            b: None,
            reset: Reset::Before,
            hidden_bias: None,
        };
        let outcome = forward(&gru, &mut states.clone(), None, &Budget::of(1));
        outcome.map_err(|e| e.to_string()).err().unwrap_or_default()
    };
    assert_eq!(message(&right, &w), "");
    assert!(message(&right, &[0.0; 48]).starts_with("w: "));
    assert!(message(&small, &w).starts_with("transition: "));
    assert!(message(&dense, &w).contains("through its matrix only"));
}

#[test]
fn refusals_name_the_argument() {
    let (n, d, batch) = (4, 3, 2);
    let (x, w, u, states) =
        (vec![0.0; 5 * batch * d], vec![0.0; 3 * n * n], vec![0.0; 3 * n * d], vec![0.0; 40]);
    let good = Gru {
        run: Run::new([5, batch, d, n], &x),
        w: &w,
        transition: None,
        u: &u,
        b: None,
        reset: Reset::After,
        hidden_bias: None,
    };
    let message = |gru: Gru<'_, f32>, saved: usize| {
        let (mut states, mut saved) = (states.clone(), vec![0.0; saved]);
        let outcome = forward(&gru, &mut states, Some(&mut saved), &Budget::of(1));
        outcome.map_err(|e| e.to_string()).err().unwrap_or_default()
    };
    assert_eq!(message(good, 160), "");
    assert!(message(good, 120).starts_with("saved"));
    let before = Gru { reset: Reset::Before, ..good };
    assert_eq!(message(before, 120), "");
    assert!(message(Gru { hidden_bias: Some(&x[..n]), ..before }, 120).starts_with("hidden_bias"));
    for (name, gru) in [
        ("x", Gru { run: Run { steps: 0, ..good.run }, ..good }),
        ("x", Gru { run: Run { x: &x[1..], ..good.run }, ..good }),
        ("w", Gru { w: &w[1..], ..good }),
        ("u", Gru { u: &w, ..good }),
        ("b", Gru { b: Some(&x), ..good }),
        ("h0", Gru { run: Run { h0: Some(&x), ..good.run }, ..good }),
        ("hidden_bias", Gru { hidden_bias: Some(&x), ..good }),
        ("activation_bias", Gru { run: Run { activation_bias: Some(&x), ..good.run }, ..good }),
        ("packs", Gru { run: Run { packs: Some(&x), ..good.run }, ..good }),
        ("lengths", Gru { run: Run { lengths: Some(&[2, 3]), ..good.run }, ..good }),
    ] {
        let message = message(gru, 160);
        assert_eq!(message.split([':', ' ']).next(), Some(name), "{message}");
    }
    let mut bar = vec![0.0; n];
    let hidden = &mut wanted(ARGUMENTS, [("hidden_bias", &mut bar[..])]);
    let saved = vec![0.0; 160];
    let outcome = backward(&good, &states, &saved, &states, hidden, &mut [], &Budget::of(1));
    assert!(outcome.unwrap_err().to_string().starts_with("hidden_bias_bar"));
}

#[test]
fn nothing_is_saved_beside_less_than_all_states() {
    let (x, w, u) = (fill::<f32>(6, 1.0, 1), fill(27, 0.5, 2), fill(9, 0.5, 3));
    let gru = small(&x, &w, &u);
    let (mut last, mut saved) = ([0.0; 6], [0.0; 4 * 18]);
    for saved in [&mut [][..], &mut saved] {
        let written = Written { states: None, last: Some(&mut last), marks: None };
        let found = forward(&gru, written, Some(saved), &Budget::of(1));
        assert!(found.unwrap_err().to_string().starts_with("saved: "));
    }
}

#[test]
fn gradients_of_arguments_that_were_not_given_are_refused() {
    let (x, w, u) = (fill::<f32>(6, 1.0, 1), fill(27, 0.5, 2), fill(9, 0.5, 3));
    let gru = small(&x, &w, &u);
    let (states, saved, mut bar) = ([0.0; 18], [0.0; 4 * 18], [0.0; 9]);
    let mut message = |name: &str, len: usize| {
        let bars = &mut wanted(ARGUMENTS, [(name, &mut bar[..len])]);
        let found = backward(&gru, &states[..], &saved, &states[..], bars, &mut [], &Budget::of(1));
        found.map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    let none = "is wanted, but there is no such argument";
    for (name, len) in [("h0", 6), ("b", 9), ("hidden_bias", 3), ("activation_bias", 0)] {
        assert_eq!(message(name, len), format!("{name}_bar {none}"));
    }
}

/// Three steps of two sequences with three states.
fn small<'a>(x: &'a [f32], w: &'a [f32], u: &'a [f32]) -> Gru<'a, f32> {
    Gru {
        run: Run::new([3, 2, 1, 3], x),
        w,
        transition: None,
        u,
        b: None,
        reset: Reset::After,
        hidden_bias: None,
    }
}

#[test]
fn a_raised_flag_interrupts() {
    let (n, batch, steps) = (64, 2, 20_000);
    let (x, w, u) = (vec![0.0f32; steps * batch], vec![0.0; 3 * n * n], vec![0.0; 3 * n]);
    let gru = Gru {
        run: Run::new([steps, batch, 1, n], &x),
        w: &w,
        transition: None,
        u: &u,
        b: None,
        reset: Reset::Before,
        hidden_bias: None,
    };
    let mut states = vec![0.0; steps * batch * n];
    let saved = vec![0.5; 3 * states.len()];
    for threads in [1, 2] {
        assert_eq!(
            forward(&gru, &mut states, None, &Budget { threads, cancel: &|| true }),
            Err(Error::Interrupted)
        );
        let budget = Budget { threads, cancel: &|| true };
        let outcome = backward(&gru, &states, &saved, &states, &mut [], &mut [], &budget);
        assert_eq!(outcome, Err(Error::Interrupted));
    }
}
