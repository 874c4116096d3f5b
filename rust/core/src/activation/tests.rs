//! Values and derivatives against the table of the module; kinks, ties and NaN are in test_recurrence.py.

use super::*;
use crate::parallel::Member;
use crate::scalar::{Real, parts};
use crate::testing::tape::{self, Var, Z, flat, leaves};
use crate::testing::{Guarded, Random, every_type, within_work};
use isometry_kernels::activation::Pass;

/// The textbook value of one row.
pub(crate) fn value(z: &[Z], activation: Activation, bias: &[Var]) -> Vec<Z> {
    let n = z.len();
    let apart = |f: &dyn Fn(Var) -> Var| z.iter().map(|z| z.apart(f)).collect();
    let kink = |slope: f64| move |x: Var| if x.value > 0.0 { x } else { x * Var::constant(slope) };
    let ordered = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
        let mut h = z.to_vec();
        let order = |a: Var, b: Var| if b.value > a.value { (b, a) } else { (a, b) };
        for (i, j) in pairs {
            let (re, im) = (order(z[i].re, z[j].re), order(z[i].im, z[j].im));
            (h[i], h[j]) = (Z { re: re.0, im: im.0 }, Z { re: re.1, im: im.1 });
        }
        h
    };
    // (r + b) / r for the length r of (x, y), or 0
    let shrink = |x: Var, y: Var, b: Var| {
        let square = x * x + y * y;
        let open = square.value > 0.0 && square.value.sqrt() + b.value > 0.0;
        let r = if open { square.sqrt() } else { Var::ONE };
        if open { (r + b) / r } else { Var::ZERO }
    };
    match activation {
        Activation::Identity => z.to_vec(),
        Activation::Tanh => apart(&Var::tanh),
        Activation::Relu => apart(&kink(0.0)),
        Activation::LeakyRelu { slope } => apart(&kink(slope)),
        Activation::Oplu => ordered(&mut (0..n / 2).map(|i| (2 * i, 2 * i + 1))),
        Activation::OpluHalves => ordered(&mut (0..n / 2).map(|i| (i, i + n / 2))),
        Activation::Modrelu => z.iter().zip(bias).map(|(z, b)| z.scale(shrink(z.re, z.im, *b))).collect(),
        Activation::ModreluRealrep => {
            let by = |i: usize| shrink(z[i].re, z[i + n / 2].re, bias[i]);
            (0..n).map(|i| z[i].scale(by(i % (n / 2)))).collect()
        }
    }
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
        let bias: Vec<Var> = wide.iter().map(|&b| Var::leaf(b)).collect();
        let all = |x: &[T]| parts(x).iter().map(|x| x.f64()).collect::<Vec<f64>>();
        let arguments = leaves(&all(&z), T::PARTS);
        let values: Vec<Z> =
            arguments.chunks_exact(n).flat_map(|row| value(row, activation, &bias)).collect();
        let cts = leaves(&all(&ct), T::PARTS);
        let pairs = values.iter().zip(&cts).flat_map(|(h, g)| [(h.re, g.re.value), (h.im, g.im.value)]);
        let bar = tape::pull(pairs);
        let expected = [flat(&values, T::PARTS, |x| x.value), flat(&arguments, T::PARTS, &bar)].concat();
        for (got, expected) in all(h).into_iter().chain(all(z_bar)).zip(expected) {
            let off = (got - expected).abs();
            assert!(off <= tolerance * (1.0 + 50.0 * expected.abs()), "{activation:?}: {got} {expected}");
        }
        let sums = bias.iter().map(|b| bar(*b));
        for (got, expected) in b_bar.iter().zip(sums) {
            assert!((got.f64() - expected).abs() <= tolerance * rows as f64, "{activation:?} bias");
        }
    }
}

#[test]
fn values_and_gradients_follow_the_table() {
    for (rows, n) in
        [(1, 2), (3, 6), (5, 34), (40, 70)].into_iter().filter(|&(rows, n)| within_work(&[rows, n]))
    {
        every_type!(check(rows, n));
    }
}

/// sigma of these numbers.
fn sigma<R: Real>(z: &[R]) -> Vec<R> {
    let mut out = Guarded::new(z.len());
    let (phi, g, from) = (sigmoid(z.len()), std::ptr::null(), Source::Argument);
    let pass =
        Pass { phi, y: z.as_ptr(), g, from, out: out.inner().as_mut_ptr(), rows: 0..1, columns: 0..z.len() };
    // SAFETY: one row of so many numbers at both addresses.
    Member::alone(|_| unsafe { pass.call() });
    out.take()
}

fn sigma_is_accurate<R: Real>(least: f64) {
    let mut z: Vec<R> = (-3001..3000).map(|i| R::of(f64::from(i) * least / 3001.0)).collect();
    z.extend((0..100).flat_map(|i| [0.7f64.powi(i), -0.7f64.powi(i)]).map(R::of));
    for (z, s) in z.iter().zip(sigma(&z)) {
        let a = (-z.f64().abs()).exp();
        let expected = if *z < R::zero() { a / (1.0 + a) } else { 1.0 / (1.0 + a) };
        let error = (s.f64() - expected).abs();
        assert!(error <= 4.0 * R::EPS.f64() * expected, "sigma {z:?} = {s:?}");
    }
    let edges = [f64::INFINITY, 1e30, -0.0, 0.0, -1e30, f64::NEG_INFINITY, -1.1 * least, f64::NAN].map(R::of);
    let values = sigma(&edges);
    assert_eq!(values[..7], [1.0, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0].map(R::of));
    assert!(values[7].is_nan());
}

#[test]
fn sigma_is_accurate_to_a_few_units_as_far_as_it_is_a_normal_number() {
    sigma_is_accurate::<f32>(87.2);
    sigma_is_accurate::<f64>(708.2);
}
