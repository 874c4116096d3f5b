//! The parameters of given matrices: with Z = W D^-1,  A = 2 S - I,  S = (I + Z)^-1, which exists unless Z has the
//! eigenvalue -1. All in double precision.
//!
//! D is given, or chosen (`choose`).
//!
//! Real matrices of two and three rows have a closed form, in which D is known (`super::super::recovered`).

use super::choose::greedy;
use super::triangle;
use super::workspace::{Room, Work, inverse};
use crate::cpu::Law;
use crate::error::{Error, Result};
use crate::kernels::Pivoted;
use crate::operators::recovered::{closed, recovered};
use crate::parallel::{self, cut};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Scratch, most};
use crate::sizes::{check_len, triangles, work};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Finds A, and D if `choose`, such that their transform is w (batch, n, n). `last` (batch, n) holds signs (real T) or
/// phases (complex T): read, or written if `choose`. Writes `upper` (batch, n (n - 1) / 2) and, for a complex type,
/// `diagonal` (batch, n). `cancel` is called between inverses.
///
/// ```
/// use isometry_core::operators::cayley::from_matrix;
///
/// let (quarter, mut signs, mut upper) = ([0.0, -1.0, 1.0, 0.0], [1.0, 1.0], [0.0]);
/// from_matrix(&quarter, &mut signs, false, &mut upper, None, (1, 2), 1e-8, 1, &|| false)?;
/// assert_eq!(upper, [1.0]); // A = [[0, 1], [-1, 0]]
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If some |W^H W - I| exceeds `tol`, or there is no A for the given D; arrays of other lengths; lack of memory;
/// [`Error::Interrupted`] once `cancel` says so.
pub fn from_matrix<T: Scalar>(
    w: &[T],
    last: &mut [T::Real],
    choose: bool,
    upper: &mut [T],
    diagonal: Option<&mut [T::Real]>,
    (batch, n): (usize, usize),
    tol: f64,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let name = if T::PARTS == 1 { "signs" } else { "phases" };
    check_len("w", w.len(), &[batch, n, n])?;
    check_len(name, last.len(), &[batch, n])?;
    check_len("upper", upper.len(), &triangles(batch, n))?;
    if let Some(diagonal) = &diagonal {
        check_len("diagonal", diagonal.len(), &[batch, n])?;
    }
    if w.is_empty() {
        return Ok(());
    }
    if closed::<T>(n) {
        return recovered(w, (Law::Cayley, choose), Some(last), upper, n, tol, |b, upper, det| {
            let reflection = (!choose && det < 0.0).then_some(f64::INFINITY);
            check_size::<T>(upper.iter().map(|x| x.abs()).chain(reflection), n, b)
        });
    }
    let failure = Mutex::new(None::<(usize, Error)>);
    let threads = parallel::worth(most(threads), work(&[batch, 4, n, n, n])).min(batch);
    let carve = |arena: &mut Arena| Room::<T::Wide>::carve(arena, n);
    let room = Scratch::new(|arena| arena.frames(threads, carve))?;
    let rooms = AtomicUsize::new(0);
    // the triangle may be empty, the diagonal absent
    let parts = w.chunks_exact(n * n).zip(last.chunks_exact_mut(n));
    let parts = parts.zip(cut(Some(upper), triangle::len(n), batch)).zip(cut(diagonal, n, batch));
    parallel::each(
        threads,
        parts,
        // SAFETY: each thread takes one frame; there are as many frames as threads.
        || unsafe { carve(&mut room.of(rooms.fetch_add(1, Relaxed)).arena()).work(n) },
        |work, b, (((w, last), upper), diagonal)| {
            let first = || failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            // the error of the first failing matrix is returned, so matrices after it are skipped
            if first().as_ref().is_some_and(|(first, _)| *first < b) {
                return;
            }
            for (wide, x) in work.w.iter_mut().zip(w) {
                *wide = x.widen();
            }
            let upper = upper.unwrap_or_default();
            if let Err(error) = one::<T>(work, last, choose, upper, diagonal, b, tol, cancel) {
                let mut first = first();
                if first.as_ref().is_none_or(|(first, _)| b < *first) {
                    *first = Some((b, error));
                }
            }
        },
    );
    match failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

fn one<T: Scalar>(
    work: &mut Work<'_, T::Wide>,
    last: &mut [T::Real],
    choose: bool,
    upper: &mut [T],
    diagonal: Option<&mut [T::Real]>,
    b: usize,
    tol: f64,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let n = work.n;
    // SAFETY: the workspace is used by this member only.
    unsafe { work.unitarity.check(work.w, b, tol)? };
    if choose {
        work.t.copy_from_slice(work.w);
        greedy(work.t, work.d, n);
        work.improve(cancel)?;
        for (last, d) in last.iter_mut().zip(&*work.d) {
            *last = T::Real::of(if T::PARTS == 1 { d.re() } else { d.im().atan2(d.re()) });
        }
    }
    for (d, last) in work.d.iter_mut().zip(last.iter()) {
        *d = if T::PARTS == 1 { T::Wide::real(last.f64()) } else { T::Wide::cis(last.f64()) };
    }
    // SAFETY: the workspace is used for this matrix only.
    unsafe { skew(work.w, work.d, n, work.s, work.pivoted) };
    let a = &*work.s;
    check_size::<T>(a.iter().map(|x| x.modulus()), n, b)?;
    let entry = |i: usize, j: usize| (a[i * n + j] - a[j * n + i].conj()).scale(0.5);
    let mut e = 0;
    for i in 0..n {
        for j in i + 1..n {
            upper[e] = T::narrow(entry(i, j));
            e += 1;
        }
    }
    if let Some(diagonal) = diagonal {
        for j in 0..n {
            diagonal[j] = T::Real::of(a[j * n + j].im());
        }
    }
    Ok(())
}

/// Refuses the A of matrix b, by the sizes of its entries, where it is too large or not finite.
pub(super) fn check_size<T: Scalar>(sizes: impl Iterator<Item = f64>, n: usize, b: usize) -> Result<()> {
    let largest = sizes.fold(0.0, |m, x| if x <= m { m } else { x + 0.0 * m }); // NaN persists
    if largest * n as f64 * T::Real::EPS.f64() <= 1.0 {
        return Ok(());
    }
    let name = if T::PARTS == 1 { "signs" } else { "phases" };
    let why = "has the eigenvalue -1 to working precision, so no A exists";
    Err(Error::value(name, format!("do not fit: W D^-1 of matrix {b} {why}")))
}

/// A = 2 S - I
///
/// # Safety
/// As [`inverse`].
unsafe fn skew<W: Scalar<Real = f64>>(w: &[W], d: &[W], n: usize, a: &mut [W], room: Pivoted) {
    // SAFETY: the workspace is for n x n matrices and not otherwise in use.
    unsafe { inverse(w, d, n, a, room) };
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] = a[i * n + j].scale(2.0);
        }
        a[i * n + i] -= W::one();
    }
}
