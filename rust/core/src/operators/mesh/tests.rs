//! The table of sines and cosines.

use super::fill;
use crate::scalar::Real;

#[test]
fn sines_and_cosines_are_right_to_the_last_bits() {
    fn all<R: Real>() {
        let mut x: Vec<R> =
            (-4000..4000).map(|i| R::of(f64::from(i) * std::f64::consts::FRAC_PI_4)).collect();
        x.extend((0..4000).map(|i| R::of(f64::from(i).powi(3) * 1e-4)));
        x.extend([0.0, -0.0, 1e-30, f64::INFINITY, f64::NAN, 1e30].map(R::of));
        let mut out = vec![R::of(7.0); 2 * x.len()];
        fill(&x, &mut out);
        let (sin, cos) = out.split_at(x.len());
        for ((x, sin), cos) in x.iter().zip(sin).zip(cos) {
            let (s, c) = x.f64().sin_cos();
            if s.is_nan() {
                assert!(sin.f64().is_nan() && cos.f64().is_nan(), "{x:?}");
                continue;
            }
            let off = (sin.f64() - s).abs().max((cos.f64() - c).abs());
            assert!(off <= 1.5 * R::EPS.f64(), "{x:?}: {off:e}");
        }
    }
    all::<f32>();
    all::<f64>();
}
