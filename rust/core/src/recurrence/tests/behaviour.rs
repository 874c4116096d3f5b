//! Requested and unrequested gradients, interruption, invalid input.

use super::super::*;
use super::shears::Shears;
use crate::activation::Activation;
use crate::argument::Bar;
use crate::argument::wanted;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::operators::dense::Dense;
use crate::recurrence::Run;
use crate::scalar::{Scalar, c32, c64};
use crate::testing::fill;

/// A small plain sequence for the tests of behaviour.
fn plain<'a>(x: &'a [f32], v: &'a [f32], n: usize, batch: usize) -> Sequence<'a, f32> {
    Sequence {
        run: Run::new([x.len() / batch, batch, 1, n], x),
        input_weight: v,
        bias: None,
        on_input: false,
    }
}

#[test]
fn any_subset_of_gradients_can_be_had() {
    let (n, batch, steps) = (6, 2, 5);
    let (x, v, w) = (fill::<f32>(steps * batch, 1.0, 1), fill::<f32>(n, 1.0, 2), fill::<f32>(n * n, 0.5, 3));
    let (h0, bias) = (fill::<f32>(batch * n, 1.0, 5), fill::<f32>(n, 1.0, 6));
    let sequence = Sequence {
        run: Run { h0: Some(&h0), ..plain(&x, &v, n, batch).run },
        bias: Some(&bias),
        ..plain(&x, &v, n, batch)
    };
    let mut states = vec![0.0; steps * batch * n];
    let dense = Dense::new(&w, 1, n, n).unwrap();
    forward(&dense, &sequence, &mut states, &Budget::of(1)).unwrap();
    let ct = fill::<f32>(states.len(), 1.0, 4);
    let run = |which: usize| {
        let mut bars = [n * n, x.len(), n, batch * n, n].map(|len| vec![f32::NAN; len]);
        let [wb, xb, vb, hb, bb] = &mut bars;
        let wanted = |i: usize| which >> i & 1 == 1;
        let room = |i: usize, bar| if wanted(i) { Bar::Own(bar) } else { Bar::None };
        let (own, given) = (&mut [room(0, wb)], &mut [room(1, xb), room(2, vb), room(3, hb), room(4, bb)]);
        backward(&dense, own, &sequence, &states, &ct, given, &Budget::of(2)).unwrap();
        bars
    };
    let all = run(31);
    for which in 0..31 {
        for (i, bar) in run(which).iter().enumerate() {
            let untouched = bar.iter().all(|x| x.is_nan());
            assert!(
                if which >> i & 1 == 1 { *bar == all[i] } else { untouched },
                "gradient {i} of {which:b}"
            );
        }
    }
}

