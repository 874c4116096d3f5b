//! The inputs of a recurrence besides its transition, checked.

use super::super::time::timeline::Run;
use crate::activation::Activation;
use crate::error::Result;
use crate::scalar::Scalar;
use crate::sizes::check_len;
use crate::transition::{check_packs, packed};

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
        let Sequence { features, n, .. } = *self;
        self.run().check()?;
        check_len("input_weight", self.input_weight.len(), &[n, features])?;
        self.bias.map_or(Ok(()), |bias| check_len("bias", bias.len(), &[n]))?;
        if let Some(packs) = self.packs {
            let input = [n, features];
            let both = if packs.len() == packed::<T>(n, features) { &[input][..] } else { &[input, [n, n]] };
            check_packs::<T>(Some(packs), both)?;
        }
        self.activation.check::<T>(n, self.activation_bias)
    }

    pub(super) fn run(&self) -> Run<'a, T> {
        let Sequence { steps, batch, features, n, x, h0, lengths, reverse, .. } = *self;
        Run { sizes: [steps, batch, features, n], x, h0, lengths, reverse }
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
