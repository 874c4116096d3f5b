//! The LSTM on the caller's arrays.

use super::cell::{OnDevice, Sent, Weights, asked, placed};
use super::field_of;
use super::uploads::Uploads;
use crate::Array;
use crate::device::Record;
use crate::lstm::{record_backward, record_forward};
use isometry_core::Result;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::lstm::Lstm;
use isometry_core::scalar::Real;

/// x, w, u, b, h0 and the bias of the activation.
const PLACES: [usize; 6] = [0, 1, 2, 3, 4, 5];

impl<'a, R: Real> OnDevice<'a, R> for Lstm<'a, R> {
    type Sent = Sent;

    fn run(&self) -> &Run<'a, R> {
        &self.run
    }

    fn send(&self, uploads: &mut Uploads<'a>) -> Result<Sent> {
        field_of::<R>()?;
        let n = self.run.n / 2;
        let weights = Weights { n, w: (self.w, 4 * n), u: (self.u, 4 * n), b: self.b };
        Sent::new(uploads, &self.run, weights)
    }

    fn record_forward(&self, record: &mut Record, sent: &Sent) -> Result<(Array, Option<Array>)> {
        Ok((record_forward(record, &sent.view(&self.run))?, None))
    }

    fn record_backward(
        &self,
        record: &mut Record,
        sent: &Sent,
        states: &Array,
        (ct, _): (&Array, Option<&Array>),
        wanted: &[bool],
    ) -> Result<Vec<(usize, Array)>> {
        let found = record_backward(record, &sent.view(&self.run), states, ct, asked(wanted, PLACES))?;
        Ok(placed(found, PLACES))
    }
}
