//! Values and gradients as those of the core in double precision, whose law is the definition token by token.

use super::Delta;
use crate::device::{Context, Record};
use crate::testing::{close, device, numbers, own};
use crate::{Array, Field};
use isometry_core::Budget;
use isometry_core::delta::{self, DeltaGradients, Gate};
use isometry_core::internal::delta::Sizes;
use std::sync::Arc;

const NAMES: [&str; 6] = ["q", "k", "v", "beta", "g", "initial_state"];

/// A call. Numbers are single precision.
#[derive(Clone, Debug)]
struct Case {
    /// B, T, m, H, HV, K, V
    sizes: [usize; 7],
    gate: &'static str,
    initial: bool,
    normalise: bool,
    ends: Option<Vec<i64>>,
}

/// q, k, v, beta, g, initial state; cotangents of o and of the states.
type Arrays = [Vec<f64>; 8];

impl Case {
    fn sequences(&self) -> usize {
        self.ends.as_ref().map_or(self.sizes[0], |ends| ends.len() - 1)
    }

    fn shapes(&self) -> [Vec<usize>; 8] {
        let ([b, t, m, h, hv, key, value], n) = (self.sizes, self.sequences());
        let g = match self.gate {
            "none" => vec![0],
            "head" => vec![b, t, hv],
            _ => vec![b, t, hv, key],
        };
        let initial = if self.initial { vec![n, hv, key, value] } else { vec![0] };
        [
            vec![b, t, h, key],
            vec![b, t * m, h, key],
            vec![b, t * m, hv, value],
            vec![b, t * m, hv],
            g,
            initial,
            vec![b, t, hv, value],
            vec![n, hv, key, value],
        ]
    }

    /// Rates in [0, 2], some of them 0 and 2, unit keys, some of them 0, and gates of which some forget nearly all and all.
    fn drawn(&self) -> Arrays {
        let mut seed = 3;
        let mut arrays = self.shapes().map(|shape| {
            seed += 1;
            numbers(Field::Real, shape.iter().product(), seed).iter().map(|x| x.re).collect::<Vec<f64>>()
        });
        let [_, k, _, beta, g, ..] = &mut arrays;
        for (i, row) in k.chunks_mut(self.sizes[5]).enumerate() {
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.iter_mut().for_each(|x| *x = if i % 13 == 12 { 0.0 } else { *x / length });
        }
        for (i, x) in beta.iter_mut().enumerate() {
            *x = [*x + 1.0, *x + 1.0, *x + 1.0, 0.0, 2.0][i % 5];
        }
        for (i, x) in g.iter_mut().enumerate() {
            *x = match i % 11 {
                8 => 0.0,
                9 => -50.0,
                10 => f64::NEG_INFINITY,
                _ => 0.5 * (*x - 1.0),
            };
        }
        arrays.map(|array| array.into_iter().map(|x| f64::from(x as f32)).collect())
    }

