//! The parameters of given matrices: with Z = W D^-1,  A = 2 S - I,  S = (I + Z)^-1, which exists unless Z has the
//! eigenvalue -1. All in double precision.
//!
//! D is chosen so that no |A_ij| exceeds 1 (O'Dorney 2014; Kahan 2006): a greedy start by elimination on W + D, where
//! d_k is the sign (phase) of the diagonal entry of the Schur complement, so that |det (I + Z)| >= 1; then steps that
//! each multiply that determinant by more than 1. Multiplying the columns J of Z by 1 + c is a low-rank update,
//!
//! ```text
//! S' = S - Q_J (c^-1 I + Q_JJ)^-1 S^J,   Q = I - S.
//! ```
//!
//! * flips of d_i and d_j (c = -2), factor |A_ij|^2, for the largest |A_ij| > 1
//! * complex: theta_j <- theta_j - 2 atan(Im A_jj) (c = e^{2 i atan} - 1), factor |1 + A_jj|, for each j in turn. This
//!   alone would need hundreds of sweeps, so Newton's method, damped by lambda, takes over (some tens of inverses): with
//!   S + S^H = I,
//!
//! ```text
//! d log|det (I + Z)| / d theta_j = -Im S_jj,   d^2 / d theta_j d theta_k = -|S_jk|^2,
//! theta <- theta - (|S|^2 + lambda I)^-1 Im diag S.
//! ```
//!
//! Real matrices of two and three rows have a closed form, in which D is known (`super::super::recovered`).

use super::triangle;
use crate::cpu::Law;
use crate::error::{Error, Result};
use crate::kernels::{Pivoted, Unitarity};
use crate::operators::recovered::{closed, recovered};
use crate::parallel::{self, cut};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region, Scratch, most};
use crate::sizes::{check_len, triangles, work};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How far an entry may exceed 1.
const SLACK: [f64; 2] = [1e-10, 1e-8];
/// Largest modulus of a diagonal entry of A when phases are chosen.
const DIAGONAL: f64 = 1e-10;
/// Most rounds of a sweep, Newton steps and a flip; each round raises the determinant, and a few tens suffice.
const SWEEPS: usize = 1000;

/// Finds A, and D if `choose`, such that their transform is w (batch, n, n). `last` (batch, n) holds signs (real T) or
/// phases (complex T): read, or written if `choose`. Writes `upper` (batch, n (n - 1) / 2) and, for a complex type,
/// `diagonal` (batch, n). `cancel` is called between inverses. Returns an error if some |W^H W - I| exceeds `tol`, or if
/// there is no A for the given D.
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

/// Memory of one member.
struct Room<W: Scalar<Real = f64>> {
    matrices: [Region<W>; 3],
    rows: [Region<W>; 4],
    curvature: Region<f64>,
    unitarity: Unitarity<W>,
    pivoted: Pivoted,
}

/// Workspace of one matrix: W and D, S and the next S, the next D, two rows, and the curvature of log|det (I + Z)|.
struct Work<'a, W: Scalar<Real = f64>> {
    n: usize,
    w: &'a mut [W],
    d: &'a mut [W],
    s: &'a mut [W],
    t: &'a mut [W],
    next: &'a mut [W],
    rows: [&'a mut [W]; 2],
    curvature: &'a mut [f64],
    unitarity: Unitarity<W>,
    pivoted: Pivoted,
}

impl<W: Scalar<Real = f64>> Room<W> {
    fn carve(arena: &mut Arena, n: usize) -> Self {
        Room {
            matrices: [(); 3].map(|()| arena.take(&[n, n])),
            rows: [(); 4].map(|()| arena.take(&[n])),
            curvature: arena.take(&[W::PARTS - 1, n, n]),
            unitarity: Unitarity::carve(arena, n),
            pivoted: Pivoted::carve::<W>(arena, n),
        }
    }

