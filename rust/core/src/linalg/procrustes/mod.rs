//! The nearest matrix with orthonormal columns, or rows of a wide A: the polar factor (docs/math/linalg.md)
//!
//! ```text
//! A = U S V^H,    W = U V^H.
//! ```
//!
//! Matrices of at most [`SMALL`] rows or columns are decomposed, one per lane ([`isometry_kernels::procrustes`]). Larger ones
//! are iterated by products and inverses, see [`iterate`], and so are their gradients, see [`pull`], unless they need eigenvectors, see
//! [`eigen`].

mod eigen;
mod iterate;
mod passes;
mod pull;
mod singular;
mod special;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::{check_len, work};
use isometry_kernels::lanes;
use isometry_kernels::procrustes::{Nearest, PullNearest, Sizes};
use std::sync::atomic::AtomicBool;

/// The largest min(m, n) of matrices that are decomposed.
pub const SMALL: usize = 8;

/// W of matrices a (batch, m, n). With `special` the nearest rotations: of real square matrices. A matrix that is not finite has NaN.
///
/// ```
/// let mut out = [0.0; 4];
/// isometry_core::linalg::procrustes(&[0.0, -2.0, 3.0, 0.0], (1, 2, 2), false, &mut out, 1)?;
/// let expected: [f64; 4] = [0.0, -1.0, 1.0, 0.0];
/// assert!(out.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Arrays of other lengths; `special` for complex or rectangular matrices; a matrix whose iteration does not converge; lack of memory.
pub fn procrustes<T: Scalar>(
    a: &[T],
    sizes: (usize, usize, usize),
    special: bool,
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    let (batch, m, n) = sizes;
    check_len("a", a.len(), &[batch, m, n])?;
    check_len("out", out.len(), &[batch, m, n])?;
    check_special::<T>(sizes, special)?;
    if out.is_empty() {
        return Ok(());
    }
    if m.min(n) > SMALL {
        iterate::nearest(a, sizes, out, threads)?;
        return if special { special::turn(a, (batch, n), out, threads) } else { Ok(()) };
    }
    let to = Shared(out.as_mut_ptr());
    in_groups::<T>(sizes, special, threads, |first, sizes, work| {
        let a = a[first * m * n..].as_ptr();
        // SAFETY: the arrays have these matrices; groups write disjoint ones.
        unsafe { Nearest { a, sizes, out: to.at(first * m * n), work }.call() };
    })
}

/// The gradients of matrices a (batch, m, n) from W and its cotangents. W is read above [`SMALL`] rows and columns. Terms whose
/// s_i + s_j is zero to rounding are left out: the derivative does not exist there.
///
/// ```
/// use isometry_core::linalg::procrustes_vjp;
///
/// // at A = 2 I: (C - C^T) / 4
/// let (a, w) = ([2.0f64, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 1.0]);
/// let mut a_bar = [0.0; 4];
/// procrustes_vjp((&a, &w, &[0.0, 1.0, 0.0, 0.0]), (1, 2, 2), false, &mut a_bar, 1)?;
/// assert!(a_bar.iter().zip([0.0, 0.25, -0.25, 0.0]).all(|(x, y)| (x - y).abs() < 1e-15));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`procrustes`].
pub fn procrustes_vjp<T: Scalar>(
    (a, w, ct): (&[T], &[T], &[T]),
    sizes: (usize, usize, usize),
    special: bool,
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    let (batch, m, n) = sizes;
    for (name, len) in [("a", a.len()), ("w", w.len()), ("ct", ct.len()), ("out", out.len())] {
        check_len(name, len, &[batch, m, n])?;
    }
    let small = m.min(n) <= SMALL;
    check_special::<T>(sizes, special)?;
    if out.is_empty() {
        return Ok(());
    }
    let to = Shared(out.as_mut_ptr());
    if !small {
        return pull::gradients((a, w, ct), sizes, to, threads);
    }
    in_groups::<T>(sizes, special, threads, |first, sizes, work| {
        let at = first * m * n;
        let (a, ct) = (a[at..].as_ptr(), ct[at..].as_ptr());
        // SAFETY: the arrays have these matrices; groups write disjoint ones.
        unsafe { PullNearest { a, ct, sizes, out: to.at(at), work }.call() };
    })
}

/// Runs `f(first, sizes, workspace)` for groups of matrices.
fn in_groups<T: Scalar>(
    (batch, rows, columns): (usize, usize, usize),
    special: bool,
    threads: usize,
    f: impl Fn(usize, Sizes, *mut T::Real) + Sync,
) -> Result<()> {
    let sizes = Sizes { rows, columns, count: 0, special };
    let (m, n) = (rows.max(columns), rows.min(columns));
    let own = |arena: &mut Arena| -> Region<T::Real> { arena.take(&[sizes.work::<T>(lanes::<T::Real>())]) };
    Batch::whole::<T>(batch, work(&[20, n, n, m + n])).in_groups::<T, _>(threads, own, |first, count, own| {
        f(first, Sizes { count, ..sizes }, own.ptr());
    })
}

fn check_special<T: Scalar>((_, m, n): (usize, usize, usize), special: bool) -> Result<()> {
    if special && T::PARTS == 2 {
        return Err(Error::value("special", "is of real matrices"));
    }
    if special && m != n {
        return Err(Error::value("special", "is of square matrices"));
    }
    Ok(())
}

/// An error if a matrix did not converge.
fn found(missed: AtomicBool) -> Result<()> {
    if missed.into_inner() {
        Err(Error::value("a", "has a matrix whose iteration does not converge"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
