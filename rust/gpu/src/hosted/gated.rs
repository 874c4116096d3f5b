//! Gated units on the caller's arrays.

use super::uploads::Uploads;
use super::{Copies, field_of, single_mut};
use crate::Array;
use crate::array::zeros;
use crate::device::Record;
use crate::gated::{Gated, Wanted, record_backward, record_forward};
use isometry_core::Budget;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::gru::{Gru, GruGradients, Reset};
use isometry_core::scalar::Real;
use isometry_core::{Error, Result};

/// The arrays of a unit on the device.
struct Sent {
    x: Array,
    w: Array,
    u: Array,
    h0: Option<Array>,
    bias: Option<Array>,
    hidden_bias: Option<Array>,
    activation_bias: Option<Array>,
}

/// The states, (T, B, n).
pub fn forward<R: Real>(gru: &Gru<'_, R>, states: &mut [R], budget: &Budget<'_>) -> Result<()> {
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let sent = Sent::new(&mut uploads, gru)?;
    let found = record_forward(&mut record, &sent.view(gru))?;
    record.submit()?;
    found.download_into(single_mut(states)?, budget.cancel)
}

/// The gradients from the states and their cotangents.
pub fn backward<R: Real>(
    gru: &Gru<'_, R>,
    states: &[R],
    ct: &[R],
    gradients: GruGradients<'_, R>,
    budget: &Budget<'_>,
) -> Result<()> {
    gradients.check(gru)?;
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let sent = Sent::new(&mut uploads, gru)?;
    let shape = gru.run.sizes();
    let (states, ct) = (uploads.own(states, &shape)?, uploads.own(ct, &shape)?);
    let GruGradients { x, w, u, b, h0, hidden_bias, activation_bias, start_state: _ } = gradients;
    let wanted = Wanted {
        x: x.is_some(),
        w: w.is_some(),
        u: u.is_some(),
        bias: b.is_some(),
        h0: h0.is_some(),
        hidden_bias: hidden_bias.is_some(),
        activation_bias: activation_bias.is_some(),
    };
    let found = record_backward(&mut record, &sent.view(gru), &states, &ct, wanted)?;
    record.submit()?;
    let mut copies = Copies::new();
    if let (Some([gates, own]), Some(w)) = (&found.w, w) {
        let (first, last) = w.split_at_mut(gates.len());
        copies.extend([(gates, single_mut(first)?), (own, single_mut(last)?)]);
    }
    for (found, to) in [
        (&found.x, x),
        (&found.u, u),
        (&found.bias, b),
        (&found.h0, h0),
        (&found.hidden_bias, hidden_bias),
        (&found.activation_bias, activation_bias),
    ] {
        if let (Some(found), Some(to)) = (found, to) {
            copies.push((found, single_mut(to)?));
        }
    }
    Array::download_all(&mut copies, budget.cancel)
}

impl Sent {
    fn new<'a, R: Real>(uploads: &mut Uploads<'a>, gru: &Gru<'a, R>) -> Result<Self> {
        field_of::<R>()?;
        gru.check()?;
        let refused =
            |what: &str| Err(Error::Unsupported(format!("backend='gpu' cannot serve {what}: use the CPU")));
        if gru.transition.is_some() {
            return refused("W_h other than as a matrix");
        }
        if gru.run.starts.is_some() {
            return refused("starts");
        }
        let Run { steps, batch, features, n, x, h0, activation_bias, .. } = gru.run;
        let hidden_bias = gru.hidden_bias.map(|bias| {
            let mut wide = zeros::<R>(3 * n)?;
            wide[2 * n..].copy_from_slice(bias);
            uploads.made(&wide, &[3, n])
        });
        Ok(Sent {
            hidden_bias: hidden_bias.transpose()?,
            x: uploads.own(x, &[steps, batch, features])?,
            w: uploads.own(gru.w, &[3, n, n])?,
            u: uploads.own(gru.u, &[3, n, features])?,
            h0: h0.map(|h0| uploads.own(h0, &[batch, n])).transpose()?,
            bias: gru.b.map(|b| uploads.own(b, &[3, n])).transpose()?,
            activation_bias: activation_bias.map(|bias| uploads.real(bias, &[bias.len()])).transpose()?,
        })
    }

    fn view<'a, R: Real>(&'a self, gru: &Gru<'a, R>) -> Gated<'a> {
        Gated {
            x: &self.x,
            w: &self.w,
            u: &self.u,
            h0: self.h0.as_ref(),
            bias: self.bias.as_ref(),
            hidden_bias: self.hidden_bias.as_ref(),
            after: gru.reset == Reset::After,
            activation: gru.run.activation,
            activation_bias: self.activation_bias.as_ref(),
            lengths: gru.run.lengths,
            reverse: gru.run.reverse,
        }
    }
}
