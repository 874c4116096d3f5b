//! Values, derivatives, kinks and NaN against the table of the module.

use super::*;
use crate::scalar::{Real, c32, c64};
use crate::testing::Random;

/// The textbook value of one row.
pub(crate) fn value<W: Scalar<Real = f64>>(z: &[W], activation: Activation, bias: &[f64]) -> Vec<W> {
    let apart = |f: &dyn Fn(f64) -> f64| z.iter().map(|z| W::new(f(z.re()), f(z.im()))).collect();
    let n = z.len();
    let ordered = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
        let mut h = z.to_vec();
        for (i, j) in pairs {
            h[i] = W::new(z[i].re().max(z[j].re()), z[i].im().max(z[j].im()));
            h[j] = W::new(z[i].re().min(z[j].re()), z[i].im().min(z[j].im()));
        }
        h
    };
    match activation {
        Activation::Identity => z.to_vec(),
        Activation::Tanh => apart(&f64::tanh),
        Activation::Relu => apart(&|x| x.max(0.0)),
        Activation::LeakyRelu { slope } => apart(&|x| x.max(slope * x)),
        Activation::Oplu => ordered(&mut (0..n / 2).map(|i| (2 * i, 2 * i + 1))),
        Activation::OpluHalves => ordered(&mut (0..n / 2).map(|i| (i, i + n / 2))),
        Activation::Modrelu => (0..n)
            .map(|i| {
                let r = z[i].modulus();
                if r + bias[i] > 0.0 && r != 0.0 { z[i].scale((r + bias[i]) / r) } else { W::default() }
            })
            .collect(),
        Activation::ModreluRealrep => {
            let mut h = z.to_vec();
            for i in 0..n / 2 {
                let r = z[i].re().hypot(z[i + n / 2].re());
                let f = if r + bias[i] > 0.0 && r != 0.0 { (r + bias[i]) / r } else { 0.0 };
                (h[i], h[i + n / 2]) = (z[i].scale(f), z[i + n / 2].scale(f));
            }
            h
        }
    }
}

/// The textbook gradient of one row: z_bar and b_bar.
pub(crate) fn pull<W: Scalar<Real = f64>>(
    z: &[W],
    activation: Activation,
    bias: &[f64],
    g: &[W],
) -> (Vec<W>, Vec<f64>) {
    let n = z.len();
    let apart = |f: &dyn Fn(f64) -> f64| {
        z.iter().zip(g).map(|(z, g)| W::new(f(z.re()) * g.re(), f(z.im()) * g.im())).collect()
    };
    let ordered = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
        let mut bar = g.to_vec();
        for (i, j) in pairs {
            let choose = |a: f64, b: f64, p: f64, q: f64| if b > a { (q, p) } else { (p, q) };
            let re = choose(z[i].re(), z[j].re(), g[i].re(), g[j].re());
            let im = choose(z[i].im(), z[j].im(), g[i].im(), g[j].im());
            (bar[i], bar[j]) = (W::new(re.0, im.0), W::new(re.1, im.1));
        }
        bar
    };
    let step = |low: f64| move |x: f64| if x > 0.0 { 1.0 } else { low };
    let z_bar = match activation {
        Activation::Identity => g.to_vec(),
        Activation::Tanh => apart(&|x| 1.0 - x.tanh().powi(2)),
        Activation::Relu => apart(&step(0.0)),
        Activation::LeakyRelu { slope } => apart(&step(slope)),
        Activation::Oplu => ordered(&mut (0..n / 2).map(|i| (2 * i, 2 * i + 1))),
        Activation::OpluHalves => ordered(&mut (0..n / 2).map(|i| (i, i + n / 2))),
        Activation::Modrelu => {
            let mut b_bar = vec![0.0; n];
            let mut bar = vec![W::default(); n];
            for i in 0..n {
                let r = z[i].modulus();
                if r + bias[i] > 0.0 && r != 0.0 {
                    let e = z[i].scale(1.0 / r);
                    let along = (e.conj() * g[i]).re();
                    // b / r vanishes from the real formula: g is along e
                    let across = if W::PARTS == 1 { W::default() } else { g[i] - e.scale(along) };
                    bar[i] = g[i] + across.scale(bias[i] / r);
                    b_bar[i] = along;
                }
            }
            return (bar, b_bar);
        }
        Activation::ModreluRealrep => {
            let half = n / 2;
            let complex =
                |x: &[W]| (0..half).map(|i| c64::new(x[i].re(), x[i + half].re())).collect::<Vec<_>>();
            let (bar, b_bar) = pull(&complex(z), Activation::Modrelu, bias, &complex(g));
            let re = bar.iter().map(|x| W::real(x.re));
            return (re.chain(bar.iter().map(|x| W::real(x.im))).collect(), b_bar);
        }
    };
    (z_bar, vec![])
}

