//! The rotational unit of memory on the caller's arrays.

use super::cell::{self, Bars, Weights, push};
use super::uploads::Uploads;
use super::{Copies, field_of, single_mut};
use crate::Array;
use crate::device::Record;
use crate::rum::{Rotational, Wanted, record_backward, record_forward};
use isometry_core::Budget;
use isometry_core::Result;
use isometry_core::recurrence::rum::{Rum, RumGradients};
use isometry_core::scalar::Real;

/// The arrays of a unit on the device.
struct Sent {
    cell: cell::Sent,
    r0: Option<Array>,
}

/// The states, (T, B, n), and the memory after the last steps, (B, n, n), empty without one.
pub fn forward<R: Real>(
    rum: &Rum<'_, R>,
    states: &mut [R],
    last: &mut [R],
    budget: &Budget<'_>,
) -> Result<()> {
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let sent = Sent::new(&mut uploads, rum)?;
    rum.check_last("last", last.len())?;
    let (found, memory) = record_forward(&mut record, &sent.view(rum))?;
    record.submit()?;
    let mut copies: Copies<'_> = vec![(&found, single_mut(states)?)];
    push(&mut copies, memory.as_ref(), Some(last))?;
    Array::download_all(&mut copies, budget.cancel)
}

/// The gradients from the states, their cotangents, and those of the last memory.
pub fn backward<R: Real>(
    rum: &Rum<'_, R>,
    states: &[R],
    (ct, last_ct): (&[R], Option<&[R]>),
    gradients: RumGradients<'_, R>,
    budget: &Budget<'_>,
) -> Result<()> {
    gradients.check(rum)?;
    last_ct.map_or(Ok(()), |ct| rum.check_last("last_ct", ct.len()))?;
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let sent = Sent::new(&mut uploads, rum)?;
    let shape = rum.run.sizes();
    let (states, ct) = (uploads.own(states, &shape)?, uploads.own(ct, &shape)?);
    let [_, batch, n] = shape;
    let last_ct = last_ct.filter(|_| rum.memory);
    let last_ct = last_ct.map(|ct| uploads.own(ct, &[batch, n, n])).transpose()?;
    let RumGradients { x, w, u, b, h0, r0, activation_bias, start_state: _ } = gradients;
    let bars = Bars { x, w, u, b, h0, activation_bias };
    let wanted = Wanted { arguments: bars.wanted(), r0: r0.is_some() };
    let cts = (&ct, last_ct.as_ref());
    let found = record_backward(&mut record, &sent.view(rum), &states, cts, wanted)?;
    record.submit()?;
    let mut copies = bars.copies(&found.arguments)?;
    push(&mut copies, found.r0.as_ref(), r0)?;
    Array::download_all(&mut copies, budget.cancel)
}

impl Sent {
    fn new<'a, R: Real>(uploads: &mut Uploads<'a>, rum: &Rum<'a, R>) -> Result<Self> {
        field_of::<R>()?;
        rum.check()?;
        let (n, batch) = (rum.run.n, rum.run.batch);
        let weights = Weights { n, w: (rum.w, 2 * n), u: (rum.u, 3 * n), b: rum.b };
        let r0 = rum.r0.map(|r0| uploads.own(r0, &[batch, n, n])).transpose()?;
        Ok(Sent { r0, cell: cell::Sent::new(uploads, &rum.run, weights)? })
    }

    fn view<'a, R: Real>(&'a self, rum: &Rum<'a, R>) -> Rotational<'a> {
        Rotational {
            arguments: self.cell.view(&rum.run),
            memory: rum.memory,
            r0: self.r0.as_ref(),
            eta: rum.eta.map(|eta| eta.f64() as f32),
        }
    }
}
