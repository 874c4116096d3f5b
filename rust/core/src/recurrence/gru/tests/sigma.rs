//! The logistic function of the gates.

use super::Guarded;
use crate::activation::Source;
use crate::activation::sigmoid;
use crate::parallel::Member;
use crate::scalar::Real;
use isometry_kernels::activation::Pass;

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
