//! Gated units on the caller's arrays.

use super::cell::{self, OnDevice, Weights, asked, placed, refused};
use super::uploads::Uploads;
use crate::Array;
use crate::array::zeros;
use crate::device::Record;
use crate::gated::{Gated, Wanted, record_backward, record_forward};
use isometry_core::Result;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::gru::{Gru, Reset};
use isometry_core::scalar::Real;

/// x, w, u, b, h0 and the bias of the activation.
const PLACES: [usize; 6] = [0, 1, 2, 3, 4, 6];
const HIDDEN_BIAS: usize = 5;

/// The arrays of a unit on the device.
pub(super) struct Sent {
    cell: cell::Sent,
    hidden_bias: Option<Array>,
}

impl Sent {
    fn view<'a, R: Real>(&'a self, gru: &Gru<'a, R>) -> Gated<'a> {
        Gated {
            arguments: self.cell.view(&gru.run),
            hidden_bias: self.hidden_bias.as_ref(),
            after: gru.reset == Reset::After,
        }
    }
}

impl<'a, R: Real> OnDevice<'a, R> for Gru<'a, R> {
    type Sent = Sent;

    fn run(&self) -> &Run<'a, R> {
        &self.run
    }

    fn send(&self, uploads: &mut Uploads<'a>) -> Result<Sent> {
        super::field_of::<R>()?;
        if self.transition.is_some() {
            return refused("W_h other than as a matrix");
        }
        let n = self.run.n;
        let weights = Weights { n, w: (self.w, 3 * n), u: (self.u, 3 * n), b: self.b };
        let hidden_bias = self.hidden_bias.map(|bias| {
            let mut wide = zeros::<R>(3 * n)?;
            wide[2 * n..].copy_from_slice(bias);
            uploads.made(&wide, &[3 * n])
        });
        Ok(Sent {
            hidden_bias: hidden_bias.transpose()?,
            cell: cell::Sent::new(uploads, &self.run, weights)?,
        })
    }

    fn record_forward(&self, record: &mut Record, sent: &Sent) -> Result<(Array, Option<Array>)> {
        Ok((record_forward(record, &sent.view(self))?, None))
    }

    fn record_backward(
        &self,
        record: &mut Record,
        sent: &Sent,
        states: &Array,
        (ct, _): (&Array, Option<&Array>),
        wanted: &[bool],
    ) -> Result<Vec<(usize, Array)>> {
        let hidden_bias = wanted.get(HIDDEN_BIAS).copied().unwrap_or(false);
        let wanted = Wanted { arguments: asked(wanted, PLACES), hidden_bias };
        let found = record_backward(record, &sent.view(self), states, ct, wanted)?;
        let mut all = placed(found.arguments, PLACES);
        all.extend(found.hidden_bias.map(|array| (HIDDEN_BIAS, array)));
        Ok(all)
    }
}
