//! The gradients of an LSTM: which are wanted, and their arrays.

use super::super::driver::ends::{Cotangent, CtRows};
use super::super::parts::gradients::{check, len, shared};
use super::super::parts::inputs::InputBars;
use super::super::time::timeline::{Run, Timeline};
use super::Lstm;
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Real;

/// The arrays for the gradients, each fully overwritten; None where one is not wanted.
#[derive(Default)]
pub struct LstmGradients<'a, R: Real> {
    /// (T, B, d)
    pub x: Option<&'a mut [R]>,
    /// (4n, n)
    pub w: Option<&'a mut [R]>,
    /// (4n, d)
    pub u: Option<&'a mut [R]>,
    /// (4n)
    pub b: Option<&'a mut [R]>,
    /// (B, 2n), of h and c
    pub h0: Option<&'a mut [R]>,
    /// (B, 2n)
    pub start_state: Option<&'a mut [R]>,
}

/// What a backward pass reads and writes, besides the states.
#[derive(Clone, Copy)]
pub(super) struct Bars<R: Real> {
    pub ct: CtRows<R>,
    pub w: Option<Shared<R>>,
    /// Of x, U and b.
    pub inputs: InputBars<R>,
}

impl<R: Real> LstmGradients<'_, R> {
    /// Refuses sizes that do not fit, and gradients of arguments that were not given.
    #[doc(hidden)]
    pub fn check(&self, lstm: &Lstm<'_, R>) -> Result<()> {
        let (n, Run { steps, batch, features, h0, starts, .. }) = (lstm.n(), lstm.run);
        let fresh = starts.is_some_and(|starts| starts.state.is_some());
        check(&[
            ("x_bar", len(&self.x), true, &[steps, batch, features]),
            ("w_bar", len(&self.w), true, &[4, n, n]),
            ("u_bar", len(&self.u), true, &[4, n, features]),
            ("b_bar", len(&self.b), lstm.b.is_some(), &[4, n]),
            ("h0_bar", len(&self.h0), h0.is_some(), &[batch, 2, n]),
            ("start_state_bar", len(&self.start_state), fresh, &[batch, 2, n]),
        ])
    }

    /// The arrays that the members of a call write to.
    pub(super) fn shared(self, ct: &Cotangent<'_, R>, line: &Timeline<'_, R>) -> Bars<R> {
        let LstmGradients { x, w, u, b, h0, start_state } = self;
        let inputs = InputBars { x: shared(x), weight: shared(u), bias: shared(b) };
        Bars { ct: ct.rows(line, shared(h0), shared(start_state)), w: shared(w), inputs }
    }
}
