//! Products with Q and their gradients, compared with one another and with finite differences; tests/test_linalg.py compares Q.

mod qr;

use super::*;
use crate::scalar::{Real, Scalar, c64};
use crate::testing::{Guarded, every_type, fill, near, numbers, wide, written};

const SIZES: [(usize, usize, usize); 9] =
    [(2, 1, 1), (1, 5, 1), (2, 5, 3), (3, 4, 4), (1, 4, 0), (2, 33, 20), (1, 70, 66), (2, 90, 70), (0, 3, 2)];

/// tau of each kind: any numbers, zero, or tau ||v||^2 = 1.
fn problem<T: Scalar>((batch, m, k): (usize, usize, usize), kind: usize) -> (Vec<T>, Vec<T>) {
    let a: Vec<T> = fill(batch * m * k, 1.0 / (m as f64).sqrt(), 3);
    let mut tau: Vec<T> = fill(batch * k, 1.5, 5);
    for b in 0..batch {
        for j in 0..k {
            let below = (j + 1..m).map(|i| a[(b * m + i) * k + j].abs2().f64()).sum::<f64>();
            let projector = T::real(T::Real::of(1.0 / (1.0 + below)));
            let at = &mut tau[b * k + j];
            *at = [*at, T::zero(), projector][kind];
        }
    }
    (a, tau)
}

/// Re tr(C^H F) for a direction.
fn dot<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    wide(x).iter().zip(wide(y)).map(|(x, y)| (x.conj() * y).re()).sum()
}

/// a + h da, elementwise.
fn moved<T: Scalar>(x: &[T], by: &[T], h: f64) -> Vec<T> {
    x.iter().zip(by).map(|(x, by)| *x + by.scale(T::Real::of(h))).collect()
}

/// A derivative against the central difference of a function.
fn agrees(found: f64, value: impl Fn(f64) -> f64, h: f64, tolerance: f64, what: &str) {
    let expected = (value(h) - value(-h)) / (2.0 * h);
    let size = 1.0 + expected.abs() + found.abs();
    assert!((found - expected).abs() <= tolerance * size, "{what}: {found} {expected}");
}

/// Along random directions, the difference of Re tr(C^H f) against the gradients, of the product or of its application in an order.
fn gradient<T: Scalar>(sizes: (usize, usize, usize), order: Option<Order>, kind: usize, threads: usize) {
    let (batch, m, k) = sizes;
    let (a, tau) = problem::<T>(sizes, kind);
    let x: Vec<T> = numbers(order.map_or(0, |order| batch * m * order.columns), 9);
    let ct: Vec<T> = numbers(if order.is_some() { x.len() } else { a.len() }, 7);
    let mut bars = [a.len(), tau.len(), x.len()].map(Guarded::new);
    let [a_bar, tau_bar, x_bar] = bars.each_mut().map(Guarded::inner);
    let of = Reflectors::new(&a, &tau, batch, m, k).unwrap();
    match order {
        None => product_vjp(&of, &ct, a_bar, tau_bar, threads).unwrap(),
        Some(order) => {
            let own = Bars { reflectors: Some((a_bar, tau_bar)), x: Some(x_bar) };
            apply_vjp(&of, &x, &ct, order, own, threads).unwrap();
            // one part alone is the same
            let mut alone = Guarded::new(x.len());
            let own = Bars { reflectors: None, x: Some(alone.inner()) };
            apply_vjp(&of, &x, &ct, order, own, threads).unwrap();
            assert_eq!(alone.read(), bars[2].read());
        }
    }
    let ways: [Vec<T>; 3] =
        [(a.len(), 21), (tau.len(), 22), (x.len(), 23)].map(|(len, seed)| numbers(len, seed));
    let value = |h: f64| {
        let [a, tau, x] = [(&a, 0), (&tau, 1), (&x, 2)].map(|(x, i)| moved(x, &ways[i], h));
        let (of, mut out) = (Reflectors::new(&a, &tau, batch, m, k).unwrap(), vec![T::zero(); ct.len()]);
        match order {
            None => product(&of, &mut out, threads).unwrap(),
            Some(order) => apply(&of, &x, order, &mut out, threads).unwrap(),
        }
        dot(&ct, &out)
    };
    let found = bars.iter().zip(&ways).map(|(bar, way)| dot(bar.read(), way)).sum();
    agrees(found, value, 1e-5, 1e-6, &format!("{sizes:?} {order:?} {kind}"));
}

/// Q is Q I, and <C, Q X> = <Q^H C, X>, from both sides.
fn products<T: Scalar>(sizes: (usize, usize, usize), kind: usize) {
    let (batch, m, k) = sizes;
    let (a, tau) = problem::<T>(sizes, kind);
    let of = Reflectors::new(&a, &tau, batch, m, k).unwrap();
    let applied = |x: &[T], (left, adjoint, columns): (bool, bool, usize)| {
        let order = Order { left, adjoint, columns };
        written(x.len(), format!("{sizes:?} {order:?}"), |out, threads| apply(&of, x, order, out, threads))
    };
    let tolerance = 60.0 * (m as f64).sqrt() * T::Real::EPS.f64();
    let units: Vec<T> =
        (0..batch * m * k).map(|at| if at / k % m == at % k { T::one() } else { T::zero() }).collect();
    let q = written(units.len(), format!("{sizes:?}"), |out, threads| product(&of, out, threads));
    near(&q, &wide(&applied(&units, (true, false, k))), tolerance, format!("{sizes:?} {kind}"));
    for (columns, left) in [0, 1, 7].into_iter().flat_map(|columns| [true, false].map(|left| (columns, left)))
    {
        let [x, ct]: [Vec<T>; 2] = [9, 10].map(|seed| numbers(batch * m * columns, seed));
        let [y, x_bar] = [(&x, false), (&ct, true)].map(|(x, adjoint)| applied(x, (left, adjoint, columns)));
        let (one, other) = (dot(&ct, &y), dot(&x_bar, &x));
        let most = tolerance * (dot(&ct, &ct) * dot(&y, &y)).sqrt();
        assert!((one - other).abs() <= most, "{sizes:?} {kind} {columns} left {left}: {one} {other}");
    }
}

#[test]
fn products_are_those_of_one_matrix() {
    for (sizes, kind) in SIZES.into_iter().flat_map(|sizes| [0, 1, 2].map(|kind| (sizes, kind))) {
        every_type!(products(sizes, kind));
    }
}

#[test]
fn gradients_are_the_differences_also_where_a_factor_is_singular() {
    for sizes in SIZES {
        for kind in 0..3 {
            for threads in [1, 2] {
                gradient::<f64>(sizes, None, kind, threads);
                gradient::<c64>(sizes, None, kind, threads);
            }
            for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
                for columns in [1, 6] {
                    gradient::<f64>(sizes, Some(Order { left, adjoint, columns }), kind, 2);
                    gradient::<c64>(sizes, Some(Order { left, adjoint, columns }), kind, 2);
                }
            }
        }
    }
}
