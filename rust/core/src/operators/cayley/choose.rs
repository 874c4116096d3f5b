//! The choice of D, so that no |A_ij| exceeds 1 (O'Dorney 2014; Kahan 2006): a greedy start by elimination on W + D, where
//! d_k is the sign (phase) of the diagonal entry of the Schur complement, so that |det (I + Z)| >= 1; then steps that
//! each multiply that determinant by more than 1. Multiplying the columns J of Z by 1 + c is a low-rank update,
//!
//! ```text
//! S' = S - Q_J c (I + c Q_JJ)^-1 S^J,   Q = I - S.
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

use super::workspace::{Work, inverse};
use crate::error::{Error, Result};
use crate::parallel::in_callers_mode;
use crate::scalar::Scalar;

/// How far an entry may exceed 1.
const SLACK: [f64; 2] = [1e-10, 1e-8];
/// Largest modulus of a diagonal entry of A when phases are chosen.
const DIAGONAL: f64 = 1e-10;
/// Most rounds of a sweep, Newton steps and a flip; each round raises the determinant, and a few tens suffice.
const SWEEPS: usize = 1000;

/// d_k = sign or phase of the diagonal entry of the Schur complement of W + D; +1 for 0. `m` holds W and is overwritten.
pub(super) fn greedy<W: Scalar<Real = f64>>(m: &mut [W], d: &mut [W], n: usize) {
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
    pub(super) fn improve(&mut self, cancel: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let (n, slack) = (self.n, SLACK[W::PARTS - 1]);
        for _ in 0..SWEEPS {
            if in_callers_mode(cancel) {
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
            if in_callers_mode(cancel) {
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
        // K = I + c Q_JJ; c is zero where a phase needs no turn
        let k =
            |a: usize, b: usize| c * q(s, columns[a], columns[b]) + if a == b { W::one() } else { W::zero() };
        let inverse = if columns.len() == 1 {
            [[c / k(0, 0), W::zero()], [W::zero(), W::zero()]]
        } else {
            let det = c / (k(0, 0) * k(1, 1) - k(0, 1) * k(1, 0));
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
