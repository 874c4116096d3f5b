//! A step for a matrix whose small singular values are alone left: X is U_1 V_1^H of the others, to rounding. The small part
//!
//! ```text
//! B = (I - X X^H) A (I - X^H X)
//! ```
//!
//! is added as it is to X, with the norm 1. Where it is rounding errors of A, its singular vectors may be any of those that are left:
//! then U_2 V_2^H, orthonormal bases of these, by QR factorisations of random vectors among them, or of few among the others.
//!
//! If the small singular values are not clearly separated from the others, B is formed from a random matrix in place of A, which still
//! changes only the small ones.
//!
//! Rows of x are vectors x^T here.

use super::passes::{Scale, uniform};
use crate::error::Result;
use crate::kernels::{Buffer, Matrices, transposed};
use crate::linalg::{Order, Reflectors, apply, geqrf, product};
use crate::scalar::{Real, Scalar};
use crate::side::Side;
use isometry_kernels::procrustes::lifted;
use num_traits::Float;

/// ||B|| / (eps ||A||) of what is rounding errors.
const ROUNDING: f64 = 16.0;
/// Vectors by which ||B|| is estimated.
const SAMPLES: usize = 8;
/// Of X^H X, whose small eigenvalues are at most 1e-4: what is left of them is less than rounding errors.
const POWERS: usize = 4;

/// X of A, both p x q, whose small singular values are `apart` from ones or not, becomes a matrix with the same large part and without small singular values.
pub(super) fn complete<T: Scalar>(
    a: &[T],
    x: &mut [T],
    (p, q): (usize, usize),
    apart: bool,
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
    more.iter_mut().zip(a).for_each(|(to, x)| *to = scale.of(*x));
    // B of some random vectors
    let mut drawn = random(SAMPLES * q)?;
    project(&of, &mut drawn, (SAMPLES, Side::Forward), threads)?;
    let mut found = Buffer::zeroed(SAMPLES * p)?;
    Matrices { data: &more[..], ..of }.apply(&drawn, SAMPLES, Side::Forward, &mut found, threads)?;
    project(&of, &mut found, (SAMPLES, Side::Adjoint), threads)?;
    let [b, all] = [squares(&found) / (SAMPLES * T::PARTS) as f64, squares(&more) / 3.0].map(f64::sqrt);
    let rounding = b <= ROUNDING * T::Real::EPS.f64() * all;
    if !(rounding && apart) {
        if rounding {
            more = random(p * q)?;
        }
        // twice, as the rounding errors of the first time grow with it
        for _ in 0..2 {
            transposed(&more, (p, q), &mut rest);
            project(&of, &mut rest, (q, Side::Adjoint), threads)?;
            transposed(&rest, (q, p), &mut more);
            more.iter_mut().for_each(|x| *x = x.conj());
            project(&of, &mut more, (p, Side::Forward), threads)?;
            let by = T::Real::of(1.0 / squares(&more).sqrt());
            more.iter_mut().for_each(|x| *x = x.conj().scale(by));
        }
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

/// Numbers drawn from [-1, 1).
fn random<T: Scalar>(len: usize) -> Result<Buffer<T>> {
    let drawn = |at: usize| T::Real::of(2.0 * uniform(at) - 1.0);
    let mut all = Buffer::zeroed(len)?;
    all.iter_mut().enumerate().for_each(|(e, x)| *x = T::new(drawn(2 * e), drawn(2 * e + 1)));
    Ok(all)
}

/// x X^H X of these rows, or those of the other side.
fn inside<T: Scalar>(
    of: &Matrices<'_, T>,
    rows: &[T],
    (count, side): (usize, Side),
    threads: usize,
) -> Result<Buffer<T>> {
    let (_, into) = side.features((of.p, of.q));
    let (mut along, mut back) = (Buffer::zeroed(count * into)?, Buffer::zeroed(rows.len())?);
    of.apply(rows, count, side, &mut along, threads)?;
    of.apply(&along, count, side.other(), &mut back, threads)?;
    Ok(back)
}

/// Rows x <- x (I - X^H X), or those of the other side.
fn project<T: Scalar>(
    of: &Matrices<'_, T>,
    rows: &mut [T],
    sizes: (usize, Side),
    threads: usize,
) -> Result<()> {
    let back = inside(of, rows, sizes, threads)?;
    rows.iter_mut().zip(&*back).for_each(|(row, back)| *row -= *back);
    Ok(())
}

/// r orthonormal rows in the null space of X, or of X^H.
fn basis<T: Scalar>(of: &Matrices<'_, T>, r: usize, side: Side, threads: usize) -> Result<Buffer<T>> {
    let ((n, _), large) = (side.features((of.p, of.q)), of.p.min(of.q) - r);
    let few = 4 * large < n;
    let k = if few { large } else { r };
    let mut rows = random(k * n)?;
    for _ in 0..if few { POWERS } else { 0 } {
        rows = inside(of, &rows, (k, side), threads)?;
    }
    if !few {
        project(of, &mut rows, (k, side), threads)?;
    }
    let (mut columns, mut factors, mut tau) =
        (Buffer::zeroed(k * n)?, Buffer::zeroed(k * n)?, Buffer::zeroed(k)?);
    transposed(&rows, (k, n), &mut columns);
    geqrf(&columns, (1, n, k), &mut factors, &mut tau, threads)?;
    let reflectors = Reflectors::new(&factors, &tau, 1, n, k)?;
    let mut rows = Buffer::zeroed(r * n)?;
    if few {
        // what is orthogonal to the large part: the last columns of Q
        let (mut unit, mut last) = (Buffer::<T>::zeroed(r * n)?, Buffer::zeroed(r * n)?);
        (0..r).for_each(|j| unit[(n - r + j) * r + j] = T::one());
        apply(&reflectors, &unit, Order { left: true, adjoint: false, columns: r }, &mut last, threads)?;
        transposed(&last, (n, r), &mut rows);
    } else {
        product(&reflectors, &mut columns, threads)?;
        transposed(&columns, (n, r), &mut rows);
        // they still hold a part that the first projection has left, r times the rounding errors
        project(of, &mut rows, (r, side), threads)?;
    }
    Ok(rows)
}
