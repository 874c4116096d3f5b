//! The gradients of the affine cell besides those of the transition.

use super::Sequence;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::sizes::check_len;

/// The arrays for the gradients, each fully overwritten; None where one is not wanted.
#[derive(Default)]
pub struct Gradients<'a, T: Scalar> {
    /// (T, B, d)
    pub x: Option<&'a mut [T]>,
    /// (n, d)
    pub input_weight: Option<&'a mut [T]>,
    /// (B, n)
    pub h0: Option<&'a mut [T]>,
    /// (n)
    pub bias: Option<&'a mut [T]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [T::Real]>,
}

impl<T: Scalar> Gradients<'_, T> {
    /// Refuses sizes that do not fit the sequence.
    pub fn check(&self, sequence: &Sequence<'_, T>) -> Result<()> {
        let Sequence { steps, batch, features, n, .. } = *sequence;
        let units = sequence.activation.bias_units(n);
        let sizes = [
            ("x_bar", self.x.as_ref().map(|bar| bar.len()), &[steps, batch, features][..]),
            ("input_weight_bar", self.input_weight.as_ref().map(|bar| bar.len()), &[n, features]),
            ("h0_bar", self.h0.as_ref().map(|bar| bar.len()), &[batch, n]),
            ("bias_bar", self.bias.as_ref().map(|bar| bar.len()), &[n]),
            ("activation_bias_bar", self.activation_bias.as_ref().map(|bar| bar.len()), &[units]),
        ];
        for (name, got, expected) in sizes {
            if let Some(got) = got {
                check_len(name, got, expected)?;
            }
        }
        if self.activation_bias.is_some() && units == 0 {
            return Err(Error::value("activation_bias_bar", "belongs to modrelu and modrelu_realrep only"));
        }
        Ok(())
    }

    pub(super) fn wants(&self) -> Wants {
        let Gradients { x, input_weight, bias, activation_bias, .. } = self;
        [x.is_some(), input_weight.is_some(), bias.is_some(), activation_bias.is_some()]
    }
}

/// Which of [`Gradients`] are wanted: x, input_weight, bias, activation_bias.
pub(super) type Wants = [bool; 4];