/// Every activation that is valid for rows of n elements.
pub(crate) fn all<T: Scalar>() -> Vec<Activation> {
    let names = NAMES.iter().filter(|name| T::PARTS == 1 || **name != "modrelu_realrep");
    names.map(|name| Activation::parse(name, 0.1).unwrap()).collect()
}

fn check<T: Scalar>(rows: usize, n: usize) {
    let mut random = Random::new(7);
    let mut draw = |count: usize| random.array::<T>(count, 1.0);
    let (mut z, ct) = (draw(rows * n), draw(rows * n));
    z[0] = T::default();
    let tolerance = 30.0 * T::Real::EPS.f64();
    for activation in all::<T>() {
        let units = activation.bias_units(n);
        let bias: Vec<T::Real> = draw(units).iter().map(|b| b.re() * T::Real::of(0.4)).collect();
        let given = (units > 0).then_some(&bias[..]);
        let wide: Vec<f64> = bias.iter().map(|b| b.f64()).collect();
        let mut results = vec![];
        for threads in [1, 2, 3] {
            let (mut h, mut z_bar) = (vec![T::default(); rows * n], vec![T::default(); rows * n]);
            let mut b_bar = vec![T::Real::of(0.0); units];
            activate(&z, rows, n, activation, given, &mut h, threads).unwrap();
            let wanted = (units > 0).then_some(&mut b_bar[..]);
            activate_vjp(&z, rows, n, activation, given, &ct, &mut z_bar, wanted, threads).unwrap();
            results.push((h, z_bar, b_bar));
        }
        assert!(results.iter().all(|r| *r == results[0]), "{activation:?} depends on the threads");
        let (h, z_bar, b_bar) = &results[0];
        let mut sums = vec![0.0; units];
        for r in 0..rows {
            let row = |x: &[T]| x[r * n..(r + 1) * n].iter().map(|x| x.widen()).collect::<Vec<_>>();
            let expected = value(&row(&z), activation, &wide);
            let (bar, b) = pull(&row(&z), activation, &wide, &row(&ct));
            for (got, expected) in row(h).iter().chain(&row(z_bar)).zip(expected.iter().chain(&bar)) {
                let error = (*got - *expected).modulus();
                assert!(
                    error <= tolerance * (1.0 + 50.0 * expected.modulus()),
                    "{activation:?}: {got:?} {expected:?}"
                );
            }
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += b;
            }
        }
        for (got, expected) in b_bar.iter().zip(sums) {
            assert!((got.f64() - expected).abs() <= tolerance * rows as f64, "{activation:?} bias");
        }
    }
}

#[test]
fn values_and_gradients_follow_the_table() {
    for (rows, n) in [(1, 2), (3, 6), (5, 34), (40, 70)] {
        check::<f32>(rows, n);
        check::<f64>(rows, n);
        check::<c32>(rows, n);
        check::<c64>(rows, n);
    }
}

