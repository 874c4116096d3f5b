//! Gated units on the caller's arrays.

use super::cell::{self, Bars, Weights, push, refused};
use super::single_mut;
use super::uploads::Uploads;
use crate::Array;
use crate::array::zeros;
use crate::device::Record;
use crate::gated::{Gated, Wanted, record_backward, record_forward};
use isometry_core::Budget;
use isometry_core::Result;
use isometry_core::recurrence::gru::{Gru, GruGradients, Reset};
use isometry_core::scalar::Real;

/// The arrays of a unit on the device.
struct Sent {
    cell: cell::Sent,
    hidden_bias: Option<Array>,
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
    let bars = Bars { x, w, u, b, h0, activation_bias };
    let wanted = Wanted { arguments: bars.wanted(), hidden_bias: hidden_bias.is_some() };
    let found = record_backward(&mut record, &sent.view(gru), &states, &ct, wanted)?;
    record.submit()?;
    let mut copies = bars.copies(&found.arguments)?;
    push(&mut copies, found.hidden_bias.as_ref(), hidden_bias)?;
    Array::download_all(&mut copies, budget.cancel)
}

impl Sent {
    fn new<'a, R: Real>(uploads: &mut Uploads<'a>, gru: &Gru<'a, R>) -> Result<Self> {
        super::field_of::<R>()?;
        gru.check()?;
        if gru.transition.is_some() {
            return refused("W_h other than as a matrix");
        }
        let n = gru.run.n;
        let weights = Weights { n, w: (gru.w, 3 * n), u: (gru.u, 3 * n), b: gru.b };
        let hidden_bias = gru.hidden_bias.map(|bias| {
            let mut wide = zeros::<R>(3 * n)?;
            wide[2 * n..].copy_from_slice(bias);
            uploads.made(&wide, &[3 * n])
        });
        Ok(Sent { hidden_bias: hidden_bias.transpose()?, cell: cell::Sent::new(uploads, &gru.run, weights)? })
    }

    fn view<'a, R: Real>(&'a self, gru: &Gru<'a, R>) -> Gated<'a> {
        Gated {
            arguments: self.cell.view(&gru.run),
            hidden_bias: self.hidden_bias.as_ref(),
            after: gru.reset == Reset::After,
        }
    }
}