    fn sizes(&self) -> Sizes<'_> {
        let [batch, tokens, householders, heads, value_heads, key, value] = self.sizes;
        let ends = self.ends.as_deref();
        Sizes { batch, tokens, householders, heads, value_heads, key, value, ends }
    }

    fn core(&self, [q, k, v, beta, g, initial, o_bar, state_bar]: &Arrays) -> [Vec<f64>; 8] {
        let Sizes { batch, tokens, householders, heads, value_heads, key, value, ends } = self.sizes();
        let gate = match self.gate {
            "none" => Gate::None,
            "head" => Gate::Head(g),
            _ => Gate::Row(g),
        };
        let initial = self.initial.then_some(&initial[..]);
        let (scale, normalise) = (0.3, self.normalise);
        let delta = delta::Delta {
            batch,
            tokens,
            householders,
            heads,
            value_heads,
            key,
            value,
            q,
            k,
            v,
            beta,
            gate,
            initial,
            ends,
            scale,
            normalise,
        };
        let zeros = |x: &[f64]| vec![0.0; x.len()];
        let (mut o, mut state) = (zeros(o_bar), zeros(state_bar));
        let mut saved = vec![0.0; delta.saved().iter().product()];
        delta::forward(&delta, &mut o, &mut state, Some(&mut saved), &Budget::of(1)).unwrap();
        let [mut qb, mut kb, mut vb, mut betab, mut gb] = [q, k, v, beta, g].map(|x| zeros(x));
        let mut initialb = initial.map_or(vec![], zeros);
        let bars = DeltaGradients {
            q: Some(&mut qb),
            k: Some(&mut kb),
            v: Some(&mut vb),
            beta: Some(&mut betab),
            g: (self.gate != "none").then_some(&mut gb[..]),
            initial: self.initial.then_some(&mut initialb[..]),
        };
        delta::backward(&delta, &saved, (o_bar, state_bar), bars, &Budget::of(1)).unwrap();
        [o, state, qb, kb, vb, betab, gb, initialb]
    }

    /// The device's results for these numbers.
    fn found(&self, context: &Arc<Context>, arrays: &Arrays) -> Vec<Vec<f64>> {
        let shapes = self.shapes();
        let sent: Vec<Array> = (0..8)
            .map(|i| {
                let single: Vec<f32> = arrays[i].iter().map(|&x| x as f32).collect();
                Array::upload(context, Field::Real, &shapes[i], &single).unwrap()
            })
            .collect();
        let delta = Delta {
            sizes: self.sizes(),
            q: &sent[0],
            k: &sent[1],
            v: &sent[2],
            beta: &sent[3],
            g: (self.gate != "none").then_some(&sent[4]),
            initial: self.initial.then_some(&sent[5]),
            scale: 0.3,
            normalise: self.normalise,
        };
        let mut record = Record::new(context).unwrap();
        let (o, state) = super::forward(&mut record, &delta).unwrap();
        let bars = super::backward(&mut record, &delta, (&sent[6], &sent[7]), [true; 6]).unwrap();
        record.submit().unwrap();
        let fetched = |array: &Array| array.download().unwrap().into_iter().map(f64::from).collect();
        let bars = bars.iter().map(|bar| bar.as_ref().map_or(vec![], fetched));
        [fetched(&o), fetched(&state)].into_iter().chain(bars).collect()
    }

    #[track_caller]
    fn check(&self) {
        let (arrays, Some(context)) = (self.drawn(), device()) else { return };
        let found = self.found(&context, &arrays);
        let expected = self.core(&arrays);
        for (i, found) in found.iter().enumerate() {
            let name = if i < 2 { ["o", "state"][i] } else { NAMES[i - 2] };
            // of a gate it is the sum over all rows of its token, in which much cancels
            let units = if name == "g" { 512.0 } else { 64.0 };
            close(found, &expected[i], units, &format!("{name} of {self:?}"));
        }
    }
}

fn case(sizes: [usize; 7], gate: &'static str) -> Case {
    Case { sizes, gate, initial: true, normalise: false, ends: None }
}

#[test]
fn values_and_gradients_are_those_of_the_core() {
    for (sizes, gate) in [
        ([1, 1, 1, 1, 1, 4, 4], "none"),
        ([2, 5, 1, 2, 2, 4, 3], "head"),
        ([1, 63, 1, 1, 2, 8, 5], "none"),
        ([2, 64, 1, 1, 1, 5, 17], "head"),
        ([1, 65, 1, 2, 4, 16, 8], "head"),
        ([1, 200, 1, 1, 1, 33, 65], "none"),
        ([1, 7, 2, 1, 1, 6, 4], "none"),
        ([2, 33, 3, 2, 2, 8, 8], "head"),
        ([1, 4, 70, 1, 1, 8, 5], "head"),
        ([1, 31, 1, 1, 1, 8, 6], "row"),
        ([1, 66, 1, 2, 2, 20, 6], "row"),
        ([2, 40, 2, 1, 2, 7, 9], "row"),
        ([2, 0, 1, 1, 1, 3, 2], "head"),
        ([0, 4, 1, 1, 1, 3, 2], "none"),
    ] {
        for (initial, normalise) in [(true, false), (false, true)] {
            Case { initial, normalise, ..case(sizes, gate) }.check();
        }
    }
}

#[test]
fn packed_sequences_are_apart_and_some_of_them_empty() {
    for (gate, m) in [("none", 1), ("head", 3), ("row", 2)] {
        for initial in [false, true] {
            let ends = Some(vec![0, 0, 5, 5, 69, 70, 135, 135]);
            Case { ends, initial, ..case([1, 135, m, 1, 2, 6, 5], gate) }.check();
        }
    }
}

/// Of 128 sequences in 64 parts or more a part keeps the state of the sequence that goes on in the next, and no other.
#[test]
fn memory_does_not_grow_with_parts_times_sequences() {
    let Some(context) = own() else { return };
    let case = case([128, 64, 1, 1, 1, 33, 65], "head");
    case.found(&context, &case.drawn());
    assert!(context.bytes() < 64 << 20, "{} bytes", context.bytes());
}
