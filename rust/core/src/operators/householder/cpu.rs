//! The calls of a product of reflections on this device, all with columns of ordinary length. A file calls only those behind it:
//!
//! ```text
//! cpu -> matrix, rows -> few, apply, apply_vjp -> trail -> blocks -> block, last_factor -> hand -> the product
//! ```

use super::Householder;
use super::blocks::crowd;
use super::gradients::Gradients;
use super::trail::apply_keep_len;
use crate::argument::Bar;
use crate::cpu::{Act, ActVjp, Cpu, Form, FormVjp};
use crate::error::Result;
use crate::kernels::{all_zero, balance};
use crate::operator::Saves;
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::size;
use crate::transition::Transition;

/// Whether all entries above the diagonals of the (n, m) matrices are zero, and every column has an entry below: if m >
/// n the last ones would be zero, blocks of columns without a row.
pub(super) fn trapezoidal<T: Scalar>(vectors: &[T], n: usize, m: usize) -> bool {
    let above = |(i, row): (usize, &[T])| all_zero(&row[(i + 1).min(m)..]);
    1 < m && m <= n && vectors.chunks_exact(n * m).all(|u| u.chunks_exact(m).take(m).enumerate().all(above))
}

impl<T: Scalar> Householder<'_, T> {
    /// Runs `f` on the operator with columns scaled to ordinary length, and converts the gradient that f
    /// wrote to that of the given columns. Empty matrices need nothing.
    fn balanced(
        &self,
        bars: &mut [Bar<'_, T>],
        threads: usize,
        f: impl FnOnce(&Householder<'_, T>, Gradients<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let Householder { vectors, last, batch, n, m, .. } = *self;
        if batch == 0 || n == 0 {
            return Ok(());
        }
        let trapezoid = trapezoidal(vectors, n, m);
        let Some(balanced) = balance(vectors, [batch, n, m], threads)? else {
            return f(&Householder { trapezoid, ..*self }, Gradients::of(bars));
        };
        let own = Householder { vectors: &balanced.vectors, last, batch, n, m, trapezoid };
        f(&own, Gradients::of(bars))?;
        if let Some(Bar::Own(bar)) = bars.first_mut() {
            balanced.pull(bar);
        }
        Ok(())
    }

    /// Whether T of all columns would be inaccurate.
    fn crowded(&self) -> bool {
        self.m > crowd(self.n)
    }
}

impl<T: Scalar> Cpu<T> for Householder<'_, T> {
    /// T^-1 and T^-1 U^H E of every matrix: about a fifth of the time of the gradient.
    fn matrix_saves(&self) -> Result<Saves> {
        Ok(Saves::Elements(if self.crowded() { 0 } else { size("saved", &self.kept())? }))
    }

    fn form(&self, Form { out, saved, budget }: Form<'_, T>) -> Result<()> {
        self.balanced(&mut [], budget.threads, |own, _| {
            if own.crowded() {
                own.matrix_crowd(out, budget.threads)
            } else {
                own.matrix_whole(out, saved, budget.threads)
            }
        })
    }

    fn form_vjp(&self, FormVjp { saved, ct, bars, budget }: FormVjp<'_, '_, T>) -> Result<()> {
        self.balanced(bars, budget.threads, |own, gradients| {
            if own.crowded() {
                own.matrix_crowd_vjp(ct, gradients, budget.threads)
            } else {
                own.matrix_whole_vjp(saved, ct, gradients, budget.threads)
            }
        })
    }

    fn transition(&self) -> Option<Transition<'_, T>> {
        Some(Transition::Own(self))
    }

    /// The whole forward pass of W x, where that pays.
    fn apply_saves(&self, rows: usize, side: Side) -> Result<Saves> {
        let pays = side == Side::Forward;
        Ok(Saves::Elements(if pays { apply_keep_len(self.n, self.m, rows, self.has_last())? } else { 0 }))
    }

    fn act(&self, Act { x, rows, side, out, saved, budget }: Act<'_, T>) -> Result<()> {
        self.balanced(&mut [], budget.threads, |own, _| match saved {
            Some(saved) => own.apply_tracing(x, rows, out, saved, budget.threads),
            None if out.is_empty() => Ok(()),
            None => own.apply_rows(x, rows, side, out, budget.threads),
        })
    }

    fn act_vjp(&self, call: ActVjp<'_, '_, T>) -> Result<()> {
        let ActVjp { saved, x, ct, rows, side, bars, x_bar, budget } = call;
        self.balanced(bars, budget.threads, |own, gradients| {
            own.apply_vjp_rows(saved, [x, ct], rows, side, gradients, x_bar, budget.threads)
        })
    }
}
