//! Values, derivatives, kinks and tiny and huge numbers against the core in double precision.

use super::*;
use crate::testing::{close, device, fetched, flat, numbers, of_parts, sent, widened};
use isometry_core::activation as core;
use isometry_core::scalar::{Real, Scalar, c64};

/// All activations for rows of n features of one field.
pub(crate) fn all(field: Field, n: usize) -> Vec<Activation> {
    let mut all = vec![
        Activation::Identity,
        Activation::Tanh,
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.125 },
        Activation::Modrelu,
    ];
    if n.is_multiple_of(2) {
        all.extend([Activation::Oplu, Activation::OpluHalves]);
        all.extend((field == Field::Real).then_some(Activation::ModreluRealrep));
    }
    all
}

/// Values, gradients of z and of the bias, by the core in double precision.
fn by_core<T: Scalar>(n: usize, activation: Activation, arrays: [&[c64]; 3]) -> [Vec<f64>; 3] {
    let field = if T::PARTS == 1 { Field::Real } else { Field::Complex };
    let [z, ct] = [arrays[0], arrays[1]].map(|x| of_parts::<T>(&flat(field, x)));
    let bias: Vec<T::Real> = arrays[2].iter().map(|b| T::Real::of(b.re)).collect();
    let own = (!bias.is_empty()).then_some(&bias[..]);
    let (rows, mut h, mut z_bar, mut bias_bar) = (z.len() / n, z.clone(), z.clone(), bias.clone());
    let of_bias = own.map(|_| &mut bias_bar[..]);
    core::activate(&z, rows, n, activation, own, &mut h, 1).unwrap();
    core::activate_vjp(&z, rows, n, activation, own, &ct, &mut z_bar, of_bias, 1).unwrap();
    [widened(&h), widened(&z_bar), widened(&bias_bar)]
}

/// Values and gradients on the device against the core, in units of rounding; `up` scales values, since [`close`] has a floor for the size of
/// the reference.
fn check(field: Field, rows: usize, n: usize, z: &[c64], what: &str, up: f64) {
    let Some(context) = device() else { return };
    let ct = numbers(field, rows * n, 5);
    let (dz, dct) = (sent(&context, field, &[rows, n], z), sent(&context, field, &[rows, n], &ct));
    for activation in all(field, n) {
        let units = activation.bias_units(n);
        // both signs
        let bias: Vec<c64> = numbers(Field::Real, units, 6)
            .iter()
            .map(|b| c64::from(f64::from((b.re * 0.5) as f32)))
            .collect();
        let own = (units > 0).then(|| sent(&context, Field::Real, &[units], &bias));
        let h = activate(&dz, activation, own.as_ref()).unwrap();
        let (z_bar, own_bar) = activate_vjp(&dz, activation, own.as_ref(), &dct, units > 0).unwrap();
        let expected = match field {
            Field::Real => by_core::<f64>(n, activation, [z, &ct, &bias]),
            Field::Complex => by_core::<c64>(n, activation, [z, &ct, &bias]),
        };
        assert_eq!(own_bar.is_some(), units > 0, "{what}");
        let found = [Some(h), Some(z_bar), own_bar];
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let Some(found) = found else { continue };
            let found = found.download().unwrap();
            let (up, most) = if i == 0 { (up, 8.0) } else { (1.0, 16.0) };
            let found: Vec<_> = found.into_iter().map(|x| f64::from(x) * up).collect();
            let expected: Vec<_> = expected.iter().map(|x| x * up).collect();
            close(&found, &expected, most, &format!("{i} of {activation:?} {field:?} {rows} {n} {what}"));
        }
    }
}

#[test]
fn values_and_gradients_of_all_activations() {
    for field in [Field::Real, Field::Complex] {
        for (rows, n) in [(1, 1), (3, 2), (5, 7), (2, 70), (70, 8)] {
            check(field, rows, n, &numbers(field, rows * n, 4), "drawn", 1.0);
        }
    }
}

#[test]
fn kinks_and_ties() {
    for field in [Field::Real, Field::Complex] {
        // zeros, and equal neighbours and halves
        check(field, 2, 4, &[c64::default(); 8], "zeros", 1.0);
        check(field, 1, 8, &[c64::from(0.5); 8], "ties", 1.0);
    }
}

#[test]
fn tiny_and_huge_numbers() {
    for field in [Field::Real, Field::Complex] {
        for size in [1e-30, 1e-10, 100.0, 1e30, 2e38] {
            let scale = |z: &c64| c64::new(f64::from((z.re * size) as f32), f64::from((z.im * size) as f32));
            let z: Vec<c64> = numbers(field, 12, 8).iter().map(scale).collect();
            check(field, 3, 4, &z, &format!("{size:e}"), 1.0 / f64::min(size, 1.0));
        }
    }
}

#[test]
fn tanh_is_accurate_everywhere() {
    let Some(context) = device() else { return };
    let count = 20_000;
    // from 1e-6 to 100 on a logarithmic scale, both signs
    let z: Vec<c64> = (0..count)
        .map(|i| {
            let x = 10f64.powf(f64::from(i / 2) / f64::from(count / 2) * 8.0 - 6.0);
            c64::from(f64::from(if i % 2 == 0 { x } else { -x } as f32))
        })
        .collect();
    let z = z.into_iter().chain([c64::default()]).collect::<Vec<c64>>();
    let dz = sent(&context, Field::Real, &[1, z.len()], &z);
    let h = fetched(&activate(&dz, Activation::Tanh, None).unwrap());
    let unit = f64::from(f32::EPSILON) / 2.0;
    let off =
        |(h, z): (&c64, &c64)| if z.re == 0.0 { h.re.abs() } else { (h.re / z.re.tanh() - 1.0).abs() / unit };
    let worst = h.iter().zip(&z).map(off).fold(0.0, f64::max);
    eprintln!("tanh: {worst:.1} units of rounding");
    assert!(worst <= 16.0 * crate::proof::roughness(), "{worst}");
    assert!(h.iter().all(|h| h.re.abs() <= 1.0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let real = |shape: &[usize]| {
        sent(&context, Field::Real, shape, &numbers(Field::Real, shape.iter().product(), 1))
    };
    let complex = sent(&context, Field::Complex, &[1, 2], &numbers(Field::Complex, 2, 1));
    let (z, odd, one, two) = (real(&[3, 2]), real(&[1, 3]), real(&[1]), real(&[2]));
    for activation in [Activation::Oplu, Activation::OpluHalves, Activation::ModreluRealrep] {
        assert!(activate(&odd, activation, None).is_err());
    }
    assert!(activate(&z, Activation::Modrelu, None).is_err());
    assert!(activate(&z, Activation::Modrelu, Some(&one)).is_err());
    assert!(activate(&z, Activation::Modrelu, Some(&complex.reshaped(&[2]).unwrap())).is_err());
    assert!(activate(&z, Activation::Tanh, Some(&two)).is_err());
    assert!(activate(&complex, Activation::ModreluRealrep, Some(&one)).is_err());
    assert!(activate_vjp(&z, Activation::Tanh, None, &odd, false).is_err());
    assert!(activate_vjp(&z, Activation::Tanh, None, &z, true).is_err());
}
