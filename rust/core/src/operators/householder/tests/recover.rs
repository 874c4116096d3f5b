//! [`from_matrix`] is the inverse map.

use super::*;
use crate::testing::every_type;

fn round_trip<T: Scalar>(w: &[T], n: usize, bound: f64) {
    let m = n - 1;
    let (mut vectors, mut last) =
        (vec![T::default(); n * m], vec![<T::Real as Default>::default(); if T::PARTS == 1 { 1 } else { n }]);
    from_matrix(w, 1, n, n as f64 * T::Real::EPS.f64().sqrt(), &mut vectors, &mut last, &|| false).unwrap();
    for i in 0..n {
        for j in i + 1..m {
            assert_eq!(vectors[i * m + j], T::default());
        }
    }
    for j in 0..m {
        let norm: f64 = (0..n).map(|i| vectors[i * m + j].widen().abs2()).sum();
        assert!((norm - 1.0).abs() < 8.0 * T::Real::EPS.f64() * n as f64);
    }
    let last = if T::PARTS == 1 { Last::Sign(&last) } else { Last::Phases(&last) };
    if let Last::Sign(sign) = last {
        assert_eq!(sign[0].f64().abs(), 1.0);
    }
    let mut back = vec![T::default(); n * n];
    Householder::new(&vectors, last, 1, n, m).unwrap().matrix(&mut back, None, &Budget::of(1)).unwrap();
    for (a, b) in back.iter().zip(w) {
        let off = (a.widen() - b.widen()).modulus() / T::Real::EPS.f64();
        assert!(off <= bound * n as f64, "n {n}: off by {off} eps");
    }
}

#[test]
fn recovered_reflections_give_the_matrix_back() {
    fn all<T: Scalar>() {
        for n in [1, 2, 3, 8, 33, 70].into_iter().filter(|n| within_work(&[*n, *n, *n])) {
            let vectors: Vec<T> = Random::new(n as u64).array(n * n, 1.0);
            let op = Householder::new(&vectors, Last::None, 1, n, n).unwrap();
            let mut w = vec![T::default(); n * n];
            op.matrix(&mut w, None, &Budget::of(1)).unwrap();
            round_trip(&w, n, 20.0);
            for signs in [1.0, -1.0] {
                let mut w = vec![T::default(); n * n];
                let mut shifted = w.clone();
                for i in 0..n {
                    w[i * n + i] = T::real(T::Real::of(signs));
                    shifted[i * n + (i * 3 + 1) % n] = T::real(T::Real::of(signs));
                }
                round_trip(&w, n, 20.0);
                if n % 3 != 0 {
                    round_trip(&shifted, n, 20.0);
                }
            }
            // turns of neighbouring axes by angles whose squares are subnormal numbers or none
            for tiny in [1e-20, 1e-155, 1e-160, 3e-310, 5e-324] {
                let tiny = T::real(T::Real::of(tiny));
                let mut w = vec![T::default(); n * n];
                for i in 0..n {
                    w[i * n + i] = T::one();
                    if i > 0 {
                        (w[i * n + i - 1], w[(i - 1) * n + i]) = (tiny, -tiny);
                    }
                }
                round_trip(&w, n, 20.0);
                w.rotate_left(if n > 1 { n } else { 0 });
                round_trip(&w, n, 20.0);
            }
        }
    }
    every_type!(all());
}
