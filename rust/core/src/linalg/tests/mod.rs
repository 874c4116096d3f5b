//! Against factors multiplied one after another in double precision, and finite differences.

mod qr;

use super::*;
use crate::scalar::{Real, Scalar, c32, c64};
use crate::testing::{Guarded, every_type, fill, near, numbers, wide};

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

/// H_1 ... H_k of matrix b, m x m.
fn dense<T: Scalar>(of: &Reflectors<'_, T>, b: usize) -> Vec<T::Wide> {
    let Reflectors { m, k, .. } = *of;
    let (a, tau) = (wide(&of.a[b * m * k..(b + 1) * m * k]), wide(of.tau_of(b)));
    let unit = |i, j| if i == j { T::Wide::real(1.0) } else { T::Wide::default() };
    let mut q: Vec<T::Wide> = (0..m * m).map(|e| unit(e / m, e % m)).collect();
    for j in 0..k {
        let v: Vec<T::Wide> = (0..m).map(|i| if i > j { a[i * k + j] } else { unit(i, j) }).collect();
        for row in q.chunks_exact_mut(m) {
            let f = row.iter().zip(&v).map(|(x, v)| *x * *v).sum::<T::Wide>() * tau[j];
            row.iter_mut().zip(&v).for_each(|(x, v)| *x -= f * v.conj());
        }
    }
    q
}

fn tolerance<T: Scalar>(m: usize) -> f64 {
    60.0 * (m as f64).sqrt() * T::Real::EPS.f64()
}

fn product_case<T: Scalar>(sizes: (usize, usize, usize), kind: usize, threads: usize) {
    let (batch, m, k) = sizes;
    let (a, tau) = problem::<T>(sizes, kind);
    let of = Reflectors::new(&a, &tau, batch, m, k).unwrap();
    let mut out = Guarded::new(batch * m * k);
    product(&of, out.inner(), threads).unwrap();
    let out = out.take();
    for b in 0..batch {
        let q = dense(&of, b);
        let expected: Vec<_> = (0..m * k).map(|e| q[e / k * m + e % k]).collect();
        near(
            &out[b * m * k..(b + 1) * m * k],
            &expected,
            tolerance::<T>(m),
            format!("{sizes:?} {kind} {threads}"),
        );
    }
}

fn apply_case<T: Scalar>(sizes: (usize, usize, usize), columns: usize, threads: usize) {
    let (batch, m, k) = sizes;
    let (a, tau) = problem::<T>(sizes, 0);
    let of = Reflectors::new(&a, &tau, batch, m, k).unwrap();
    let x: Vec<T> = numbers(batch * m * columns, 9);
    for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut out = Guarded::new(x.len());
        apply(&of, &x, Order { left, adjoint, columns }, out.inner(), threads).unwrap();
        let out = out.take();
        for b in 0..batch {
            let (q, own) = (dense(&of, b), wide(&x[b * m * columns..(b + 1) * m * columns]));
            let entry = |i: usize, j: usize| if adjoint { q[j * m + i].conj() } else { q[i * m + j] };
            let expected: Vec<T::Wide> = (0..own.len())
                .map(|e| {
                    let (i, j) = if left { (e / columns, e % columns) } else { (e / m, e % m) };
                    (0..m)
                        .map(|p| {
                            if left {
                                entry(i, p) * own[p * columns + j]
                            } else {
                                own[i * m + p] * entry(p, j)
                            }
                        })
                        .sum()
                })
                .collect();
            let what = format!("{sizes:?} {columns} left {left} adjoint {adjoint} threads {threads}");
            near(&out[b * own.len()..(b + 1) * own.len()], &expected, tolerance::<T>(m), what);
        }
    }
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

#[test]
fn products_equal_their_factors_one_after_another() {
    for sizes in SIZES {
        for kind in 0..3 {
            for threads in [1, 3] {
                every_type!(product_case(sizes, kind, threads));
            }
        }
    }
}

#[test]
fn products_with_matrices_equal_their_factors() {
    for sizes in SIZES {
        for columns in [0, 1, 7] {
            apply_case::<f32>(sizes, columns, 1);
            apply_case::<f64>(sizes, columns, 2);
            apply_case::<c32>(sizes, columns, 3);
            apply_case::<c64>(sizes, columns, 1);
        }
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
