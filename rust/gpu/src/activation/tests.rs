//! Values, derivatives, kinks and tiny and huge numbers against the table, in double precision.

use super::*;
use crate::testing::{C, device, fetched, near, numbers, sent};

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

/// The pairs of OPLU, or the halves of the real representation.
fn pairs(activation: Activation, n: usize) -> Vec<(usize, usize)> {
    let halves = activation != Activation::Oplu;
    (0..n / 2).map(|i| if halves { (i, i + n / 2) } else { (2 * i, 2 * i + 1) }).collect()
}

/// The textbook value of one row.
pub(crate) fn value(z: &[C], activation: Activation, bias: &[f64]) -> Vec<C> {
    let apart = |f: &dyn Fn(f64) -> f64| z.iter().map(|z| C(f(z.0), f(z.1))).collect();
    match activation {
        Activation::Identity => z.to_vec(),
        Activation::Tanh => apart(&f64::tanh),
        Activation::Relu => apart(&|x| x.max(0.0)),
        Activation::LeakyRelu { slope } => apart(&|x| x.max(slope * x)),
        Activation::Oplu | Activation::OpluHalves => {
            let mut h = z.to_vec();
            for (i, j) in pairs(activation, z.len()) {
                h[i] = C(z[i].0.max(z[j].0), z[i].1.max(z[j].1));
                h[j] = C(z[i].0.min(z[j].0), z[i].1.min(z[j].1));
            }
            h
        }
        Activation::Modrelu => z
            .iter()
            .zip(bias)
            .map(|(z, b)| {
                let r = z.0.hypot(z.1);
                if r + b > 0.0 && r != 0.0 { z.scaled((r + b) / r) } else { C::default() }
            })
            .collect(),
        Activation::ModreluRealrep => halved(&value(&joined(z), Activation::Modrelu, bias)),
    }
}

/// The textbook gradient of one row: z_bar, and that of the bias.
pub(crate) fn pull(
    field: Field,
    z: &[C],
    activation: Activation,
    bias: &[f64],
    g: &[C],
) -> (Vec<C>, Vec<f64>) {
    let apart = |f: &dyn Fn(f64) -> f64| {
        (z.iter().zip(g).map(|(z, g)| C(f(z.0) * g.0, f(z.1) * g.1)).collect(), vec![])
    };
    let step = |low: f64| move |x: f64| if x > 0.0 { 1.0 } else { low };
    match activation {
        Activation::Identity => (g.to_vec(), vec![]),
        Activation::Tanh => apart(&|x| 1.0 - x.tanh().powi(2)),
        Activation::Relu => apart(&step(0.0)),
        Activation::LeakyRelu { slope } => apart(&step(slope)),
        Activation::Oplu | Activation::OpluHalves => {
            let mut bar = g.to_vec();
            for (i, j) in pairs(activation, z.len()) {
                let (swap, turn) = (z[j].0 > z[i].0, z[j].1 > z[i].1);
                let (re, im) = (if swap { (j, i) } else { (i, j) }, if turn { (j, i) } else { (i, j) });
                (bar[i], bar[j]) = (C(g[re.0].0, g[im.0].1), C(g[re.1].0, g[im.1].1));
            }
            (bar, vec![])
        }
        Activation::Modrelu => {
            let (mut bar, mut own) = (vec![C::default(); z.len()], vec![0.0; z.len()]);
            for i in 0..z.len() {
                let r = z[i].0.hypot(z[i].1);
                if r + bias[i] > 0.0 && r != 0.0 {
                    let e = z[i].scaled(1.0 / r);
                    own[i] = e.conj().times(g[i]).0;
                    let across = g[i].plus(e.scaled(-own[i]));
                    // of real numbers nothing is across
                    bar[i] = if field == Field::Real { g[i] } else { g[i].plus(across.scaled(bias[i] / r)) };
                }
            }
            (bar, own)
        }
        Activation::ModreluRealrep => {
            let (bar, own) = pull(Field::Complex, &joined(z), Activation::Modrelu, bias, &joined(g));
            (halved(&bar), own)
        }
    }
}

fn joined(x: &[C]) -> Vec<C> {
    let half = x.len() / 2;
    (0..half).map(|i| C(x[i].0, x[i + half].0)).collect()
}

fn halved(x: &[C]) -> Vec<C> {
    x.iter().map(|x| C(x.0, 0.0)).chain(x.iter().map(|x| C(x.1, 0.0))).collect()
}

