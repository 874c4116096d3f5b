//! The gradients of a GRU: which are wanted, and their arrays.

use super::super::driver::ends::Cotangent;
use super::super::parts::gates::GateBars;
use super::super::parts::gradients::{check, len, shared};
use super::super::parts::inputs::InputBars;
use super::super::time::timeline::{Run, Timeline};
use super::Gru;
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Real;

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
    /// (B, n)
    pub start_state: Option<&'a mut [R]>,
    /// (n)
    pub hidden_bias: Option<&'a mut [R]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [R]>,
}

impl<'a, R: Real> GruGradients<'a, R> {
    /// Refuses sizes that do not fit, and gradients of arguments that were not given.
    #[doc(hidden)]
    pub fn check(&self, gru: &Gru<'_, R>) -> Result<()> {
        let Run { steps, batch, features, n, h0, activation, activation_bias, starts, .. } = gru.run;
        let fresh = starts.is_some_and(|starts| starts.state.is_some());
        let units = activation.bias_units(n);
        check(&[
            ("x_bar", len(&self.x), true, &[steps, batch, features]),
            ("w_bar", len(&self.w), true, &[gru.matrices(), n, n]),
            ("u_bar", len(&self.u), true, &[3, n, features]),
            ("b_bar", len(&self.b), gru.b.is_some(), &[3, n]),
            ("h0_bar", len(&self.h0), h0.is_some(), &[batch, n]),
            ("hidden_bias_bar", len(&self.hidden_bias), gru.hidden_bias.is_some(), &[n]),
            ("start_state_bar", len(&self.start_state), fresh, &[batch, n]),
            ("activation_bias_bar", len(&self.activation_bias), activation_bias.is_some(), &[units]),
        ])
    }

    /// The arrays that the members of a call write to: those of the gates and of c_h, and that of W_z and W_r.
    pub(super) fn shared(
        self,
        w: Option<Shared<R>>,
        ct: &Cotangent<'_, R>,
        line: &Timeline<'_, R>,
    ) -> (GateBars<R>, Option<Shared<R>>) {
        let GruGradients { x, w: _, u, b, h0, hidden_bias, activation_bias, start_state } = self;
        let inputs = InputBars { x: shared(x), weight: shared(u), bias: shared(b) };
        let activation_bias = activation_bias.map(|bar| (Shared(bar.as_mut_ptr()), bar.len()));
        let ct = ct.rows(line, shared(h0), shared(start_state));
        (GateBars { ct, w, inputs, activation_bias }, shared(hidden_bias))
    }
}
