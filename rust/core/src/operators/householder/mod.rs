//! Products of Householder reflections for any vectors u_j != 0 (docs/math/householder.md):
//!
//! ```text
//! W = H(u_0) H(u_1) ... H(u_{m-1}) E,      H(u) = I - 2 u u^H / ||u||^2,
//! W = (I - U T^-1 U^H) E,                  T = striu(U^H U) + diag(U^H U) / 2,
//! ```
//!
//! E = I, diag(1, ..., 1, s) or diag(e^{i theta}). W is unitary wherever E is. Gradients are those of every entry of U
//! (Mhammedi et al. 2017, Theorem 2); they consist of products alone and are finite for all vectors.

mod apply;
mod apply_vjp;
mod blocks;
mod cpu;
mod crowd;
mod matrix;
mod plan;
mod recover;
mod step;
mod transition;
#[cfg(test)]
mod tests;

pub(crate) use blocks::apply_keep_len;
pub use blocks::crowd;
pub use plan::plan;
pub use recover::from_matrix;

use super::last::Last;
use crate::argument;
use crate::argument::{Argument, Array, Bar, Given, all};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::{Buffer, all_zero, balance, column_norms2};
use crate::operator::{Operator, Saves};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::{check_len, size};
use crate::transition::{Route, Transition};
use num_traits::{Float, One};

/// The arguments; E is I, diag(1, ..., 1, sign) or diag(e^{i phases}).
pub const ARGUMENTS: &[Argument] = &[
    argument!("vectors", "n m"),
    argument!("sign", "", real, group "last"),
    argument!("phases", "n", angles, group "last"),
];

/// A batch of products of reflections.
#[derive(Clone, Copy, Debug)]
pub struct Householder<'a, T: Scalar> {
    vectors: &'a [T],
    last: Last<'a, T::Real>,
    batch: usize,
    n: usize,
    m: usize,
    /// Whether all entries above the diagonal are zero, as in the oRNN: that saves half of most products.
    trapezoid: bool,
}

impl<'a, T: Scalar> Householder<'a, T> {
    /// A view of vectors (batch, n, m), row-major: the columns of each matrix U are the reflection vectors.
    pub fn new(vectors: &'a [T], last: Last<'a, T::Real>, batch: usize, n: usize, m: usize) -> Result<Self> {
        check_len("vectors", vectors.len(), &[batch, n, m])?;
        last.check::<T>(batch, n)?;
        Ok(Householder { vectors, last, batch, n, m, trapezoid: false })
    }

    /// A view of [`ARGUMENTS`].
    pub fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [vectors, sign, phases] = all(given)?;
        let [batch, n, m] = vectors.sizes("vectors")?;
        Self::new(vectors.own("vectors")?, Last::of(Last::Sign, sign, phases)?, batch, n, m)
    }

    /// The first (matrix, column) that is no reflection vector: its entries are finite, but its squared norm is zero,
    /// subnormal or infinite in this precision.
    pub fn check(&self) -> Result<Option<(usize, usize)>> {
        let (n, m) = (self.n, self.m);
        if self.vectors.is_empty() {
            return Ok((self.batch > 0 && m > 0).then_some((0, 0)));
        }
        let mut room = Buffer::zeroed(m)?;
        for (b, u) in self.vectors.chunks_exact(n * m).enumerate() {
            for (j, norm) in column_norms2(u, &mut room).iter().enumerate() {
                if !norm.is_normal() && (0..n).all(|i| u[i * m + j].finite()) {
                    return Ok(Some((b, j)));
                }
            }
        }
        Ok(None)
    }

    /// Runs `f` on the operator with columns of ordinary length, its shape looked at, and turns the gradient that f wrote back
    /// to the given columns. Matrices without entries need nothing.
    fn balanced(
        &self,
        bars: &mut [Bar<'_, T>],
        f: impl FnOnce(&Householder<'_, T>, Gradients<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let Householder { vectors, last, batch, n, m, .. } = *self;
        if batch == 0 || n == 0 {
            return Ok(());
        }
        let trapezoid = trapezoidal(vectors, n, m);
        let Some(balanced) = balance(vectors, batch, n, m)? else {
            return f(&Householder { trapezoid, ..*self }, Gradients::of(bars));
        };
        let own = Householder { vectors: &balanced.vectors, last, batch, n, m, trapezoid };
        f(&own, Gradients::of(bars))?;
        if let Some(Bar::Own(bar)) = bars.first_mut() {
            balanced.pull(bar);
        }
        Ok(())
    }
}

/// Where gradients go; `None` for those that are not wanted.
#[derive(Default)]
struct Gradients<'a, T: Scalar> {
    /// (batch, n, m)
    vectors: Option<&'a mut [T]>,
    /// Of the sign (batch,) or of the phases (batch, n).
    last: Option<&'a mut [T::Real]>,
}