fn check(field: Field, rows: usize, n: usize, z: &[C], what: &str) {
    let Some(context) = device() else { return };
    let ct = numbers(field, rows * n, 5);
    let (dz, dct) = (sent(&context, field, &[rows, n], z), sent(&context, field, &[rows, n], &ct));
    for activation in all(field, n) {
        let units = activation.bias_units(n);
        // both signs
        let bias: Vec<C> = numbers(Field::Real, units, 6).iter().map(|b| b.scaled(0.5)).collect();
        let wide: Vec<f64> = bias.iter().map(|b| b.0).collect();
        let own = (units > 0).then(|| sent(&context, Field::Real, &[units], &bias));
        let h = activate(&dz, activation, own.as_ref()).unwrap();
        let (z_bar, own_bar) = activate_vjp(&dz, activation, own.as_ref(), &dct, units > 0).unwrap();
        let (mut expected, mut bars, mut sums) = (vec![], vec![], vec![C::default(); units]);
        for row in 0..rows {
            let part = |x: &[C]| x[row * n..(row + 1) * n].to_vec();
            expected.extend(value(&part(z), activation, &wide));
            let (bar, own) = pull(field, &part(z), activation, &wide, &part(&ct));
            bars.extend(bar);
            sums.iter_mut().zip(own).for_each(|(sum, x)| *sum = sum.plus(C(x, 0.0)));
        }
        let name = format!("{activation:?} {field:?} {rows} {n} {what}");
        near(&fetched(&h), &expected, 8.0, &name);
        near(&fetched(&z_bar), &bars, 16.0, &format!("{name} z_bar"));
        assert_eq!(own_bar.is_some(), units > 0, "{name}");
        if let Some(bar) = own_bar {
            near(&fetched(&bar), &sums, 16.0, &format!("{name} bias"));
        }
    }
}

#[test]
fn values_and_gradients_of_all_activations() {
    for field in [Field::Real, Field::Complex] {
        for (rows, n) in [(1, 1), (3, 2), (5, 7), (2, 70), (70, 8)] {
            check(field, rows, n, &numbers(field, rows * n, 4), "drawn");
        }
    }
}

#[test]
fn kinks_and_ties() {
    for field in [Field::Real, Field::Complex] {
        // zeros, and equal neighbours and halves
        check(field, 2, 4, &[C::default(); 8], "zeros");
        check(field, 1, 8, &[C(0.5, 0.0); 8], "ties");
    }
}

#[test]
fn tiny_and_huge_numbers() {
    for field in [Field::Real, Field::Complex] {
        for size in [1e-30, 1e-10, 100.0, 1e30] {
            let scale = |z: &C| C(f64::from((z.0 * size) as f32), f64::from((z.1 * size) as f32));
            let z: Vec<C> = numbers(field, 12, 8).iter().map(scale).collect();
            let Some(context) = device() else { return };
            let dz = sent(&context, field, &[3, 4], &z);
            for activation in all(field, 4) {
                let units = activation.bias_units(4);
                let bias = vec![C(0.25, 0.0); units];
                let own = (units > 0).then(|| sent(&context, Field::Real, &[units], &bias));
                let h = fetched(&activate(&dz, activation, own.as_ref()).unwrap());
                let wide = vec![0.25; units];
                let expected: Vec<C> = z.chunks(4).flat_map(|z| value(z, activation, &wide)).collect();
                // `near` has a floor for the size of the reference
                let up = |x: &[C]| x.iter().map(|x| x.scaled(1.0 / size.min(1.0))).collect::<Vec<C>>();
                near(&up(&h), &up(&expected), 8.0, &format!("{activation:?} {field:?} {size:e}"));
            }
        }
    }
}

#[test]
fn tanh_is_accurate_everywhere() {
    let Some(context) = device() else { return };
    let count = 20_000;
    // from 1e-6 to 100 on a logarithmic scale, both signs
    let z: Vec<C> = (0..count)
        .map(|i| {
            let x = 10f64.powf(f64::from(i / 2) / f64::from(count / 2) * 8.0 - 6.0);
            C(f64::from(if i % 2 == 0 { x } else { -x } as f32), 0.0)
        })
        .collect();
    let z = z.into_iter().chain([C::default()]).collect::<Vec<C>>();
    let dz = sent(&context, Field::Real, &[1, z.len()], &z);
    let h = fetched(&activate(&dz, Activation::Tanh, None).unwrap());
    let unit = f64::from(f32::EPSILON) / 2.0;
    let off = |(h, z): (&C, &C)| if z.0 == 0.0 { h.0.abs() } else { (h.0 / z.0.tanh() - 1.0).abs() / unit };
    let worst = h.iter().zip(&z).map(off).fold(0.0, f64::max);
    eprintln!("tanh: {worst:.1} units of rounding");
    assert!(worst <= 16.0, "{worst}");
    assert!(h.iter().all(|h| h.0.abs() <= 1.0));
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
