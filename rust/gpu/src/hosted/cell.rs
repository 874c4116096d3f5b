//! The arguments of cells on the caller's arrays, and their gradients.

use super::uploads::Uploads;
use super::{Copies, field_of, single_mut};
use crate::Array;
use crate::cell::{Arguments, Gradients, Wanted};
use isometry_core::recurrence::Run;
use isometry_core::scalar::Real;
use isometry_core::{Error, Result};

/// What a cell cannot have on the device.
pub(super) fn refused<T>(what: &str) -> Result<T> {
    Err(Error::Unsupported(format!("backend='gpu' cannot serve {what}: use the CPU")))
}

/// The weights of a cell.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a, R> {
    pub n: usize,
    /// W and its rows
    pub w: (&'a [R], usize),
    /// U and its rows
    pub u: (&'a [R], usize),
    /// b
    pub b: Option<&'a [R]>,
}

/// The arrays of a cell on the device.
pub(super) struct Sent {
    x: Array,
    w: Array,
    u: Array,
    h0: Option<Array>,
    bias: Option<Array>,
    activation_bias: Option<Array>,
}

impl Sent {
    /// Of a call that has passed its check.
    pub fn new<'a, R: Real>(
        uploads: &mut Uploads<'a>,
        run: &Run<'a, R>,
        weights: Weights<'a, R>,
    ) -> Result<Self> {
        field_of::<R>()?;
        if run.starts.is_some() {
            return refused("starts");
        }
        let Weights { n, w: (w, of_w), u: (u, of_u), b } = weights;
        let Run { steps, batch, features, n: state, x, h0, activation_bias, .. } = *run;
        Ok(Sent {
            x: uploads.own(x, &[steps, batch, features])?,
            w: uploads.own(w, &[of_w, n])?,
            u: uploads.own(u, &[of_u, features])?,
            h0: h0.map(|h0| uploads.own(h0, &[batch, state])).transpose()?,
            bias: b.map(|b| uploads.own(b, &[of_u])).transpose()?,
            activation_bias: activation_bias.map(|bias| uploads.real(bias, &[bias.len()])).transpose()?,
        })
    }

    pub fn view<'a, R: Real>(&'a self, run: &Run<'a, R>) -> Arguments<'a> {
        Arguments {
            x: &self.x,
            w: &self.w,
            u: &self.u,
            bias: self.bias.as_ref(),
            h0: self.h0.as_ref(),
            activation: run.activation,
            activation_bias: self.activation_bias.as_ref(),
            lengths: run.lengths,
            reverse: run.reverse,
        }
    }
}

/// The caller's arrays for the gradients that every cell has.
pub(super) struct Bars<'a, R> {
    pub x: Option<&'a mut [R]>,
    pub w: Option<&'a mut [R]>,
    pub u: Option<&'a mut [R]>,
    pub b: Option<&'a mut [R]>,
    pub h0: Option<&'a mut [R]>,
    pub activation_bias: Option<&'a mut [R]>,
}

impl<'a, R: Real> Bars<'a, R> {
    pub fn wanted(&self) -> Wanted {
        Wanted {
            x: self.x.is_some(),
            w: self.w.is_some(),
            u: self.u.is_some(),
            bias: self.b.is_some(),
            h0: self.h0.is_some(),
            activation_bias: self.activation_bias.is_some(),
        }
    }

    /// The copies of what was found.
    pub fn copies(self, found: &'a Gradients) -> Result<Copies<'a>> {
        let mut copies = Copies::new();
        let mut w = self.w;
        for part in found.w.iter().flatten() {
            let Some(room) = w.take() else { break };
            let (first, rest) = room.split_at_mut(part.len().min(room.len()));
            copies.push((part, single_mut(first)?));
            w = Some(rest);
        }
        for (found, to) in [
            (&found.x, self.x),
            (&found.u, self.u),
            (&found.bias, self.b),
            (&found.h0, self.h0),
            (&found.activation_bias, self.activation_bias),
        ] {
            push(&mut copies, found.as_ref(), to)?;
        }
        Ok(copies)
    }
}

/// The copy of an array that was found to one that is wanted.
pub(super) fn push<'a, R: Real>(
    copies: &mut Copies<'a>,
    found: Option<&'a Array>,
    to: Option<&'a mut [R]>,
) -> Result<()> {
    if let (Some(found), Some(to)) = (found, to) {
        copies.push((found, single_mut(to)?));
    }
    Ok(())
}
