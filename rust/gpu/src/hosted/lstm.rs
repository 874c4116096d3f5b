//! The LSTM on the caller's arrays.

use super::cell::{Bars, Sent, Weights};
use super::uploads::Uploads;
use super::{field_of, single_mut};
use crate::Array;
use crate::device::Record;
use crate::lstm::{record_backward, record_forward};
use isometry_core::Budget;
use isometry_core::Result;
use isometry_core::recurrence::lstm::{Lstm, LstmGradients};
use isometry_core::scalar::Real;

/// The states, (T, B, 2n).
pub fn forward<R: Real>(lstm: &Lstm<'_, R>, states: &mut [R], budget: &Budget<'_>) -> Result<()> {
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let sent = sent(&mut uploads, lstm)?;
    let found = record_forward(&mut record, &sent.view(&lstm.run))?;
    record.submit()?;
    found.download_into(single_mut(states)?, budget.cancel)
}

/// The gradients from the states and their cotangents.
pub fn backward<R: Real>(
    lstm: &Lstm<'_, R>,
    states: &[R],
    ct: &[R],
    gradients: LstmGradients<'_, R>,
    budget: &Budget<'_>,
) -> Result<()> {
    gradients.check(lstm)?;
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let sent = sent(&mut uploads, lstm)?;
    let shape = lstm.run.sizes();
    let (states, ct) = (uploads.own(states, &shape)?, uploads.own(ct, &shape)?);
    let LstmGradients { x, w, u, b, h0, start_state: _ } = gradients;
    let bars = Bars { x, w, u, b, h0, activation_bias: None };
    let found = record_backward(&mut record, &sent.view(&lstm.run), &states, &ct, bars.wanted())?;
    record.submit()?;
    Array::download_all(&mut bars.copies(&found)?, budget.cancel)
}

fn sent<'a, R: Real>(uploads: &mut Uploads<'a>, lstm: &Lstm<'a, R>) -> Result<Sent> {
    field_of::<R>()?;
    lstm.check()?;
    let n = lstm.run.n / 2;
    let weights = Weights { n, w: (lstm.w, 4 * n), u: (lstm.u, 4 * n), b: lstm.b };
    Sent::new(uploads, &lstm.run, weights)
}
