//! The gradient of the QR factorisation, the steps in reverse. For the step of column j, with A' behind it, G the cotangent of
//! A', and w = v^H A', g = v^H G (of the columns behind j),
//!
//! ```text
//! y = (1 - tau ||v||^2) w,  A = A' - tau v w,
//! v_bar = a_bar_j - tau G y^H - conj(tau) A g^H,   tau_bar_j -= y g^H,   G <- G - tau v g,
//! ```
//!
//! and the column itself, with alpha = (1 - tau) beta and x = -tau beta v,
//!
//! ```text
//! s = v^H v_bar / conj(beta tau) (below the diagonal),   b = Re(beta_bar - s + conj(tau_bar) (1 - tau) / beta),
//! alpha_bar = s - tau_bar / beta + b (1 - tau),   x_bar = -v_bar / conj(beta tau) - b tau v.
//! ```
//!
//! Where tau = 0 the column is its own factor: alpha_bar = beta_bar, x_bar = 0. A column of a matrix without full rank is a
//! rounding error after the steps before it, and its gradient is the quotient of two rounding errors. Where |v_bar / beta| exceeds max^(3/4),
//! for the largest number max, the reflection is treated as constant, v_bar = 0 and tau_bar = 0, so that products of gradients do not overflow.
//!
//! Rows may also be coordinates in vectors that are not orthonormal: then every v has a dual u, with u^H x = <v, x> for all
//! coordinates x, and products with v^H are products with u^H.

use super::rows::{Column, pause, project, spread, subtract};
use crate::dispatch::kernel;
use crate::householder::inner;
use crate::scalar::Scalar;
use num_traits::{Float, One, Zero};

/// Real numbers of workspace for m x n.
pub fn pull_work<T: Scalar>(m: usize, n: usize) -> usize {
    (2 * m + 2) * (n * T::PARTS).next_multiple_of(16) + 3 * m * T::PARTS
}

/// The gradient of A (m x n, row-major, like all of these) from the factors and their cotangents.
///
/// # Safety
/// The arrays have their sizes; `work` has the numbers of [`pull_work`].
pub struct Pull<T: Scalar> {
    /// v and R
    pub a: *const T,
    /// The duals of the vectors, where v is in `a` (null: v).
    pub dual: *const T,
    /// tau
    pub tau: *const T,
    /// The cotangent of v and R.
    pub ct: *const T,
    /// The cotangent of tau.
    pub tau_ct: *const T,
    /// The gradient.
    pub out: *mut T,
    /// The matrix itself (null: not written).
    pub before: *mut T,
    /// m
    pub m: usize,
    /// n
    pub n: usize,
    /// Workspace.
    pub work: *mut T::Real,
}