fn tanh_is_accurate<R: Real>() {
    let mut z: Vec<R> = (-3000..3000).map(|i| R::of(f64::from(i) * 0.004)).collect();
    z.extend((0..200).map(|i| R::of(0.7f64.powi(i))));
    let mut h = vec![R::of(0.0); z.len()];
    activate(&z, 1, z.len(), Activation::Tanh, None, &mut h, 1).unwrap();
    for (z, h) in z.iter().zip(&h) {
        let expected = z.f64().tanh();
        let error = (h.f64() - expected).abs();
        assert!(error <= 4.0 * R::EPS.f64() * expected.abs() + 1e-300, "tanh {z:?} = {h:?}");
    }
    let edges: Vec<R> = [f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e30, -0.0, 0.0].map(R::of).to_vec();
    let mut h = edges.clone();
    activate(&edges, 1, 6, Activation::Tanh, None, &mut h, 1).unwrap();
    let bits = |x: R| (x.f64(), x.is_sign_negative());
    let expected = [1.0, -1.0, 1.0, -1.0, -0.0, 0.0].map(|x: f64| (x, x.is_sign_negative()));
    assert_eq!(h.iter().map(|&x| bits(x)).collect::<Vec<_>>(), expected);
}

#[test]
fn tanh_is_accurate_to_a_few_units() {
    tanh_is_accurate::<f32>();
    tanh_is_accurate::<f64>();
}

fn nan_propagates<T: Scalar>() {
    let nan = T::Real::of(f64::NAN);
    for activation in all::<T>() {
        for at in 0..4 {
            let mut z: Vec<T> = [1.0, -1.0, 2.0, -0.5].map(|x| T::real(T::Real::of(x))).to_vec();
            z[at] = T::new(nan, nan);
            let bias = vec![T::Real::of(-0.5); activation.bias_units(4)];
            let given = (!bias.is_empty()).then_some(&bias[..]);
            let ct = vec![T::one(); 4];
            let (mut h, mut z_bar) = (ct.clone(), ct.clone());
            activate(&z, 1, 4, activation, given, &mut h, 1).unwrap();
            activate_vjp(&z, 1, 4, activation, given, &ct, &mut z_bar, None, 1).unwrap();
            assert!(h[at].re().f64().is_nan(), "{activation:?} at {at}: {h:?}");
            assert!(
                z_bar[at].re().f64().is_nan() || activation == Activation::Identity,
                "{activation:?}: {z_bar:?}"
            );
        }
    }
}

#[test]
fn nan_passes_through_every_activation() {
    nan_propagates::<f32>();
    nan_propagates::<f64>();
    nan_propagates::<c32>();
    nan_propagates::<c64>();
}

#[test]
fn kinks_and_ties() {
    let z = [0.0f64, 0.0, 1.0, 1.0];
    let ct = [1.0, 2.0, 3.0, 4.0];
    let pulled = |activation, bias: Option<&[f64]>| {
        let mut z_bar = [f64::NAN; 4];
        activate_vjp(&z, 1, 4, activation, bias, &ct, &mut z_bar, None, 1).unwrap();
        z_bar
    };
    assert_eq!(pulled(Activation::Relu, None), [0.0, 0.0, 3.0, 4.0]);
    assert_eq!(pulled(Activation::LeakyRelu { slope: 0.5 }, None), [0.5, 1.0, 3.0, 4.0]);
    assert_eq!(pulled(Activation::Oplu, None), ct);
    assert_eq!(pulled(Activation::OpluHalves, None), [3.0, 4.0, 1.0, 2.0]);
    assert_eq!(pulled(Activation::Modrelu, Some(&[1.0, -1.0, -1.0, 0.0])), [0.0, 0.0, 0.0, 4.0]);
}

#[test]
fn refusals_name_the_argument() {
    let message = |result: Result<()>| result.unwrap_err().to_string();
    assert!(Activation::parse("relo", 0.1).unwrap_err().to_string().contains("relo"));
    assert!(Activation::parse("leaky_relu", 1.0).unwrap_err().to_string().contains("slope"));
    assert!(message(Activation::Oplu.check::<f32>(3, None)).contains("even"));
    assert!(message(Activation::Modrelu.check::<f32>(3, None)).contains("activation_bias"));
    assert!(message(Activation::Tanh.check::<f32>(3, Some(&[0.0; 3]))).contains("activation_bias"));
    assert!(message(Activation::ModreluRealrep.check::<c32>(4, Some(&[0.0; 2]))).contains("real"));
}
