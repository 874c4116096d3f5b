//! A step for a matrix whose small singular values are alone left: X is U_1 V_1^H of the others, to rounding. The small part
//!
//! ```text
//! B = (I - X X^H) A (I - X^H X)
//! ```
//!
//! is added as it is to X, with the norm 1. Where it is rounding errors of A, its singular vectors may be any of those that are left:
//! then U_2 V_2^H, orthonormal bases of these, by QR factorisations of random vectors.
//!
//! Rows of x are vectors x^T here.

use super::passes::{Scale, uniform};
use crate::error::Result;
use crate::kernels::{Buffer, Matrices, transposed};
use crate::linalg::{Reflectors, geqrf, product};
use crate::scalar::{Real, Scalar};
use crate::side::Side;
use isometry_kernels::procrustes::lifted;
use num_traits::Float;

/// ||B|| / (eps ||A||) of what is rounding errors.
const ROUNDING: f64 = 16.0;

/// X of A, both p x q, becomes a matrix with the same large part and without small singular values.
pub(super) fn complete<T: Scalar>(
    a: &[T],
    x: &mut [T],
    (p, q): (usize, usize),
    threads: usize,
) -> Result<()> {
    let large = squares(x).round() as usize;
    let of = Matrices { data: &*x, batch: 1, p, q, interleaved: false };
    let most = |lift: bool| {
        let part = |x: T::Real| if lift { lifted(x) } else { x }.abs().f64();
        a.iter().map(|x| part(x.re()).max(part(x.im()))).fold(0.0, f64::max)
    };
    let scale = Scale::new(most);
    let (mut more, mut rest) = (Buffer::zeroed(p * q)?, Buffer::zeroed(p * q)?);
    rest.iter_mut().enumerate().for_each(|(e, to)| *to = scale.of(a[e % p * q + e / p]));
    let least = ROUNDING * T::Real::EPS.f64() * squares(&rest).sqrt();
    outside(&of, &mut rest, &mut more, threads)?;
    let size = squares(&more).sqrt();
    if size > least {
        // once more, as the rounding errors of the first time have grown with it
        let by = T::Real::of(1.0 / size);
        more.iter_mut().for_each(|x| *x = x.scale(by));
        transposed(&more, (p, q), &mut rest);
        outside(&of, &mut rest, &mut more, threads)?;
    } else {
        let r = p.min(q).saturating_sub(large);
        let [u, v] = [Side::Adjoint, Side::Forward].map(|side| basis(&of, r, side, threads));
        of.apply_vjp(&v?, &u?, r, Side::Forward, Some(&mut more), None, threads)?;
    }
    x.iter_mut().zip(&*more).for_each(|(x, more)| *x += *more);
    Ok(())
}

/// The sum of all |x|^2.
fn squares<T: Scalar>(x: &[T]) -> f64 {
    x.iter().map(|x| x.abs2().f64()).sum()
}

/// (I - X X^H) B (I - X^H X) of the transpose of B.
fn outside<T: Scalar>(of: &Matrices<'_, T>, turned: &mut [T], to: &mut [T], threads: usize) -> Result<()> {
    project(of, turned, (of.q, Side::Adjoint), threads)?;
    transposed(turned, (of.q, of.p), to);
    to.iter_mut().for_each(|x| *x = x.conj());
    project(of, to, (of.p, Side::Forward), threads)?;
    to.iter_mut().for_each(|x| *x = x.conj());
    Ok(())
}

/// Rows x <- x (I - X^H X), or those of the other side.
fn project<T: Scalar>(
    of: &Matrices<'_, T>,
    rows: &mut [T],
    (count, side): (usize, Side),
    threads: usize,
) -> Result<()> {
    let (_, into) = side.features((of.p, of.q));
    let (mut along, mut back) = (Buffer::zeroed(count * into)?, Buffer::zeroed(rows.len())?);
    of.apply(rows, count, side, &mut along, threads)?;
    of.apply(&along, count, side.other(), &mut back, threads)?;
    rows.iter_mut().zip(&*back).for_each(|(row, back)| *row -= *back);
    Ok(())
}

/// r orthonormal rows in the null space of X, or of X^H.
fn basis<T: Scalar>(of: &Matrices<'_, T>, r: usize, side: Side, threads: usize) -> Result<Buffer<T>> {
    let (n, _) = side.features((of.p, of.q));
    let room = || Buffer::<T>::zeroed(r * n);
    let (mut rows, mut columns, mut factors, mut tau) = (room()?, room()?, room()?, Buffer::zeroed(r)?);
    let drawn = |at: usize| T::Real::of(2.0 * uniform(at) - 1.0);
    rows.iter_mut().enumerate().for_each(|(e, x)| *x = T::new(drawn(2 * e), drawn(2 * e + 1)));
    project(of, &mut rows, (r, side), threads)?;
    transposed(&rows, (r, n), &mut columns);
    geqrf(&columns, (1, n, r), &mut factors, &mut tau, threads)?;
    product(&Reflectors::new(&factors, &tau, 1, n, r)?, &mut columns, threads)?;
    transposed(&columns, (n, r), &mut rows);
    // they still hold a part that the first projection has left, r times the rounding errors
    project(of, &mut rows, (r, side), threads)?;
    Ok(rows)
}
