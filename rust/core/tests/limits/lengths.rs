//! Valid calls with one array too long or too short.

use crate::ones;
use crate::sequences::sequence;
use isometry_core::argument::Bar;
use isometry_core::operators::{Last, cayley::Cayley, dense::Dense, householder::Householder};
use isometry_core::recurrence::Run;
use isometry_core::recurrence::{self, Sequence};
use isometry_core::scalar::{Real, Scalar};
use isometry_core::{Budget, Cpu, Error, Result, Side};

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
    let two = Budget::of(2);
    let (square, some, packed) = (batch * n * n, batch * rows * n, batch * n * (n - 1) / 2);
    let vectors: Vec<T> = (0..batch * n * m).map(|i| T::real(T::Real::of((i % 5 + 1) as f64))).collect();
    let view = Householder::new(&vectors, Last::None, batch, n, m).unwrap();
    let names = ["x", "ct", "vectors_bar", "x_bar"];
    each([some, some, vectors.len(), some], names, |[x, ct, bar, x_bar]| {
        let (mut bar, mut x_bar) = (ones(bar), ones(x_bar));
        let (bars, x_bar) = (&mut [Bar::Own(&mut bar)], Some(&mut x_bar[..]));
        view.apply_vjp(None, &ones(x), &ones(ct), rows, Side::Forward, bars, x_bar, &two)
    });
    each([some, some], ["x", "out"], |[x, out]| {
        view.apply(&ones(x), rows, Side::Adjoint, &mut ones(out), None, &two)
    });
    each([square, batch * m * (m + n)], ["out", "saved"], |[out, saved]| {
        view.matrix(&mut ones(out), Some(&mut ones(saved)), &two)
    });
    each([square, vectors.len()], ["ct", "vectors_bar"], |[ct, bar]| {
        view.matrix_vjp(None, &ones(ct), &mut [Bar::Own(&mut ones(bar))], &two)
    });
    let upper = ones::<T>(packed);
    let view = Cayley::new(&upper, None, Last::None, batch, n).unwrap();
    each([square, square, packed], ["saved", "ct", "upper_bar"], |[w, ct, bar]| {
        view.matrix_vjp(Some(&ones::<T>(w)), &ones(ct), &mut [Bar::Own(&mut ones(bar))], &two)
    });
    let steps = 4;
    let states = steps * batch * n;
    let names = ["x", "input_weight", "h0", "bias", "lengths", "weight", "states"];
    let lens = [steps * batch * m, n * m, batch * n, n, batch, n * n, states];
    each(lens, names, |[x, v, h0, bias, lengths, weight, states]| {
        let (x, v, h0, bias) = (ones::<T>(x), ones(v), ones(h0), ones(bias));
        let lengths = vec![steps; lengths];
        let given = sequence([steps, batch, m, n], &x, &v);
        let given = Sequence {
            run: Run { h0: Some(&h0), lengths: Some(&lengths), ..given.run },
            bias: Some(&bias),
            ..given
        };
        recurrence::forward(&Dense::new(&ones(weight), 1, n, n)?, &given, &mut ones(states), &two)
    });
    let names = ["states", "ct", "weight_bar", "x_bar", "input_weight_bar", "h0_bar", "bias_bar"];
    let lens = [states, states, n * n, steps * batch * m, n * m, batch * n, n];
    each(lens, names, |[states, ct, own, x, v, h0, bias]| {
        let (inputs, inner) = (ones::<T>(steps * batch * m), ones(n * m));
        let (start, shift) = (ones::<T>(batch * n), ones::<T>(n));
        let given = sequence([steps, batch, m, n], &inputs, &inner);
        let given = Sequence { run: Run { h0: Some(&start), ..given.run }, bias: Some(&shift), ..given };
        let (mut own, mut x, mut v) = (ones(own), ones(x), ones(v));
        let (mut h0, mut bias) = (ones(h0), ones(bias));
        let bars = &mut [&mut x, &mut v, &mut h0, &mut bias].map(|bar| Bar::Own(bar));
        let (weight, states, ct) = (ones(n * n), ones(states), ones(ct));
        let dense = Dense::new(&weight, 1, n, n)?;
        recurrence::backward(&dense, &mut [Bar::Own(&mut own)], &given, &states, &ct, bars, &two)
    });
}