kernel!(Pull::<T>, |&Pull { a, dual, tau, ct, tau_ct, out, before, m, n, work }| {
    let (width, pitch) = (n * T::PARTS, (n * T::PARTS).next_multiple_of(S::LANES));
    let bars = work.wrapping_add(m * pitch);
    let (w, g) = (bars.wrapping_add(m * pitch), bars.wrapping_add((m + 1) * pitch));
    let v = bars.wrapping_add((m + 2) * pitch).cast::<T>();
    let v_bar = v.wrapping_add(m);
    let u = if dual.is_null() { v } else { v_bar.wrapping_add(m) };
    let root = T::Real::max_value().sqrt();
    let most = root * root.sqrt();
    // SAFETY: the arrays have their sizes; rows of `work` are whole vectors.
    unsafe {
        spread::<S>(a.cast(), width, (m, width), (work, pitch));
        spread::<S>(ct.cast(), width, (m, width), (bars, pitch));
        // R, and its cotangent
        for i in 0..m {
            for rows in [work, bars] {
                let row = rows.add(i * pitch).cast::<T>();
                (0..i.min(n)).for_each(|j| *row.add(j) = T::zero());
            }
        }
        for j in (0..m.min(n)).rev() {
            let (own_tau, len) = (*tau.add(j), m - j);
            pause(len, pitch);
            if own_tau == T::zero() {
                continue;
            }
            // columns up to j of the rows w and g are zero, so that whole vectors can be used
            let first = j + 1;
            let vectors = (first * T::PARTS / S::LANES * S::LANES, pitch);
            let (rows, rows_bar) = (work.add(j * pitch), bars.add(j * pitch));
            (*v, *u) = (T::one(), T::one());
            let mut norm2 = T::Real::one();
            for i in 1..len {
                let own = *a.add((j + i) * n + j);
                *v.add(i) = own;
                if dual.is_null() {
                    norm2 += own.abs2();
                } else {
                    *u.add(i) = *dual.add((j + i) * n + j);
                    norm2 += ((*u.add(i)).conj() * own).re();
                }
            }
            let [column, along] = [v, u].map(|v| Column { data: v.cast_const(), stride: 1, len });
            project::<T, S>(along, (rows, pitch), vectors, w);
            project::<T, S>(along, (rows_bar, pitch), vectors, g);
            for row in [w, g] {
                let row = row.cast::<T>();
                (vectors.0 / T::PARTS..first.min(pitch / T::PARTS)).for_each(|c| *row.add(c) = T::zero());
            }
            subtract::<T, S>((column, own_tau), w, (rows, pitch), vectors);
            let turn = T::one() - own_tau.scale(norm2);
            let (at, live) = (vectors.0, pitch - vectors.0);
            // G y^H = conj(turn) G w^H
            let (by_g, by_a) = (own_tau * turn.conj(), own_tau.conj());
            let (mut s, mut size) = (T::zero(), T::Real::zero());
            for i in 0..len {
                let (mut bar, own) = (T::zero(), i * pitch + at);
                if live > 0 {
                    bar -= by_g * inner::<T, S>(w.add(at), rows_bar.add(own), live);
                    bar -= by_a * inner::<T, S>(g.add(at), rows.add(own), live);
                }
                if i > 0 {
                    bar += *ct.add((j + i) * n + j);
                    s += (*u.add(i)).conj() * bar;
                }
                *v_bar.add(i) = bar;
                size += bar.re().abs() + bar.im().abs();
            }
            let mut tau_bar = *tau_ct.add(j);
            if live > 0 {
                tau_bar -= turn * inner::<T, S>(g.add(at), w.add(at), live);
            }
            subtract::<T, S>((column, own_tau), g, (rows_bar, pitch), vectors);
            let beta = (*a.add(j * n + j)).re();
            // x / conj(beta tau); the squares of a small beta may underflow, |tau| is between 1 and 2
            let (inverse, turned) = (T::Real::one() / beta, own_tau.scale(T::Real::one() / own_tau.abs2()));
            let over = |x: T| {
                if T::PARTS == 1 { x / own_tau.scale(beta) } else { (x * turned).scale(inverse) }
            };
            if (size + tau_bar.re().abs() + tau_bar.im().abs()) * inverse.abs() >= most {
                (s, tau_bar) = (T::zero(), T::zero());
                (0..len).for_each(|i| *v_bar.add(i) = T::zero());
            }
            let s = over(s);
            let (cosine, tau_over) = (T::one() - own_tau, tau_bar.scale(inverse));
            let b = (*ct.add(j * n + j)).re() - s.re() + (tau_over.conj() * cosine).re();
            let entry = |rows: *mut S::R, i: usize| rows.add(i * pitch).cast::<T>().add(j);
            *entry(rows_bar, 0) = s - tau_over + cosine.scale(b);
            *entry(rows, 0) = cosine.scale(beta);
            for i in 1..len {
                let v = *v.add(i);
                *entry(rows_bar, i) = -over(*v_bar.add(i)) - own_tau.scale(b) * v;
                *entry(rows, i) = -own_tau.scale(beta) * v;
            }
        }
        for (from, to) in [(bars, out), (work, before)].into_iter().filter(|(_, to)| !to.is_null()) {
            for i in 0..m {
                std::ptr::copy_nonoverlapping(from.add(i * pitch).cast::<T>(), to.add(i * n), n);
            }
        }
    }
});
