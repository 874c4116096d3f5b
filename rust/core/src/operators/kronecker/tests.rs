//! Against the matrix multiplied out, in double precision: values, gradients of both sides, 1, 2 and 3 threads.

use super::*;
use crate::argument::Bar;
use crate::scalar::{Real, c32, c64};
use crate::side::Side;
use crate::testing::{near, numbers};

/// W by the definition.
fn kron<T: Scalar>(factors: &[Vec<T>], sizes: &[(usize, usize)], skip: Option<usize>) -> Vec<T::Wide> {
    let (mut w, mut p, mut q) = (vec![T::one().widen()], 1, 1);
    for (f, (factor, &(r, c))) in factors.iter().zip(sizes).enumerate() {
        let mut next = vec![T::Wide::default(); p * r * q * c];
        for (i, j, a, b) in (0..p).flat_map(|i| {
            (0..q).flat_map(move |j| (0..r).flat_map(move |a| (0..c).map(move |b| (i, j, a, b))))
        }) {
            let entry = if skip == Some(f) { T::one().widen() } else { factor[a * c + b].widen() };
            next[(i * r + a) * q * c + j * c + b] = w[i * q + j] * entry;
        }
        (w, p, q) = (next, p * r, q * c);
    }
    w
}

/// The gradient of factor f from that of W, by the product rule.
fn pulled<T: Scalar>(
    factors: &[Vec<T>],
    sizes: &[(usize, usize)],
    f: usize,
    bar: &[T::Wide],
) -> Vec<T::Wide> {
    let others = kron(factors, sizes, Some(f));
    let q: usize = sizes.iter().map(|size| size.1).product();
    let (r, c) = sizes[f];
    let behind: (usize, usize) = sizes[f + 1..].iter().fold((1, 1), |(p, q), s| (p * s.0, q * s.1));
    let mut gradient = vec![T::Wide::default(); r * c];
    for (at, (bar, other)) in bar.iter().zip(&others).enumerate() {
        gradient[at / q / behind.0 % r * c + at % q / behind.1 % c] += *bar * other.conj();
    }
    gradient
}

fn check<T: Scalar>(sizes: &[(usize, usize)], rows: usize) {
    let arrays: Vec<Vec<T>> =
        sizes.iter().enumerate().map(|(f, &(p, q))| numbers(p * q, f as u64 + 1)).collect();
    let factors: Vec<Factor<'_, T>> =
        arrays.iter().zip(sizes).map(|(elements, &(p, q))| Factor { elements, p, q }).collect();
    let op = Kronecker::new(&factors, 1).unwrap();
    let (p, q) = op.shape();
    let w = kron(&arrays, sizes, None);
    let mut matrix = vec![T::default(); p * q];
    op.matrix(&mut matrix, None, &Budget::of(1)).unwrap();
    near(&matrix, &w, 100.0 * T::Real::EPS.f64(), "matrix");
    for side in [Side::Forward, Side::Adjoint] {
        let (from, into) = op.features(side);
        let (x, ct): (Vec<T>, Vec<T>) = (numbers(rows * from, 20), numbers(rows * into, 21));
        let zero = T::Wide::default();
        let (mut out, mut x_bar, mut w_bar) = (vec![zero; ct.len()], vec![zero; x.len()], vec![zero; p * q]);
        for row in 0..rows {
            for i in 0..p {
                for j in 0..q {
                    let w = w[i * q + j];
                    if side == Side::Forward {
                        let (x, ct) = (x[row * q + j].widen(), ct[row * p + i].widen());
                        out[row * p + i] += w * x;
                        x_bar[row * q + j] += w.conj() * ct;
                        w_bar[i * q + j] += ct * x.conj();
                    } else {
                        let (x, ct) = (x[row * p + i].widen(), ct[row * q + j].widen());
                        out[row * q + j] += w.conj() * x;
                        x_bar[row * p + i] += w * ct;
                        w_bar[i * q + j] += x * ct.conj();
                    }
                }
            }
        }
        let mut first = None;
        for threads in [1, 2, 3] {
            let budget = Budget::of(threads);
            let (mut a, mut b) = (vec![T::one(); ct.len()], vec![T::one(); x.len()]);
            let mut bars: Vec<Vec<T>> = arrays.iter().map(|array| vec![T::one(); array.len()]).collect();
            op.apply(&x, rows, side, &mut a, None, &budget).unwrap();
            let own: &mut Vec<_> = &mut bars.iter_mut().map(|bar| Bar::Own(bar)).collect();
            op.apply_vjp(None, &x, &ct, rows, side, own, Some(&mut b), &budget).unwrap();
            near(&a, &out, 100.0 * T::Real::EPS.f64(), "out");
            near(&b, &x_bar, 100.0 * T::Real::EPS.f64(), "x_bar");
            for (f, bar) in bars.iter().enumerate() {
                near(bar, &pulled(&arrays, sizes, f, &w_bar), 100.0 * T::Real::EPS.f64(), "factor");
            }
            let got = (a, b, bars);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{threads} threads differ");
        }
    }
    let ct: Vec<T> = numbers(p * q, 22);
    let wide: Vec<T::Wide> = ct.iter().map(|x| x.widen()).collect();
    let mut bars: Vec<Vec<T>> = arrays.iter().map(|array| vec![T::one(); array.len()]).collect();
    let own: &mut Vec<_> = &mut bars.iter_mut().map(|bar| Bar::Own(bar)).collect();
    op.matrix_vjp(None, &ct, own, &Budget::of(2)).unwrap();
    for (f, bar) in bars.iter().enumerate() {
        near(bar, &pulled(&arrays, sizes, f, &wide), 100.0 * T::Real::EPS.f64(), "factor of the matrix");
    }
}

#[test]
fn axes_equal_the_matrix() {
    fn all<T: Scalar>() {
        for sizes in [
            &[(2, 2); 7][..],
            &[(2, 3), (4, 1), (1, 2)],
            &[(5, 4)],
            &[(1, 1), (1, 3)],
            &[(3, 3), (17, 5), (2, 2)],
            &[(20, 18), (3, 2)],
            &[(2, 5), (33, 2), (3, 40)],
        ] {
            for rows in [0, 1, 7] {
                check::<T>(sizes, rows);
            }
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn bad_factors_are_refused() {
    let refused = |factors: &[Factor<'_, f64>]| Kronecker::new(factors, 1).err().unwrap().to_string();
    assert_eq!(refused(&[]), "factors must hold at least one factor");
    let empty = Factor { elements: &[], p: 0, q: 2 };
    assert!(refused(&[empty]).starts_with("factors: expected at least one row"));
    let short = Factor { elements: &[1.0], p: 2, q: 1 };
    assert_eq!(refused(&[short]), "factors: expected 2 elements, got 1");
    let wide = Factor { elements: &[1.0; 1 << 10], p: 1, q: 1 << 10 };
    assert!(refused(&[wide; 7]).starts_with("factors: expected sizes whose product fits in memory"));
}
