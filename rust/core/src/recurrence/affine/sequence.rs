//! The inputs of a recurrence besides its transition, checked.

use super::super::call::Call;
use super::super::time::timeline::Run;
use super::ARGUMENTS;
use crate::argument::{Array, Bar, check_bars};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::sizes::check_len;
use crate::transition::{check_packs, packed};

/// The inputs of a recurrence besides its transition: h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b).
#[derive(Clone, Copy)]
pub struct Sequence<'a, T: Scalar> {
    /// What every cell has; `packs` are V, then a dense W.
    pub run: Run<'a, T>,
    /// V (n, d)
    pub input_weight: &'a [T],
    /// b (n)
    pub bias: Option<&'a [T]>,
    /// phi acts on V x_t + b only.
    pub on_input: bool,
}

impl<'a, T: Scalar> Sequence<'a, T> {
    /// From a call.
    #[doc(hidden)]
    pub fn of(call: &Call<'a, T>) -> Result<Self> {
        let [_, input_weight, _, bias] = call.arrays();
        let input_weight = input_weight.unwrap_or(&[]);
        Ok(Sequence { run: call.run()?, input_weight, bias, on_input: call.flag(0) })
    }

    /// Refuses sizes that do not fit.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        let Run { features, n, .. } = self.run;
        self.run.check()?;
        check_len("input_weight", self.input_weight.len(), &[n, features])?;
        self.bias.map_or(Ok(()), |bias| check_len("bias", bias.len(), &[n]))?;
        if let Some(packs) = self.run.packs {
            let input = [n, features];
            let both = if packs.len() == packed::<T>(n, features) { &[input][..] } else { &[input, [n, n]] };
            check_packs::<T>(Some(packs), both)?;
        }
        Ok(())
    }

    /// Refuses gradients that do not fit the arguments.
    #[doc(hidden)]
    pub fn check_bars(&self, bars: &[Bar<'_, T>]) -> Result<()> {
        let Run { x, h0, activation_bias, starts, .. } = self.run;
        let state = starts.and_then(|starts| starts.state);
        let [x, weight, h0, bias, state] =
            [Some(x), Some(self.input_weight), h0, self.bias, state].map(Array::own);
        let held = [x, weight, h0, bias, Array::real(activation_bias), state];
        check_bars(ARGUMENTS, |i| held[i], bars)
    }

    /// V and W where they are packed.
    pub(super) fn packed(&self) -> [Option<&'a [T::Real]>; 2] {
        let Some(packs) = self.run.packs else { return [None; 2] };
        let (input, weight) = packs.split_at(packed::<T>(self.run.n, self.run.features).min(packs.len()));
        [Some(input), Some(weight).filter(|weight| !weight.is_empty())]
    }
}
