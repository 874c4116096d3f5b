//! The rotational unit of memory on the caller's arrays.

use super::cell::{self, OnDevice, Weights, asked, placed};
use super::field_of;
use super::uploads::Uploads;
use crate::Array;
use crate::device::Record;
use crate::rum::{Rotational, Wanted, record_backward, record_forward};
use isometry_core::Result;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::rum::Rum;
use isometry_core::scalar::Real;

/// x, w, u, b, h0 and the bias of the activation.
const PLACES: [usize; 6] = [0, 1, 2, 3, 4, 6];
const R0: usize = 5;

/// The arrays of a unit on the device.
pub(super) struct Sent {
    cell: cell::Sent,
    r0: Option<Array>,
}

impl Sent {
    fn view<'a, R: Real>(&'a self, rum: &Rum<'a, R>) -> Rotational<'a> {
        Rotational {
            arguments: self.cell.view(&rum.run),
            memory: rum.memory,
            r0: self.r0.as_ref(),
            eta: rum.eta.map(|eta| eta.f64() as f32),
        }
    }
}

impl<'a, R: Real> OnDevice<'a, R> for Rum<'a, R> {
    type Sent = Sent;

    fn run(&self) -> &Run<'a, R> {
        &self.run
    }

    fn send(&self, uploads: &mut Uploads<'a>) -> Result<Sent> {
        field_of::<R>()?;
        let (n, batch) = (self.run.n, self.run.batch);
        let weights = Weights { n, w: (self.w, 2 * n), u: (self.u, 3 * n), b: self.b };
        let r0 = self.r0.map(|r0| uploads.own(r0, &[batch, n, n])).transpose()?;
        Ok(Sent { r0, cell: cell::Sent::new(uploads, &self.run, weights)? })
    }

    fn record_forward(&self, record: &mut Record, sent: &Sent) -> Result<(Array, Option<Array>)> {
        record_forward(record, &sent.view(self))
    }

    fn record_backward(
        &self,
        record: &mut Record,
        sent: &Sent,
        states: &Array,
        (ct, last_ct): (&Array, Option<&Array>),
        wanted: &[bool],
    ) -> Result<Vec<(usize, Array)>> {
        let r0 = wanted.get(R0).copied().unwrap_or(false);
        let wanted = Wanted { arguments: asked(wanted, PLACES), r0 };
        let cts = (ct, last_ct.filter(|_| self.memory));
        let found = record_backward(record, &sent.view(self), states, cts, wanted)?;
        let mut all = placed(found.arguments, PLACES);
        all.extend(found.r0.map(|array| (R0, array)));
        Ok(all)
    }
}
