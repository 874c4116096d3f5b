//! The gradients of a GRU: which are wanted, and their arrays.

use super::Gru;
use crate::error::{Error, Result};
use crate::scalar::Real;
use crate::sizes::check_len;

/// The arrays for the gradients, each fully overwritten; None where one is not wanted.
#[derive(Default)]
pub struct GruGradients<'a, R: Real> {
    /// (T, B, d)
    pub x: Option<&'a mut [R]>,
    /// As [`Gru::w`]
    pub w: Option<&'a mut [R]>,
    /// (3, n, d)
    pub u: Option<&'a mut [R]>,
    /// (3, n)
    pub b: Option<&'a mut [R]>,
    /// (B, n)
    pub h0: Option<&'a mut [R]>,
    /// (n)
    pub hidden_bias: Option<&'a mut [R]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [R]>,
}

/// Which of them are wanted.
#[derive(Clone, Copy)]
pub(super) struct Wants {
    pub w: bool,
    /// x, u, b
    pub inputs: [bool; 3],
    pub hidden_bias: bool,
    pub activation_bias: bool,
}

impl<R: Real> GruGradients<'_, R> {
    /// Refuses sizes that do not fit, and gradients of arguments that were not given.
    pub fn check(&self, gru: &Gru<'_, R>) -> Result<()> {
        let Gru { steps, batch, features, n, .. } = *gru;
        let units = gru.activation.bias_units(n);
        let sizes = [
            ("x_bar", &self.x, &[steps, batch, features][..]),
            ("w_bar", &self.w, &[gru.matrices(), n, n]),
            ("u_bar", &self.u, &[3, n, features]),
            ("b_bar", &self.b, &[3, n]),
            ("h0_bar", &self.h0, &[batch, n]),
            ("hidden_bias_bar", &self.hidden_bias, &[n]),
            ("activation_bias_bar", &self.activation_bias, &[units]),
        ];
        for (name, got, expected) in sizes {
            if let Some(got) = got {
                check_len(name, got.len(), expected)?;
            }
        }
        if self.hidden_bias.is_some() && gru.hidden_bias.is_none() {
            return Err(Error::value("hidden_bias_bar", "was asked for, but no hidden_bias was given"));
        }
        if self.activation_bias.is_some() && units == 0 {
            return Err(Error::value("activation_bias_bar", "belongs to modrelu and modrelu_realrep only"));
        }
        Ok(())
    }

    pub(super) fn wants(&self) -> Wants {
        Wants {
            w: self.w.is_some(),
            inputs: [self.x.is_some(), self.u.is_some(), self.b.is_some()],
            hidden_bias: self.hidden_bias.is_some(),
            activation_bias: self.activation_bias.is_some(),
        }
    }
}
