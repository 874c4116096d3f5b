//! Recurrences on the caller's arrays: each array is uploaded once, all members of an ensemble are one submission, and all results come with
//! one wait.

use super::uploads::Uploads;
use super::{Copies, Hosted, collect, single_mut, wanted};
use crate::Array;
use crate::array::zeros;
use crate::device::Record;
use crate::objects::view;
use crate::recurrence::{self as device, Wanted};
use isometry_core::argument::Bar;
use isometry_core::recurrence::{Run, Sequence};
use isometry_core::scalar::{Scalar, parts_mut};
use isometry_core::{Budget, Cpu, Operator};
use isometry_core::{Error, Result};

/// A recurrence, and what is wanted of it: its states (T, B, n), or its gradients.
pub struct Member<'a, T: Scalar, R> {
    /// The object of the transition.
    pub object: &'a str,
    /// The transition.
    pub operator: Box<dyn Cpu<T> + 'a>,
    /// The other arguments.
    pub sequence: Sequence<'a, T>,
    /// What is read and written.
    pub results: R,
}

/// The arrays of a backward pass.
pub struct Pull<'a, T: Scalar> {
    /// (T, B, n)
    pub states: &'a [T],
    /// Their cotangents.
    pub ct: &'a [T],
    /// For the gradients of the arguments.
    pub bars: Vec<Bar<'a, T>>,
    /// For those of the transition's.
    pub of_operator: Vec<Bar<'a, T>>,
}

/// The arrays of a sequence on the device.
struct Sent {
    x: Array,
    input_weight: Array,
    h0: Option<Array>,
    bias: Option<Array>,
    activation_bias: Option<Array>,
}

/// The states.
pub fn forward<T: Scalar>(members: Vec<Member<'_, T, &mut [T]>>, budget: &Budget<'_>) -> Result<()> {
    let (members, rooms) = split(members)?;
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let mut found = Vec::with_capacity(members.len());
    for (hosted, sequence) in &members {
        let sent = Sent::new(&mut uploads, sequence)?;
        let held = hosted.transition(&mut uploads, budget)?;
        let w = flat(&view(held.object, &held.given())?.record_matrix(&mut record)?)?;
        found.push(device::record_forward(&mut record, &sent.view(&w, sequence))?);
    }
    record.submit()?;
    let mut copies = Copies::new();
    for (states, room) in found.iter().zip(rooms) {
        copies.push((states, single_mut(parts_mut(room))?));
    }
    Array::download_all(&mut copies, budget.cancel)
}

/// The gradients from the states and their cotangents.
pub fn backward<'a, T: Scalar>(members: Vec<Member<'a, T, Pull<'a, T>>>, budget: &Budget<'_>) -> Result<()> {
    let (members, mut pulls) = split(members)?;
    let mut uploads = Uploads::new()?;
    let mut record = Record::new(uploads.context())?;
    let mut found = Vec::with_capacity(members.len());
    for ((hosted, sequence), pull) in members.iter().zip(&pulls) {
        hosted.check_bars(&pull.of_operator)?;
        sequence.check_bars(&pull.bars)?;
        let sent = Sent::new(&mut uploads, sequence)?;
        let held = hosted.transition(&mut uploads, budget)?;
        let given = held.given();
        let operator = view(held.object, &given)?;
        let w = operator.record_matrix(&mut record)?;
        let shape = sequence.run.sizes();
        let (states, ct) = (uploads.own(pull.states, &shape)?, uploads.own(pull.ct, &shape)?);
        let matrix = flat(&w)?;
        let own = sent.view(&matrix, sequence);
        let bars = device::record_backward(&mut record, &own, &states, &ct, pull.wanted())?;
        let own = match &bars.w {
            Some(w_bar) => {
                let w_bar = w_bar.reshaped(w.shape())?;
                operator.record_matrix_vjp(&mut record, Some(&w), &w_bar, &wanted(&pull.of_operator))?
            }
            None => vec![],
        };
        drop(operator);
        found.push((own, bars, held.formed));
    }
    record.submit()?;
    let mut copies = Copies::new();
    let mut hosts = Vec::with_capacity(members.len());
    for (((hosted, _), pull), (own, bars, formed)) in members.iter().zip(&mut pulls).zip(&found) {
        let Pull { bars: given, of_operator: rooms, .. } = pull;
        let found = [&bars.x, &bars.input_weight, &bars.h0, &bars.bias, &bars.activation_bias];
        for (bar, found) in given.iter_mut().zip(found) {
            match (bar, found) {
                (Bar::Own(bar), Some(found)) => copies.push((found, single_mut(parts_mut(bar))?)),
                (Bar::Real(bar), Some(found)) => copies.push((found, single_mut(bar)?)),
                _ => {}
            }
        }
        if hosted.has_kernels()? {
            collect(own, rooms, &mut copies)?;
        } else if let Some(w_bar) = &bars.w {
            hosts.push((hosted, formed, w_bar, zeros::<T>(w_bar.len())?, rooms));
        }
    }
    for (_, _, w_bar, host, _) in &mut hosts {
        copies.push((w_bar, single_mut(parts_mut(host))?));
    }
    Array::download_all(&mut copies, budget.cancel)?;
    for (hosted, w, _, w_bar, rooms) in hosts {
        hosted.pull_formed(w, &w_bar, rooms, budget)?;
    }
    Ok(())
}

