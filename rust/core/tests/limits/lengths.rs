//! Valid calls with one array too long or too short.

use crate::operators::gradients;
use crate::sequences::sequence;
use crate::{never, ones};
use isometry_core::operators::cayley;
use isometry_core::operators::householder::{self, Householder};
use isometry_core::recurrence::{self, Gradients, Sequence};
use isometry_core::scalar::{Real, Scalar};
use isometry_core::{Error, Operator, Result, Side};

/// A valid call with each array in turn too long or too short: the error names the array.
pub fn wrong_lengths<T: Scalar>() {
    fn each<const N: usize>(lens: [usize; N], names: [&str; N], call: impl Fn([usize; N]) -> Result<()>) {
        assert_eq!(call(lens), Ok(()), "{names:?}");
        for (i, name) in names.into_iter().enumerate() {
            for len in [lens[i] + 1, lens[i] - 1, 0] {
                let mut wrong = lens;
                wrong[i] = len;
                let outcome = call(wrong);
                let named = matches!(&outcome, Err(Error::Shape { argument, .. }) if *argument == name);
                assert!(named, "{name} of {len} elements: {outcome:?}");
            }
        }
    }
    let (batch, n, m, rows) = (2, 6, 3, 9);
    let (square, some, packed) = (batch * n * n, batch * rows * n, batch * n * (n - 1) / 2);
    let vectors: Vec<T> = (0..batch * n * m).map(|i| T::real(T::Real::of((i % 5 + 1) as f64))).collect();
    let view = Householder::new(&vectors, householder::Last::None, batch, n, m).unwrap();
    let names = ["x", "ct", "vectors_bar", "x_bar"];
    each([some, some, vectors.len(), some], names, |[x, ct, bar, x_bar]| {
        let (mut bar, mut x_bar) = (ones(bar), ones(x_bar));
        let (bar, x_bar) = (gradients(&mut bar), Some(&mut x_bar[..]));
        view.apply_vjp(None, &ones(x), &ones(ct), rows, Side::Forward, bar, x_bar, 2)
    });
    each([some, some], ["x", "out"], |[x, out]| view.apply(&ones(x), rows, Side::Adjoint, &mut ones(out), 2));
    each([square, view.keep_len().unwrap()], ["out", "keep"], |[out, keep]| {
        view.matrix_keeping(&mut ones(out), &mut ones(keep), 2)
    });
    each([square, vectors.len()], ["ct", "vectors_bar"], |[ct, bar]| {
        view.matrix_vjp(&ones(ct), gradients(&mut ones(bar)), 2)
    });
    each([square, square, packed], ["w", "ct", "upper_bar"], |[w, ct, bar]| {
        let mut bar = ones(bar);
        let gradients = cayley::Gradients { upper: Some(&mut bar[..]), ..Default::default() };
        cayley::matrix_vjp(&ones::<T>(w), cayley::Last::None, &ones(ct), gradients, batch, n, 2)
    });
    let steps = 4;
    let states = steps * batch * n;
    let names = ["x", "input_weight", "h0", "bias", "lengths", "weight", "states"];
    let lens = [steps * batch * m, n * m, batch * n, n, batch, n * n, states];
    each(lens, names, |[x, v, h0, bias, lengths, weight, states]| {
        let (x, v, h0, bias) = (ones::<T>(x), ones(v), ones(h0), ones(bias));
        let lengths = vec![steps; lengths];
        let given = sequence([steps, batch, m, n], &x, &v);
        let given = Sequence { h0: Some(&h0), bias: Some(&bias), lengths: Some(&lengths), ..given };
        recurrence::forward_dense(&ones(weight), &given, &mut ones(states), 2, &never)
    });
    let names = ["states", "ct", "weight_bar", "x_bar", "input_weight_bar", "h0_bar", "bias_bar"];
    let lens = [states, states, n * n, steps * batch * m, n * m, batch * n, n];
    each(lens, names, |[states, ct, own, x, v, h0, bias]| {
        let (inputs, inner) = (ones::<T>(steps * batch * m), ones(n * m));
        let given = sequence([steps, batch, m, n], &inputs, &inner);
        let (mut own, mut x, mut v) = (ones(own), ones(x), ones(v));
        let (mut h0, mut bias) = (ones(h0), ones(bias));
        let bars = Gradients {
            x: Some(&mut x[..]),
            input_weight: Some(&mut v[..]),
            h0: Some(&mut h0[..]),
            bias: Some(&mut bias[..]),
            activation_bias: None,
        };
        let (weight, states, ct) = (ones(n * n), ones(states), ones(ct));
        let own = Some(&mut own[..]);
        recurrence::backward_dense(&weight, &given, &states, &ct, own, bars, 2, &never)
    });
}
