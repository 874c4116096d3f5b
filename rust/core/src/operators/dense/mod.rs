//! Any matrix: c = W x for W of shape (p, q).

use crate::argument::{Argument, Array, Bar, Given, all, argument};
use crate::cpu::{Act, ActVjp, Cpu, Form, FormVjp};
use crate::error::Result;
use crate::kernels::Matrices;
use crate::operator::Saves;
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::check_len;
use crate::transition::Transition;

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[argument!("weight", "p q")];

/// A batch of matrices.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a, T: Scalar>(Matrices<'a, T>);

impl<'a, T: Scalar> Dense<'a, T> {
    /// A view of matrices (batch, p, q), row-major.
    ///
    /// ```
    /// use isometry_core::operators::dense::Dense;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// let w = Dense::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1, 2, 3)?;
    /// let mut y = [0.0f64; 2];
    /// w.apply(&[1.0, 0.0, -1.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert_eq!(y, [-2.0, -2.0]);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is another number of entries.
    pub fn new(weight: &'a [T], batch: usize, p: usize, q: usize) -> Result<Self> {
        check_len("weight", weight.len(), &[batch, p, q])?;
        Ok(Dense(Matrices { data: weight, batch, p, q, interleaved: false }))
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [weight] = all(given)?;
        let [batch, p, q] = weight.sizes("weight")?;
        Self::new(weight.own("weight")?, batch, p, q)
    }
}

operator! {
    Dense, |own, _i| [own.0.batch, own.0.p, own.0.q],
    Array::Own(own.0.data)
}

impl<T: Scalar> Cpu<T> for Dense<'_, T> {
    fn form(&self, Form { out, .. }: Form<'_, T>) -> Result<()> {
        out.copy_from_slice(self.0.data);
        Ok(())
    }

    fn form_vjp(&self, FormVjp { ct, bars, .. }: FormVjp<'_, '_, T>) -> Result<()> {
        if let [Bar::Own(weight)] = bars {
            weight.copy_from_slice(ct);
        }
        Ok(())
    }

    fn transition(&self) -> Option<Transition<'_, T>> {
        Some(Transition::Dense(self.0.data))
    }

    fn apply_saves(&self, _rows: usize, _side: Side) -> Result<Saves> {
        Ok(Saves::Elements(0))
    }

    fn act(&self, Act { x, rows, side, out, budget, .. }: Act<'_, T>) -> Result<()> {
        self.0.apply(x, rows, side, out, budget.threads)
    }

    fn act_vjp(&self, call: ActVjp<'_, '_, T>) -> Result<()> {
        let ActVjp { x, ct, rows, side, bars, x_bar, budget, .. } = call;
        let weight = bars.first_mut().and_then(|bar| bar.again().own());
        self.0.apply_vjp(x, ct, rows, side, weight, x_bar, budget.threads)
    }
}
