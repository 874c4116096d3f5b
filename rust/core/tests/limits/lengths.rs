//! Valid calls with one array too long or too short.

use crate::ones;
use isometry_core::argument::Bar;
use isometry_core::operators::{Last, cayley::Cayley, householder::Householder};
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
}
