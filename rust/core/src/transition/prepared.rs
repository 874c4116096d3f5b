//! The transition of one call: checked, with the arrays of its gradients, and the step that cells call.

use super::dense::DenseStep;
use super::rows::RowsStep;
use super::{Extent, Ready, Step, Transition};
use crate::argument::Bar;
use crate::error::Result;
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::rows::{self, Rows};
use crate::scalar::Scalar;
use crate::scratch::Arena;
use crate::sizes::check_len;
use std::ops::Deref;

/// What the steps of a call do with a transition.
#[derive(Clone, Copy)]
pub struct Uses<'p, R> {
    /// They multiply by W, which the caller may have packed.
    pub forward: bool,
    pub given: Option<&'p [R]>,
    /// They multiply by W^H, and sum gradients in so many halves of the batch.
    pub backward: Option<usize>,
    /// The rows of a step, and the steps.
    pub products: [usize; 2],
}

impl<'p, R> Uses<'p, R> {
    /// Those of a forward pass.
    pub fn forward(given: Option<&'p [R]>, products: [usize; 2]) -> Self {
        Uses { forward: true, given, backward: None, products }
    }

    /// Those of a backward pass.
    pub fn backward(halves: usize, products: [usize; 2]) -> Self {
        Uses { forward: false, given: None, backward: Some(halves), products }
    }
}

/// A transition of one call.
pub enum Prepared<'a, T: Scalar> {
    /// The matrix, and the array for its gradient.
    Dense(&'a [T], Option<Shared<T>>),
    /// The sums of its gradients, and a pointer to them where these are wanted.
    Rows(&'a dyn Rows<T>, Buffer<T::Real>, Option<Shared<T::Real>>),
    /// Of an object that has a step of its own.
    Own(Box<dyn Ready<T> + 'a>),
}

impl<'a, T: Scalar> Prepared<'a, T> {
    /// For a forward pass.
    pub fn forward(transition: Transition<'a, T>) -> Result<Self> {
        Ok(match transition {
            Transition::Dense(weight) => Prepared::Dense(weight, None),
            Transition::Rows(rows) => Prepared::Rows(rows, Buffer::zeroed(0)?, None),
            Transition::Own(own) => Prepared::Own(own.ready(None)?),
        })
    }

    /// For a backward pass that fills `bars`, which have passed the check of the operator.
    pub fn backward(transition: Transition<'a, T>, bars: &mut [Bar<'_, T>]) -> Result<Self> {
        Ok(match transition {
            Transition::Dense(weight) => {
                let bar = bars.first_mut().and_then(|bar| bar.again().own());
                bar.as_ref().map_or(Ok(()), |bar| check_len("weight_bar", bar.len(), &[weight.len()]))?;
                Prepared::Dense(weight, bar.map(|bar| Shared(bar.as_mut_ptr())))
            }
            Transition::Rows(rows) => {
                rows.check_bars(bars)?;
                let any = bars.iter().any(|bar| !matches!(bar, Bar::None));
                let mut sums = Buffer::zeroed(rows.sums())?;
                let bar = any.then(|| Shared(sums.as_mut_ptr()));
                Prepared::Rows(rows, sums, bar)
            }
            Transition::Own(own) => {
                own.check_bars(bars)?;
                Prepared::Own(own.ready(Some(bars))?)
            }
        })
    }

    /// The number of halves of the batch in which it sums gradients, where the cell has so many.
    pub fn halves(&self, halves: usize) -> usize {
        if matches!(self, Prepared::Dense(..)) { halves } else { 1 }
    }

    /// Its step for n states.
    pub fn carve<'s>(
        &'s self,
        arena: &mut Arena,
        n: usize,
        extent: Extent,
        uses: Uses<'_, T::Real>,
    ) -> TransitionStep<'s, T> {
        match self {
            Prepared::Dense(weight, bar) => {
                TransitionStep::Dense(DenseStep::carve(arena, (n, n), weight, *bar, uses))
            }
            Prepared::Rows(rows, _, bar) => {
                let bar = bar.zip(uses.backward);
                TransitionStep::Rows(RowsStep::carve(arena, *rows, extent, bar))
            }
            Prepared::Own(own) => TransitionStep::Own(own.carve(arena, extent)),
        }
    }

    /// Completes the gradients after the step has finished them.
    pub fn finish(self, bars: &mut [Bar<'_, T>]) -> Result<()> {
        match self {
            Prepared::Dense(..) => Ok(()),
            Prepared::Rows(rows, mut sums, _) => rows::deal(rows, &mut sums, bars),
            Prepared::Own(own) => {
                own.finish(bars);
                Ok(())
            }
        }
    }
}

/// The step of a [`Prepared`] transition.
pub enum TransitionStep<'s, T: Scalar> {
    Dense(DenseStep<'s, T>),
    Rows(RowsStep<'s, T>),
    Own(Box<dyn Step<T> + 's>),
}

impl<'s, T: Scalar> Deref for TransitionStep<'s, T> {
    type Target = dyn Step<T> + 's;
    fn deref(&self) -> &Self::Target {
        match self {
            TransitionStep::Dense(step) => step,
            TransitionStep::Rows(step) => step,
            TransitionStep::Own(step) => &**step,
        }
    }
}