#[test]
fn gradients_of_arguments_that_were_not_given_are_refused() {
    let (x, v, w) = (fill::<f32>(6, 1.0, 1), fill::<f32>(3, 1.0, 2), fill::<f32>(9, 0.5, 3));
    let (dense, states, mut bar) = (Dense::new(&w, 1, 3, 3).unwrap(), [0.0; 18], [0.0; 6]);
    let mut message = |name: &str, len: usize| {
        let (sequence, one) = (plain(&x, &v, 3, 2), Budget::of(1));
        let bars = &mut wanted(ARGUMENTS, [(name, &mut bar[..len])]);
        let found = backward(&dense, &mut [], &sequence, &states[..], &states[..], bars, &one);
        found.map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    let none = "is wanted, but there is no such argument";
    for (name, len) in [("h0", 6), ("bias", 3), ("activation_bias", 0), ("start_state", 6)] {
        assert_eq!(message(name, len), format!("{name}_bar {none}"));
    }
}

/// The states of some steps are those that V and W packed before give, to the last bit.
fn packed_alike<T: Scalar>(n: usize, batch: usize) {
    let (features, steps) = (3, 2);
    let (x, v) = (fill::<T>(steps * batch * features, 1.0, 1), fill::<T>(n * features, 1.0, 2));
    let (w, bias) = (fill::<T>(n * n, 0.5, 3), fill::<T::Real>(n, 0.3, 4));
    let sequence = Sequence {
        run: Run {
            activation: Activation::Modrelu,
            activation_bias: Some(&bias),
            ..Run::new([steps, batch, features, n], &x)
        },
        input_weight: &v,
        bias: None,
        on_input: false,
    };
    let dense = Dense::new(&w, 1, n, n).unwrap();
    let states = |packs: Option<&[T::Real]>| {
        let mut states = vec![T::default(); steps * batch * n];
        forward(
            &dense,
            &Sequence { run: Run { packs, ..sequence.run }, ..sequence },
            &mut states,
            &Budget::of(2),
        )
        .map(|()| states)
    };
    let expected = states(None).unwrap();
    let of_v = packed::<T>(n, features);
    let mut packs = vec![T::Real::default(); of_v + packed::<T>(n, n)];
    let (first, second) = packs.split_at_mut(of_v);
    pack(&v, n, features, first).unwrap();
    pack(&w, n, n, second).unwrap();
    assert!(states(Some(&packs)).unwrap() == expected);
    assert!(states(Some(&packs[..of_v])).unwrap() == expected);
    for wrong in [0, of_v - 1, packs.len() - 1] {
        assert!(matches!(states(Some(&packs[..wrong])), Err(Error::Shape { .. })), "{wrong} numbers");
    }
    assert!(pack(&v, n, features + 1, &mut packs).is_err());
    assert!(pack(&v, n, features, &mut packs[..1]).is_err());
}

#[test]
fn packed_operands_change_nothing() {
    for (n, batch) in [(1, 1), (5, 1), (33, 2), (40, 9)] {
        packed_alike::<f32>(n, batch);
        packed_alike::<f64>(n, batch);
        packed_alike::<c32>(n, batch);
        packed_alike::<c64>(n, batch);
    }
}

#[test]
fn a_raised_flag_interrupts_all_members() {
    if !crate::testing::within_work(&[400_000_000]) {
        return;
    }
    for (batch, n) in [(1, 64), (4, 64)] {
        let steps = 400_000_000 / (n * n * batch);
        let (x, v) = (vec![0.0; steps * batch], vec![0.0; n]);
        let w = vec![0.0; n * n];
        let sequence = plain(&x, &v, n, batch);
        let mut states = vec![0.0; steps * batch * n];
        for threads in [1, 2] {
            let (dense, raised) = (Dense::new(&w, 1, n, n).unwrap(), Budget { threads, cancel: &|| true });
            let result = forward(&dense, &sequence, &mut states, &raised);
            assert_eq!(result, Err(Error::Interrupted));
            let bars = &mut [];
            let result = backward(&dense, &mut [], &sequence, &states, &states, bars, &raised);
            assert_eq!(result, Err(Error::Interrupted));
            assert_eq!(forward(&dense, &sequence, &mut states, &Budget::of(threads)), Ok(()));
        }
    }
}

#[test]
fn refusals_name_the_argument() {
    let (n, batch) = (4, 2);
    let (x, v, w) = (vec![0.0; 6], vec![0.0; n], vec![0.0; n * n]);
    let good = plain(&x, &v, n, batch);
    let mut states = vec![0.0; 6 * n];
    let mut message = |sequence: Sequence<'_, f32>, w: &[f32]| {
        let mut run =
            || -> Result<()> { forward(&Dense::new(w, 1, n, n)?, &sequence, &mut states, &Budget::of(1)) };
        run().map_err(|e| e.to_string()).err().unwrap_or_default()
    };
    assert_eq!(message(good, &w), "");
    assert!(message(good, &w[1..]).starts_with("weight"));
    let (parameters, mut states) = (vec![0.0; 2 * n], vec![0.0; 6 * n]);
    let wide = Shears::new(&parameters, n + 1);
    let refusal = forward(&wide, &good, &mut states, &Budget::of(1)).unwrap_err().to_string();
    assert!(refusal.starts_with("transition: expected one operator 4 x 4, got 1 of 5 x 5"), "{refusal}");
    assert!(message(Sequence { run: Run { steps: 0, ..good.run }, ..good }, &w).starts_with("x"));
    assert!(message(Sequence { run: Run { x: &x[1..], ..good.run }, ..good }, &w).starts_with("x"));
    assert!(message(Sequence { input_weight: &[], ..good }, &w).starts_with("input_weight"));
    assert!(message(Sequence { run: Run { h0: Some(&x), ..good.run }, ..good }, &w).starts_with("h0"));
    assert!(message(Sequence { bias: Some(&x), ..good }, &w).starts_with("bias"));
    assert!(
        message(Sequence { run: Run { activation_bias: Some(&x), ..good.run }, ..good }, &w)
            .starts_with("activation_bias")
    );
    for lengths in [&[3][..], &[4, 1], &[1, 2]] {
        assert!(
            message(Sequence { run: Run { lengths: Some(lengths), ..good.run }, ..good }, &w)
                .starts_with("lengths")
        );
    }
}

