//! The inputs of a recurrence besides its transition, checked.

use super::super::schedule::Schedule;
use crate::activation::Activation;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::sizes::check_len;
use crate::transition::packed;

/// The inputs of a recurrence besides its transition: h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b).
#[derive(Clone, Copy)]
pub struct Sequence<'a, T: Scalar> {
    /// T
    pub steps: usize,
    /// B
    pub batch: usize,
    /// d
    pub features: usize,
    /// State size.
    pub n: usize,
    /// (T, B, d)
    pub x: &'a [T],
    /// V (n, d)
    pub input_weight: &'a [T],
    /// (B, n), zeros if absent
    pub h0: Option<&'a [T]>,
    /// b (n)
    pub bias: Option<&'a [T]>,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs, one per feature.
    pub activation_bias: Option<&'a [T::Real]>,
    /// phi acts on V x_t + b only.
    pub on_input: bool,
    /// Steps of each sequence, not increasing; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
    /// V, then a dense W, as [`pack`](super::super::pack) writes them: a forward call does not pack them again.
    pub packs: Option<&'a [T::Real]>,
}

impl<'a, T: Scalar> Sequence<'a, T> {
    /// Refuses sizes that do not fit.
    pub fn check(&self) -> Result<()> {
        let Sequence { steps, batch, features, n, .. } = *self;
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        check_len("x", self.x.len(), &[steps, batch, features])?;
        check_len("input_weight", self.input_weight.len(), &[n, features])?;
        self.h0.map_or(Ok(()), |h0| check_len("h0", h0.len(), &[batch, n]))?;
        self.bias.map_or(Ok(()), |bias| check_len("bias", bias.len(), &[n]))?;
        if let Some(packs) = self.packs {
            let sizes = [packed::<T>(n, features), packed::<T>(n, n)];
            if packs.len() != sizes[0] {
                check_len("packs", packs.len(), &[sizes[0].saturating_add(sizes[1])])?;
            }
        }
        Schedule::check(steps, batch, self.lengths)?;
        self.activation.check::<T>(n, self.activation_bias)
    }

    /// V and W where they are packed.
    pub(super) fn packed(&self) -> [Option<&'a [T::Real]>; 2] {
        let Some(packs) = self.packs else { return [None; 2] };
        let (input, weight) = packs.split_at(packed::<T>(self.n, self.features).min(packs.len()));
        [Some(input), Some(weight).filter(|weight| !weight.is_empty())]
    }

    /// T, B and n.
    pub fn sizes(&self) -> [usize; 3] {
        [self.steps, self.batch, self.n]
    }
}
