//! The gradients of the affine cell besides those of the transition.

use super::super::driver::ends::{Cotangent, CtRows};
use super::super::parts::gradients::{check, len, shared};
use super::super::parts::inputs::InputBars;
use super::super::time::timeline::{Run, Timeline};
use super::Sequence;
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::{Scalar, parts_mut};

/// The arrays for the gradients, each fully overwritten; None where one is not wanted.
#[derive(Default)]
pub struct Gradients<'a, T: Scalar> {
    /// (T, B, d)
    pub x: Option<&'a mut [T]>,
    /// (n, d)
    pub input_weight: Option<&'a mut [T]>,
    /// (B, n)
    pub h0: Option<&'a mut [T]>,
    /// (B, n)
    pub start_state: Option<&'a mut [T]>,
    /// (n)
    pub bias: Option<&'a mut [T]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [T::Real]>,
}

/// What a backward pass reads and writes, besides the states and the transition.
#[derive(Clone, Copy)]
pub(super) struct AffineBars<T: Scalar> {
    pub ct: CtRows<T::Real>,
    pub inputs: InputBars<T>,
    pub activation_bias: Option<(Shared<T::Real>, usize)>,
}

impl<T: Scalar> Gradients<'_, T> {
    /// Refuses sizes that do not fit, and gradients of arguments that were not given.
    #[doc(hidden)]
    pub fn check(&self, sequence: &Sequence<'_, T>) -> Result<()> {
        let Run { steps, batch, features, n, h0, activation, activation_bias, starts, .. } = sequence.run;
        let fresh = starts.is_some_and(|starts| starts.state.is_some());
        let units = activation.bias_units(n);
        check(&[
            ("x_bar", len(&self.x), true, &[steps, batch, features]),
            ("input_weight_bar", len(&self.input_weight), true, &[n, features]),
            ("h0_bar", len(&self.h0), h0.is_some(), &[batch, n]),
            ("start_state_bar", len(&self.start_state), fresh, &[batch, n]),
            ("bias_bar", len(&self.bias), sequence.bias.is_some(), &[n]),
            ("activation_bias_bar", len(&self.activation_bias), activation_bias.is_some(), &[units]),
        ])
    }

    /// The arrays that the members of a call write to.
    pub(super) fn shared(self, ct: &Cotangent<'_, T>, line: &Timeline<'_, T::Real>) -> AffineBars<T> {
        let Gradients { x, input_weight, h0, start_state, bias, activation_bias } = self;
        AffineBars {
            ct: ct.rows(line, shared(h0.map(parts_mut)), shared(start_state.map(parts_mut))),
            inputs: InputBars { x: shared(x), weight: shared(input_weight), bias: shared(bias) },
            activation_bias: activation_bias.map(|bar| (Shared(bar.as_mut_ptr()), bar.len())),
        }
    }
}