impl<'a, T: Scalar> Gradients<'a, T> {
    fn of(bars: &'a mut [Bar<'_, T>]) -> Self {
        let mut bars = bars.iter_mut().map(Bar::again);
        Gradients { vectors: bars.next().and_then(Bar::own), last: bars.find_map(Bar::real) }
    }
}

/// Refuses values that no product of reflections has: a sign outside [-1, 1], a vector without a direction. NaN passes.
pub fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [vectors, sign, _] = all(given)?;
    if sign.real().is_some_and(|sign| sign.iter().any(|s| s.abs() > T::Real::one())) {
        return Err(Error::value("sign", "must lie in [-1, 1]"));
    }
    if matches!(vectors.array, Array::None) {
        return Ok(());
    }
    let [batch, n, m] = vectors.sizes("vectors")?;
    match Householder::new(vectors.own("vectors")?, Last::None, batch, n, m)?.check()? {
        None => Ok(()),
        Some((b, j)) => Err(Error::value(
            "vectors",
            format!(
                "must not contain a zero reflection vector nor one whose squared norm overflows or is denormal (lengths \
                 may lie in 1.1e-19..1.8e19 in float32, in 1.5e-154..1.3e154 in float64): column {j} of matrix {b} does"
            ),
        )),
    }
}

/// Whether all entries above the diagonals of the (n, m) matrices are zero, and every column has an entry below: if m >
/// n the last ones would be zero, blocks of columns without a row.
fn trapezoidal<T: Scalar>(vectors: &[T], n: usize, m: usize) -> bool {
    let above = |(i, row): (usize, &[T])| all_zero(&row[(i + 1).min(m)..]);
    1 < m && m <= n && vectors.chunks_exact(n * m).all(|u| u.chunks_exact(m).take(m).enumerate().all(above))
}

impl<T: Scalar> Operator<T> for Householder<'_, T> {
    fn batch(&self) -> usize {
        self.batch
    }
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        if i == 0 { Array::Own(self.vectors) } else { self.last.array(i == 2) }
    }
}

impl<T: Scalar> Cpu<T> for Householder<'_, T> {
    /// T^-1 and T^-1 U^H E of every matrix: about a fifth of the time of the gradient.
    fn matrix_saves(&self) -> Result<Saves> {
        Ok(Saves::Elements(if self.crowded() { 0 } else { size("saved", &self.kept())? }))
    }

    fn matrix(&self, out: &mut [T], saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        self.check_saved(saved.as_deref(), self.matrix_saves())?;
        self.balanced(&mut [], |own, _| {
            if own.crowded() { own.crowd(out, budget.threads) } else { own.matrix_cpu(out, saved, budget.threads) }
        })
    }

    fn matrix_vjp(
        &self,
        saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_saved(saved, self.matrix_saves())?;
        self.check_bars(bars)?;
        self.balanced(bars, |own, gradients| {
            if own.crowded() {
                own.crowd_vjp(ct, gradients, budget.threads)
            } else {
                own.matrix_vjp_cpu(saved, ct, gradients, budget.threads)
            }
        })
    }

    fn transition(&self) -> Option<Transition<'_, T>> {
        Some(Transition::Own(self))
    }

    fn route(&self, steps: usize, batch: usize) -> Route {
        plan(self.m, self.n, steps, batch)
    }

    /// The whole forward pass of W x, where that pays.
    fn apply_saves(&self, rows: usize, side: Side) -> Result<Saves> {
        let pays = side == Side::Forward;
        Ok(Saves::Elements(if pays { apply_keep_len(self.n, self.m, rows, self.has_last())? } else { 0 }))
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
        self.balanced(&mut [], |own, _| match saved {
            Some(saved) => own.apply_keeping_cpu(x, rows, out, saved, budget.threads),
            None if out.is_empty() => Ok(()),
            None => own.apply_cpu(x, rows, side, out, budget.threads),
        })
    }

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
        self.balanced(bars, |own, gradients| {
            own.apply_vjp_cpu(saved, x, ct, rows, side, gradients, x_bar, budget.threads)
        })
    }
}
