//! Gates that forget all, and memory. Values and gradients are held against the definition in `tests/gpu/test_delta.py`.

use super::Delta;
use crate::device::{Context, Record};
use crate::testing::{device, fetched, near, numbers, own, sent};
use crate::{Array, Field};
use isometry_core::internal::delta::Sizes;
use isometry_core::scalar::c64;
use std::sync::Arc;

/// o, the last states and the gradients of drawn arrays, with so many gates for each value head, which forget all at a token.
fn found(context: &Arc<Context>, sizes: Sizes<'_>, gates: &[usize], forgotten: usize) -> Vec<Vec<c64>> {
    let Sizes { batch: b, tokens: t, value_heads: hv, key, value, .. } = sizes;
    let drawn = |shape: &[usize], seed: u64| numbers(Field::Real, shape.iter().product(), seed);
    let array = |shape: &[usize], seed: u64| sent(context, Field::Real, shape, &drawn(shape, seed));
    let shape = [&[b, t, hv], gates].concat();
    let each = shape[2..].iter().product::<usize>();
    let gate =
        |at: usize| if at / each % t == forgotten { f32::NEG_INFINITY } else { -0.1 * (at % 7) as f32 };
    let g: Vec<f32> = (0..b * t * each).map(gate).collect();
    let delta = Delta {
        sizes,
        q: &array(&[b, t, 1, key], 1),
        k: &array(&[b, t, 1, key], 2),
        v: &array(&[b, t, hv, value], 3),
        beta: &array(&[b, t, hv], 4),
        g: Some(&Array::upload(context, Field::Real, &shape, &g).unwrap()),
        initial: None,
        scale: 0.3,
        normalise: true,
    };
    // of the last sequence alone
    let (n, last) = (delta.sizes.sequences(), [hv, key, value]);
    let mut state_bar = vec![c64::default(); (n - 1) * hv * key * value];
    state_bar.extend(drawn(&last, 6));
    let state_bar = sent(context, Field::Real, &[&[n], &last[..]].concat(), &state_bar);
    let mut record = Record::new(context).unwrap();
    let (o, state) = super::forward(&mut record, &delta).unwrap();
    let o_bar = array(&[b, t, hv, value], 5);
    let bars = super::backward(&mut record, &delta, (&o_bar, &state_bar), [true; 6]).unwrap();
    record.submit().unwrap();
    let state = fetched(&state).split_off((n - 1) * hv * key * value);
    [fetched(&o), state].into_iter().chain(bars.iter().flatten().map(fetched)).collect()
}

fn sizes(batch: usize, tokens: usize, value_heads: usize, [key, value]: [usize; 2]) -> Sizes<'static> {
    Sizes { batch, tokens, householders: 1, heads: 1, value_heads, key, value, ends: None }
}

/// What follows is what a sequence of its own has.
#[test]
fn a_gate_of_zero_forgets_all() {
    let Some(context) = device() else { return };
    let (own, forgotten) = (sizes(1, 135, 2, [6, 5]), 70);
    for gates in [&[][..], &[6]] {
        let one = found(&context, own, gates, forgotten);
        let two = found(&context, Sizes { ends: Some(&[0, 70, 135]), ..own }, gates, forgotten);
        assert_eq!(one.len(), 7);
        for (i, (one, two)) in one.iter().zip(&two).enumerate() {
            // a gradient of a gate is the sum over all rows of its token, in which much cancels
            let units = if i == 6 { 1024.0 } else { 128.0 };
            near(one, two, units, &format!("array {i}, {gates:?}"));
        }
        let each = 2 * gates.iter().product::<usize>();
        assert!(one[6][forgotten * each..][..each].iter().all(|g_bar| *g_bar == c64::default()));
    }
}

/// Of 128 sequences in 64 parts or more a part keeps the state of the sequence that goes on in the next, and no other.
#[test]
fn memory_does_not_grow_with_parts_times_sequences() {
    let Some(context) = own() else { return };
    found(&context, sizes(128, 64, 1, [33, 65]), &[], 7);
    assert!(context.bytes() < 64 << 20, "{} bytes", context.bytes());
}