/// The checked operators and sequences of members, and their results.
#[allow(clippy::type_complexity, reason = "the parts of members")]
fn split<'a, T: Scalar, R>(
    members: Vec<Member<'a, T, R>>,
) -> Result<(Vec<(Hosted<'a, T>, Sequence<'a, T>)>, Vec<R>)> {
    let mut checked = Vec::with_capacity(members.len());
    let mut results = Vec::with_capacity(members.len());
    for Member { object, operator, sequence, results: own } in members {
        sequence.check()?;
        let n = sequence.run.n;
        if operator.batch() != 1 || operator.shape() != (n, n) {
            let got = format!("{:?}", operator.shape());
            return Err(Error::shape("transition", format!("one operator of shape ({n}, {n})"), got));
        }
        checked.push((Hosted::new(object, operator)?, sequence));
        results.push(own);
    }
    Ok((checked, results))
}

/// W (1, n, n) as (n, n).
fn flat(w: &Array) -> Result<Array> {
    w.reshaped(&w.shape()[1..])
}

impl<T: Scalar> Pull<'_, T> {
    fn wanted(&self) -> Wanted {
        let wanted = wanted(&self.bars);
        let at = |i: usize| wanted.get(i).copied().unwrap_or(false);
        Wanted {
            w: self.of_operator.iter().any(|bar| !matches!(bar, Bar::None)),
            x: at(0),
            input_weight: at(1),
            h0: at(2),
            bias: at(3),
            activation_bias: at(4),
        }
    }
}

impl Sent {
    fn new<'a, T: Scalar>(uploads: &mut Uploads<'a>, sequence: &Sequence<'a, T>) -> Result<Self> {
        let Run { steps, batch, features, n, x, h0, activation_bias, .. } = sequence.run;
        Ok(Sent {
            x: uploads.own(x, &[steps, batch, features])?,
            input_weight: uploads.own(sequence.input_weight, &[n, features])?,
            h0: h0.map(|h0| uploads.own(h0, &[batch, n])).transpose()?,
            bias: sequence.bias.map(|bias| uploads.own(bias, &[n])).transpose()?,
            activation_bias: activation_bias.map(|bias| uploads.real(bias, &[bias.len()])).transpose()?,
        })
    }

    fn view<'a, T: Scalar>(&'a self, w: &'a Array, sequence: &Sequence<'a, T>) -> device::Sequence<'a> {
        device::Sequence {
            w,
            x: &self.x,
            input_weight: &self.input_weight,
            h0: self.h0.as_ref(),
            bias: self.bias.as_ref(),
            activation: sequence.run.activation,
            activation_bias: self.activation_bias.as_ref(),
            on_input: sequence.on_input,
            lengths: sequence.run.lengths,
            reverse: sequence.run.reverse,
        }
    }
}
