//! The arguments of cells on the caller's arrays, and their gradients.

use super::sequence::{Filled, Pull};
use super::uploads::Uploads;
use super::{Copies, field_of, single_mut, wanted};
use crate::Array;
use crate::cell::{Arguments, Gradients, Wanted};
use crate::device::Record;
use isometry_core::argument::Bar;
use isometry_core::recurrence::{Run, Unit};
use isometry_core::scalar::Real;
use isometry_core::{Budget, Error, Result};

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

/// A cell of the core on the device.
pub(super) trait OnDevice<'a, R: Real>: Unit<'a, R> {
    /// Its arrays there.
    type Sent;

    /// What every cell has.
    fn run(&self) -> &Run<'a, R>;

    /// Sends its arrays.
    fn send(&self, uploads: &mut Uploads<'a>) -> Result<Self::Sent>;

    /// Records the states, and the memory after them if there is one.
    fn record_forward(&self, record: &mut Record, sent: &Self::Sent) -> Result<(Array, Option<Array>)>;

    /// Records the gradients that are wanted from the states, their cotangents and those of the memory. Each comes with the place of its
    /// argument; what stands in the same array follows each other.
    fn record_backward(
        &self,
        record: &mut Record,
        sent: &Self::Sent,
        states: &Array,
        cts: (&Array, Option<&Array>),
        wanted: &[bool],
    ) -> Result<Vec<(usize, Array)>>;
}

/// The states of cells of the same sizes, one after the other, and their memories, which are empty where there are none.
pub(super) fn forward<'a, R: Real, U: OnDevice<'a, R>>(
    members: Vec<(U, Filled<'_, R>)>,
    budget: &Budget<'_>,
) -> Result<()> {
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let mut found = Vec::with_capacity(members.len());
    for (unit, _) in &members {
        unit.check()?;
        let sent = unit.send(&mut uploads)?;
        found.push(unit.record_forward(&mut record, &sent)?);
    }
    record.submit()?;
    let mut copies = Copies::new();
    for ((states, memory), (_, filled)) in found.iter().zip(members) {
        copies.push((states, single_mut(filled.states)?));
        if let Some(memory) = memory {
            copies.push((memory, single_mut(filled.last)?));
        }
    }
    Array::download_all(&mut copies, budget.cancel)
}

/// The gradients.
pub(super) fn backward<'a, R: Real, U: OnDevice<'a, R>>(
    members: Vec<(U, Pull<'a, R>)>,
    budget: &Budget<'_>,
) -> Result<()> {
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let mut found = Vec::with_capacity(members.len());
    for (unit, pull) in &members {
        unit.check()?;
        unit.check_bars(&pull.bars)?;
        let sent = unit.send(&mut uploads)?;
        let shape @ [_, batch, n] = unit.run().sizes();
        let (states, ct) = (uploads.own(pull.states, &shape)?, uploads.own(pull.ct, &shape)?);
        let last_ct = pull.last_ct.map(|ct| uploads.own(ct, &[batch, n, n])).transpose()?;
        let cts = (&ct, last_ct.as_ref());
        found.push(unit.record_backward(&mut record, &sent, &states, cts, &wanted(&pull.bars))?);
    }
    record.submit()?;
    let mut copies = Copies::new();
    for (found, (_, pull)) in found.iter().zip(members) {
        let mut rooms: Vec<_> = pull.bars.into_iter().map(Some).collect();
        for (at, array) in found {
            let Some(room) = rooms.get_mut(*at).and_then(Option::take) else { continue };
            let (Bar::Own(room) | Bar::Real(room)) = room else { continue };
            let (first, rest) = room.split_at_mut(array.len().min(room.len()));
            copies.push((array, single_mut(first)?));
            rooms[*at] = Some(Bar::Own(rest));
        }
    }
    Array::download_all(&mut copies, budget.cancel)
}

/// Which of the gradients that every cell has are wanted, at x, w, u, b, h0 and the bias of the activation.
pub(super) fn asked(wanted: &[bool], [x, w, u, bias, h0, own]: [usize; 6]) -> Wanted {
    let at = |i: usize| wanted.get(i).copied().unwrap_or(false);
    Wanted { x: at(x), w: at(w), u: at(u), bias: at(bias), h0: at(h0), activation_bias: at(own) }
}

/// Those gradients with their places.
pub(super) fn placed(found: Gradients, [x, w, u, bias, h0, own]: [usize; 6]) -> Vec<(usize, Array)> {
    let Gradients { x: of_x, w: of_w, u: of_u, bias: of_bias, h0: of_h0, activation_bias } = found;
    let mut all: Vec<_> = of_w.into_iter().flatten().map(|part| (w, part)).collect();
    let others = [(x, of_x), (u, of_u), (bias, of_bias), (h0, of_h0), (own, activation_bias)];
    all.extend(others.into_iter().filter_map(|(at, array)| Some((at, array?))));
    all
}
