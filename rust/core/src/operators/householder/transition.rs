//! A product of reflections as W of a recurrence: the step, with vectors scaled to ordinary length.

use super::Householder;
use super::step::{ReflectionStep, StepBars};
use crate::argument::Bar;
use crate::error::Result;
use crate::kernels::{Balanced, balance};
use crate::scalar::Scalar;
use crate::scratch::Arena;
use crate::transition::{Extent, OwnStep, Ready, Step};

/// A product of one call.
struct Call<'a, T: Scalar> {
    of: Householder<'a, T>,
    /// The scaled vectors, if some were of extreme length.
    balanced: Option<Balanced<T>>,
    /// Of a backward pass.
    bars: Option<StepBars<T>>,
}

impl<T: Scalar> OwnStep<T> for Householder<'_, T> {
    fn ready<'s>(&'s self, bars: Option<&mut [Bar<'_, T>]>) -> Result<Box<dyn Ready<T> + 's>> {
        let balanced = balance(self.vectors, [1, self.n, self.m], 1)?;
        Ok(Box::new(Call { of: *self, balanced, bars: bars.map(|bars| StepBars::new(self, bars)) }))
    }
}

impl<T: Scalar> Ready<T> for Call<'_, T> {
    fn carve<'s>(&'s self, arena: &mut Arena, extent: Extent) -> Box<dyn Step<T> + 's> {
        let vectors = self.balanced.as_ref().map_or(self.of.vectors, |balanced| &balanced.vectors);
        Box::new(ReflectionStep::carve(arena, Householder { vectors, ..self.of }, extent, self.bars))
    }

    fn finish(&self, bars: &mut [Bar<'_, T>]) {
        if let (Some(balanced), Some(Bar::Own(bar))) = (&self.balanced, bars.first_mut()) {
            balanced.pull(bar);
        }
    }
}