    /// # Safety
    /// The memory is alive for 'a, and not otherwise in use.
    unsafe fn work<'a>(self, n: usize) -> Work<'a, W> {
        // SAFETY: the contract above; the regions are disjoint.
        unsafe {
            let [w, s, t] = self.matrices.map(|region| region.zeroed());
            let [d, next, first, second] = self.rows.map(|region| region.zeroed());
            let (rows, curvature) = ([first, second], self.curvature.zeroed());
            Work { n, w, d, s, t, next, rows, curvature, unitarity: self.unitarity, pivoted: self.pivoted }
        }
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

/// S = (I + W D^-1)^-1; returns log |det (I + W D^-1)|.
///
/// # Safety
/// The workspace is for n x n matrices, and not otherwise in use.
unsafe fn inverse<W: Scalar<Real = f64>>(w: &[W], d: &[W], n: usize, s: &mut [W], room: Pivoted) -> f64 {
    s.copy_from_slice(w);
    for i in 0..n {
        for j in 0..n {
            s[i * n + j] *= d[j].conj();
        }
        s[i * n + i] += W::one();
    }
    // SAFETY: the workspace is for n x n matrices and not otherwise in use.
    unsafe { room.invert(s, n) }
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

/// d_k = sign or phase of the diagonal entry of the Schur complement of W + D; +1 for 0. `m` holds W and is overwritten.
fn greedy<W: Scalar<Real = f64>>(m: &mut [W], d: &mut [W], n: usize) {
    for k in 0..n {
        let pivot = m[k * n + k];
        let size = pivot.modulus();
        d[k] = if size == 0.0 {
            W::one()
        } else if W::PARTS == 1 {
            W::real(pivot.re().signum())
        } else {
            pivot.scale(1.0 / size)
        };
        let pivot = pivot + d[k];
        let (above, below) = m.split_at_mut((k + 1) * n);
        let row = &above[k * n..];
        for x in below.chunks_exact_mut(n) {
            let f = x[k] / pivot;
            for j in k + 1..n {
                x[j] -= f * row[j];
            }
        }
    }
}

/// max |Im A_jj|
fn phases_off<W: Scalar<Real = f64>>(s: &[W], n: usize) -> f64 {
    s.iter().step_by(n + 1).map(|x| 2.0 * x.im().abs()).fold(0.0, f64::max)
}

/// Position of the largest |A_ij| = 2 |S_ij| above the diagonal, the first of equal ones, if it exceeds 1 + slack.
fn largest<W: Scalar<Real = f64>>(s: &[W], n: usize, slack: f64) -> Option<(usize, usize)> {
    let (mut at, mut most) = (None, 1.0 + slack);
    for i in 0..n {
        for j in i + 1..n {
            let size = 2.0 * s[i * n + j].modulus();
            if size > most {
                (at, most) = (Some((i, j)), size);
            }
        }
    }
    at
}

impl<W: Scalar<Real = f64>> Work<'_, W> {
    /// Iterates until no |A_ij| exceeds 1 + slack and, for phases, the diagonal of A is zero.
    fn improve(&mut self, cancel: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let (n, slack) = (self.n, SLACK[W::PARTS - 1]);
        for _ in 0..SWEEPS {
            if cancel() {
                return Err(Error::Interrupted);
            }
            // SAFETY: the workspace is used for this matrix only.
            unsafe { inverse(self.w, self.d, n, self.s, self.pivoted) };
            let mut moved = false;
            if W::PARTS == 2 && phases_off(self.s, n) > DIAGONAL {
                for j in 0..n {
                    let turn = W::cis(-2.0 * (2.0 * self.s[j * n + j].im()).atan());
                    self.d[j] *= turn;
                    self.scale_columns(&[j], turn.conj() - W::one());
                }
                self.newton(cancel)?;
                continue;
            }
            // at most n flips before S is recomputed
            for _ in 0..n {
                let Some((i, j)) = largest(self.s, n, slack) else { break };
                for k in [i, j] {
                    self.d[k] = -self.d[k];
                }
                self.scale_columns(&[i, j], W::real(-2.0));
                moved = true;
                if W::PARTS == 2 {
                    break;
                }
            }
            if !moved {
                break;
            }
        }
        Ok(())
    }

    /// Damped Newton steps on the phases, each of which raises the determinant or, where that is flat to working
    /// precision, reduces the diagonal of A.
    fn newton(&mut self, cancel: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let n = self.n;
        // SAFETY: the workspace is used for this matrix only.
        let mut log = unsafe { inverse(self.w, self.d, n, self.s, self.pivoted) };
        let mut off = phases_off(self.s, n);
        let mut damping = 1e-3;
        while off > DIAGONAL && damping < 1e6 {
            if cancel() {
                return Err(Error::Interrupted);
            }
            for (curvature, x) in self.curvature.iter_mut().zip(&*self.s) {
                *curvature = x.modulus().powi(2);
            }
            for j in 0..n {
                self.curvature[j * n + j] += damping;
            }
            // SAFETY: the workspace is used for this matrix only.
            unsafe { self.pivoted.invert(self.curvature, n) };
            let s = &*self.s;
            let step = |row: &[f64]| -> f64 { (0..n).map(|k| -row[k] * s[k * n + k].im()).sum() };
            for ((next, &d), row) in self.next.iter_mut().zip(&*self.d).zip(self.curvature.chunks_exact(n)) {
                *next = d * W::cis(step(row));
            }
            if !self.next.iter().all(|x| x.modulus().is_finite()) {
                damping *= 8.0;
                continue;
            }
            // SAFETY: the workspace is used for this matrix only.
            let height = unsafe { inverse(self.w, self.next, n, self.t, self.pivoted) };
            let (left, flat) = (phases_off(self.t, n), 1e-13 * n as f64);
            if height > log + flat || (height > log - flat && left < off) {
                self.d.copy_from_slice(self.next);
                std::mem::swap(&mut self.s, &mut self.t);
                (log, off) = (height, left);
                damping = (damping / 8.0).max(1e-12);
            } else {
                damping *= 8.0;
            }
        }
        Ok(())
    }

    /// Updates S for columns J (one or two) of Z multiplied by 1 + c.
    fn scale_columns(&mut self, columns: &[usize], c: W) {
        let (n, s) = (self.n, &mut *self.s);
        for (row, &j) in self.rows.iter_mut().zip(columns) {
            row.copy_from_slice(&s[j * n..(j + 1) * n]);
        }
        let q = |s: &[W], i: usize, j: usize| if i == j { W::one() - s[i * n + j] } else { -s[i * n + j] };
        // K = (c^-1 I + Q_JJ)^-1
        let k =
            |a: usize, b: usize| q(s, columns[a], columns[b]) + if a == b { W::one() / c } else { W::zero() };
        let inverse = if columns.len() == 1 {
            [[W::one() / k(0, 0), W::zero()], [W::zero(), W::zero()]]
        } else {
            let det = W::one() / (k(0, 0) * k(1, 1) - k(0, 1) * k(1, 0));
            [[k(1, 1) * det, -k(0, 1) * det], [-k(1, 0) * det, k(0, 0) * det]]
        };
        for i in 0..n {
            let mut f = [W::zero(); 2];
            for (b, f) in f.iter_mut().enumerate().take(columns.len()) {
                for (a, &column) in columns.iter().enumerate() {
                    *f += q(s, i, column) * inverse[a][b];
                }
            }
            for (f, row) in f.iter().zip(&self.rows).take(columns.len()) {
                for j in 0..n {
                    s[i * n + j] -= *f * row[j];
                }
            }
        }
    }
}