/// The last states alone, in windows, have the gradients of all states with cotangents at their ends only; a sequence
/// without a step has h0.
#[test]
fn the_last_states_alone() {
    let (n, batch, steps) = (6, 5, 40);
    let (x, v, w) = (fill::<f32>(steps * batch, 1.0, 1), fill::<f32>(n, 1.0, 2), fill::<f32>(n * n, 0.5, 3));
    let (h0, last_ct) = (fill::<f32>(batch * n, 1.0, 4), fill::<f32>(batch * n, 1.0, 5));
    let dense = Dense::new(&w, 1, n, n).unwrap();
    for (lengths, reverse) in [([40; 5], false), ([40, 17, 16, 3, 0], false), ([40, 17, 16, 3, 0], true)] {
        let sequence = Sequence {
            run: Run { h0: Some(&h0), lengths: Some(&lengths), reverse, ..plain(&x, &v, n, batch).run },
            ..plain(&x, &v, n, batch)
        };
        let mut states = vec![0.0; steps * batch * n];
        forward(&dense, &sequence, &mut states, &Budget::of(1)).unwrap();
        let mut ct = vec![0.0; states.len()];
        let mut expected = h0.clone();
        for (b, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let at = (if reverse { 0 } else { length - 1 } * batch + b) * n;
            expected[b * n..][..n].copy_from_slice(&states[at..][..n]);
            ct[at..][..n].copy_from_slice(&last_ct[b * n..][..n]);
        }
        let gradients = |kept: Trajectory<'_, f32>, ct: Cotangent<'_, f32>| {
            let mut bars = [n * n, x.len(), n, batch * n].map(|len| vec![f32::NAN; len]);
            let [wb, xb, vb, hb] = &mut bars;
            let wanted = &mut [xb, vb, hb].map(|bar| Bar::Own(bar));
            backward(&dense, &mut [Bar::Own(wb)], &sequence, kept, ct, wanted, &Budget::of(2)).unwrap();
            bars
        };
        let mut whole = gradients(Trajectory::All(&states), Cotangent::States(&ct));
        for (b, _) in lengths.iter().enumerate().filter(|(_, length)| **length == 0) {
            whole[3][b * n..][..n].copy_from_slice(&last_ct[b * n..][..n]);
        }
        assert!(gradients(Trajectory::All(&states), Cotangent::Last(&last_ct)) == whole);
        let mut last = vec![f32::NAN; batch * n];
        let mut marks = vec![f32::NAN; Checkpoint::Sqrt.segments(steps, batch, 0).borders() * batch * n];
        let written =
            Written { states: None, last: Some(&mut last), marks: Some((Checkpoint::Sqrt, &mut marks)) };
        forward(&dense, &sequence, written, &Budget::of(2)).unwrap();
        assert_eq!(last, expected);
        assert!(
            gradients(Trajectory::Marks(Checkpoint::Sqrt, &marks, &last), Cotangent::Last(&last_ct)) == whole
        );
    }
}

#[test]
fn an_operator_on_rows_is_loaded_once_by_each_thread() {
    let (n, batch, steps) = (6, 7, 50);
    let (x, v, parameters) =
        (fill::<f32>(steps * batch, 1.0, 1), fill::<f32>(n, 1.0, 2), fill::<f32>(2 * (n - 1), 0.4, 3));
    let (shears, sequence) = (Shears::new(&parameters, n), plain(&x, &v, n, batch));
    let (mut states, mut bar) = (vec![0.0; steps * batch * n], vec![0.0; parameters.len()]);
    let mut x_bar = vec![0.0; x.len()];
    for threads in [1, 3] {
        forward(&shears, &sequence, &mut states, &Budget::of(threads)).unwrap();
        assert!((1..=threads).contains(&shears.loads()), "{threads} threads");
        let gradients = &mut [Bar::Own(&mut x_bar)];
        let own = &mut [Bar::Own(&mut bar)];
        backward(&shears, own, &sequence, &states, &states, gradients, &Budget::of(threads)).unwrap();
        // once more for the gradients of the arguments from their sums
        assert!((2..=threads + 1).contains(&shears.loads()), "{threads} threads");
    }
}
