//! The gradients of a rotational unit: which are wanted, and their arrays.

use super::Rum;
use crate::error::{Error, Result};
use crate::scalar::Real;
use crate::sizes::check_len;

/// The arrays for the gradients, each fully overwritten; None where one is not wanted.
#[derive(Default)]
pub struct RumGradients<'a, R: Real> {
    /// (T, B, d)
    pub x: Option<&'a mut [R]>,
    /// (2n, n)
    pub w: Option<&'a mut [R]>,
    /// (3n, d)
    pub u: Option<&'a mut [R]>,
    /// (3n)
    pub b: Option<&'a mut [R]>,
    /// (B, n)
    pub h0: Option<&'a mut [R]>,
    /// (B, n, n)
    pub r0: Option<&'a mut [R]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [R]>,
}

/// Which of them are wanted.
#[derive(Clone, Copy)]
pub(super) struct Wants {
    pub w: bool,
    /// x, u, b
    pub inputs: [bool; 3],
    pub r0: bool,
    pub activation_bias: bool,
}

impl<R: Real> RumGradients<'_, R> {
    /// Refuses sizes that do not fit, and gradients of arguments that were not given.
    pub fn check(&self, rum: &Rum<'_, R>) -> Result<()> {
        let Rum { steps, batch, features, n, .. } = *rum;
        let units = rum.activation.bias_units(n);
        let sizes = [
            ("x_bar", &self.x, &[steps, batch, features][..]),
            ("w_bar", &self.w, &[2, n, n]),
            ("u_bar", &self.u, &[3, n, features]),
            ("b_bar", &self.b, &[3, n]),
            ("h0_bar", &self.h0, &[batch, n]),
            ("r0_bar", &self.r0, &[batch, n, n]),
            ("activation_bias_bar", &self.activation_bias, &[units]),
        ];
        for (name, got, expected) in sizes {
            if let Some(got) = got {
                check_len(name, got.len(), expected)?;
            }
        }
        if self.r0.is_some() && !rum.memory {
            return Err(Error::value("r0_bar", "belongs to a memory only"));
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
            r0: self.r0.is_some(),
            activation_bias: self.activation_bias.is_some(),
        }
    }
}
