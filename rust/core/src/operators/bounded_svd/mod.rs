//! A matrix with singular values around 1: W = U diag(sigma) V^H with U (n, r), V (k, r) and
//!
//! ```text
//! sigma_i = 1 + margin tanh(p_i / 2) = 2 margin (s_i - 1/2) + 1,      s = sigmoid(p),      0 <= margin <= 1.
//! ```
//!
//! U and V are free here: sigma are the singular values if their columns are orthonormal. Gradient from W_bar:
//!
//! ```text
//! U_bar = W_bar V diag(sigma),   V_bar = W_bar^H U diag(sigma),
//! sigma_bar_i = Re(U[:,i]^H W_bar V[:,i]),   p_bar_i = 2 margin s_i (1 - s_i) sigma_bar_i.
//! ```
//!
//! Rows go through the two thin factors, 2 (n + k) r flops each, or through W where that is cheaper for so many rows.

#[cfg(test)]
mod tests;

use crate::argument;
use crate::argument::{Argument, Array, Bar, Given, all};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::{Buffer, Matrices};
use crate::cpu::{Cpu, through_matrix};
use crate::operator::{Operator, Saves};
use crate::side::Side;
use crate::scalar::{Real, Scalar};
use crate::sizes::{check_len, size, work};
use num_traits::{Float, One, Zero};

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[
    argument!("u", "n r"),
    argument!("logits", "r", real),
    argument!("v", "k r"),
    argument!("margin", "", number),
];

/// Matrices with bounded singular values.
#[derive(Clone, Copy, Debug)]
pub struct BoundedSvd<'a, T: Scalar> {
    u: Matrices<'a, T>,
    v: Matrices<'a, T>,
    logits: &'a [T::Real],
    margin: &'a [T::Real],
}

/// Refuses margins outside 0..1; NaN passes.
pub fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [.., margin] = all::<T, 4>(given)?;
    check_margin::<T>(margin.real().unwrap_or_default())
}

fn check_margin<T: Scalar>(margin: &[T::Real]) -> Result<()> {
    let within = |x: &T::Real| !(*x < T::Real::zero() || *x > T::Real::one());
    match margin.iter().find(|x| !within(x)) {
        Some(x) => Err(Error::value("margin", format!("must lie in [0, 1], not {}", x.f64()))),
        None => Ok(()),
    }
}

/// A product that goes through r numbers per row: c = L diag(sigma) R^H x.
struct Thin<'a, T: Scalar> {
    left: Matrices<'a, T>,
    right: Matrices<'a, T>,
}

impl<'a, T: Scalar> BoundedSvd<'a, T> {
    /// A view of [`ARGUMENTS`].
    pub fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [u, logits, v, margin] = all(given)?;
        let [batch, n, r] = u.sizes("u")?;
        let [_, k, _] = v.sizes("v")?;
        let real = |given: &Given<'a, T>, name| given.real().ok_or(Error::value(name, "must be given, real"));
        let matrices = |data, p| Matrices { data, batch, p, q: r };
        let (u, v) = (matrices(u.own("u")?, n), matrices(v.own("v")?, k));
        let (logits, margin) = (real(logits, "logits")?, real(margin, "margin")?);
        if r == 0 {
            return Err(Error::shape("u", "at least one column", 0));
        }
        check_len("v", v.data.len(), &[batch, k, r])?;
        check_len("logits", logits.len(), &[batch, r])?;
        check_len("margin", margin.len(), &[batch])?;
        check_margin::<T>(margin)?;
        size("out", &[batch, n, k])?;
        Ok(BoundedSvd { u, v, logits, margin })
    }

    /// Multiplies rows (batch, rows, r) by sigma.
    fn scale(&self, rows: usize, x: &mut [T]) {
        let (r, two) = (self.u.q, T::Real::of(2.0));
        let mut sigma = vec![T::Real::zero(); r];
        let groups = self.logits.chunks_exact(r).zip(self.margin);
        for (x, (logits, margin)) in x.chunks_exact_mut((rows * r).max(1)).zip(groups) {
            for (sigma, p) in sigma.iter_mut().zip(logits) {
                *sigma = T::Real::one() + *margin * Float::tanh(*p / two);
            }
            for x in x.chunks_exact_mut(r) {
                x.iter_mut().zip(&sigma).for_each(|(x, sigma)| *x = x.scale(*sigma));
            }
        }
    }

    /// The gradient of the logits from the rows x that sigma multiplied and the cotangents of the products.
    fn pull_logits(&self, rows: usize, x: &[T], ct: &[T], bar: Option<&mut [T::Real]>) {
        let Some(bar) = bar else { return };
        let (r, one, two) = (self.u.q, T::Real::one(), T::Real::of(2.0));
        bar.fill(T::Real::zero());
        let size = (rows * r).max(1);
        for ((x, ct), bar) in x.chunks_exact(size).zip(ct.chunks_exact(size)).zip(bar.chunks_exact_mut(r)) {
            for (x, ct) in x.chunks_exact(r).zip(ct.chunks_exact(r)) {
                for ((bar, x), ct) in bar.iter_mut().zip(x).zip(ct) {
                    *bar += (x.conj() * *ct).re();
                }
            }
        }
        for ((bar, logits), margin) in bar.chunks_exact_mut(r).zip(self.logits.chunks_exact(r)).zip(self.margin) {
            for (bar, p) in bar.iter_mut().zip(logits) {
                // s (1 - s) = e / (1 + e)^2 without cancellation
                let e = Float::exp(-Float::abs(*p));
                *bar *= two * *margin * e / ((one + e) * (one + e));
            }
        }
    }

    /// Whether rows are cheaper through W.
    fn through_w(&self, rows: usize) -> bool {
        let (n, k, r) = (self.u.p, self.v.p, self.u.q);
        work(&[rows, r, n + k]) > work(&[n, k, r]).saturating_add(work(&[rows, n, k]))
    }

    fn thin(&self, side: Side) -> Thin<'a, T> {
        let (left, right) = if side == Side::Forward { (self.u, self.v) } else { (self.v, self.u) };
        Thin { left, right }
    }

    /// conj(U diag(sigma)): W is the conjugate of these rows times V^T.
    fn scaled_u(&self) -> Result<Buffer<T>> {
        let mut rows = Buffer::zeroed(self.u.data.len())?;
        rows.iter_mut().zip(self.u.data).for_each(|(x, u)| *x = u.conj());
        self.scale(self.u.p, &mut rows);
        Ok(rows)
    }
}

