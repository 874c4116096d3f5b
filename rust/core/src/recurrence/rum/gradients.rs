//! The gradients of a rotational unit: which are wanted, and their arrays.

use super::super::driver::ends::Cotangent;
use super::super::parts::gates::GateBars;
use super::super::parts::gradients::{check, len, shared};
use super::super::parts::inputs::InputBars;
use super::super::time::timeline::{Run, Timeline};
use super::Rum;
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Real;

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
    /// (B, n)
    pub start_state: Option<&'a mut [R]>,
    /// (B, n, n)
    pub r0: Option<&'a mut [R]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [R]>,
}

impl<R: Real> RumGradients<'_, R> {
    /// Refuses sizes that do not fit, and gradients of arguments that were not given.
    #[doc(hidden)]
    pub fn check(&self, rum: &Rum<'_, R>) -> Result<()> {
        let Run { steps, batch, features, n, h0, activation, activation_bias, starts, .. } = rum.run;
        let fresh = starts.is_some_and(|starts| starts.state.is_some());
        let units = activation.bias_units(n);
        check(&[
            ("x_bar", len(&self.x), true, &[steps, batch, features]),
            ("w_bar", len(&self.w), true, &[2, n, n]),
            ("u_bar", len(&self.u), true, &[3, n, features]),
            ("b_bar", len(&self.b), rum.b.is_some(), &[3, n]),
            ("h0_bar", len(&self.h0), h0.is_some(), &[batch, n]),
            ("r0_bar", len(&self.r0), rum.r0.is_some(), &[batch, n, n]),
            ("start_state_bar", len(&self.start_state), fresh, &[batch, n]),
            ("activation_bias_bar", len(&self.activation_bias), activation_bias.is_some(), &[units]),
        ])
    }

    /// The arrays that the members of a call write to: those of the gates, and of r0.
    pub(super) fn shared(
        self,
        ct: &Cotangent<'_, R>,
        line: &Timeline<'_, R>,
    ) -> (GateBars<R>, Option<Shared<R>>) {
        let RumGradients { x, w, u, b, h0, r0, activation_bias, start_state } = self;
        let inputs = InputBars { x: shared(x), weight: shared(u), bias: shared(b) };
        let activation_bias = activation_bias.map(|bar| (Shared(bar.as_mut_ptr()), bar.len()));
        let ct = ct.rows(line, shared(h0), shared(start_state));
        (GateBars { ct, w: shared(w), inputs, activation_bias }, shared(r0))
    }
}