/// Room for the gradient of argument i, if it is wanted.
fn own<'b, T: Scalar>(bars: &'b mut [Bar<'_, T>], i: usize) -> Option<&'b mut [T]> {
    bars.get_mut(i).and_then(|bar| bar.again().own())
}

impl<T: Scalar> Operator<T> for BoundedSvd<'_, T> {
    fn batch(&self) -> usize {
        self.u.batch
    }
    fn shape(&self) -> (usize, usize) {
        (self.u.p, self.v.p)
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        match i {
            0 => Array::Own(self.u.data),
            1 => Array::Real(self.logits),
            2 => Array::Own(self.v.data),
            _ => Array::Real(self.margin),
        }
    }
}

impl<T: Scalar> Cpu<T> for BoundedSvd<'_, T> {
    fn matrix(&self, out: &mut [T], _saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        self.v.apply(&self.scaled_u()?, self.u.p, Side::Forward, out, budget.threads)?;
        conjugate(out);
        Ok(())
    }

    fn matrix_vjp(
        &self,
        _saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_bars(bars)?;
        let (n, rows) = (self.u.p, self.scaled_u()?);
        // conj(W) = rows V^T
        let mut turned = Buffer::zeroed(if T::PARTS == 2 { ct.len() } else { 0 })?;
        let turned = if T::PARTS == 2 {
            turned.iter_mut().zip(ct).for_each(|(to, ct)| *to = ct.conj());
            &turned
        } else {
            ct
        };
        let mut bar = Buffer::zeroed(rows.len())?;
        let v_bar = own(bars, 2);
        self.v.apply_vjp(&rows, turned, n, Side::Forward, v_bar, Some(&mut bar), budget.threads)?;
        conjugate(&mut bar);
        self.pull_logits(n, self.u.data, &bar, bars.get_mut(1).and_then(|bar| bar.again().real()));
        if let Some(u_bar) = own(bars, 0) {
            self.scale(n, &mut bar);
            u_bar.copy_from_slice(&bar);
        }
        Ok(())
    }

    /// W, or z = R^H x.
    fn apply_saves(&self, rows: usize, _side: Side) -> Result<Saves> {
        let (n, k) = self.shape();
        let saved = if self.through_w(rows) { [n, k] } else { [rows, self.u.q] };
        Ok(Saves::Elements(size("saved", &saved)?))
    }

    fn apply(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        self.check_saved(saved.as_deref(), self.apply_saves(rows, side))?;
        if self.through_w(rows) {
            return through_matrix::apply(self, x, rows, side, out, saved, budget);
        }
        let Thin { left, right } = self.thin(side);
        let mut z = Buffer::zeroed(work(&[self.u.batch, rows, self.u.q]))?;
        right.apply(x, rows, Side::Adjoint, &mut z, budget.threads)?;
        if let Some(saved) = saved {
            saved.copy_from_slice(&z);
        }
        self.scale(rows, &mut z);
        left.apply(&z, rows, Side::Forward, out, budget.threads)
    }

    /// z = R^H x, c = L diag(sigma) z: L from (sigma z, ct), R from (x, z_bar).
    fn apply_vjp(
        &self,
        saved: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_pull(x, ct, rows, side, x_bar.as_deref())?;
        self.check_saved(saved, self.apply_saves(rows, side))?;
        self.check_bars(bars)?;
        if self.through_w(rows) {
            return through_matrix::apply_vjp(self, saved, x, ct, rows, side, bars, x_bar, budget);
        }
        let Thin { left, right } = self.thin(side);
        let (of_left, of_right) = if side == Side::Forward { (0, 2) } else { (2, 0) };
        let (len, threads) = (work(&[self.u.batch, rows, self.u.q]), budget.threads);
        let mut again = Buffer::zeroed(if saved.is_none() { len } else { 0 })?;
        let (mut scaled, mut z_bar) = (Buffer::zeroed(len)?, Buffer::zeroed(len)?);
        if saved.is_none() {
            right.apply(x, rows, Side::Adjoint, &mut again, threads)?;
        }
        let z = saved.unwrap_or(&again);
        scaled.copy_from_slice(z);
        self.scale(rows, &mut scaled);
        left.apply_vjp(&scaled, ct, rows, Side::Forward, own(bars, of_left), Some(&mut z_bar), threads)?;
        self.pull_logits(rows, z, &z_bar, bars.get_mut(1).and_then(|bar| bar.again().real()));
        self.scale(rows, &mut z_bar);
        right.apply_vjp(x, &z_bar, rows, Side::Adjoint, own(bars, of_right), x_bar, threads)
    }
}

fn conjugate<T: Scalar>(x: &mut [T]) {
    if T::PARTS == 2 {
        x.iter_mut().for_each(|x| *x = x.conj());
    }
}
