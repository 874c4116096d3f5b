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
use isometry_core::recurrence::{Gradients, Run, Sequence};
use isometry_core::scalar::{Scalar, parts_mut};
use isometry_core::{Budget, Cpu, Operator};
use isometry_core::{Error, Result};

/// Bytes of the states of members that are submitted together; a member itself may have more.
const TOGETHER: usize = 1 << 28;

/// A recurrence, and what is wanted of it: its states (T, B, n), or its gradients.
pub struct Member<'a, T: Scalar, R> {
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
    /// For the gradients of the transition's arguments.
    pub bars: Vec<Bar<'a, T>>,
    /// For all others.
    pub gradients: Gradients<'a, T>,
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
pub fn forward<'a, T: Scalar>(
    object: &str,
    members: Vec<Member<'a, T, &'a mut [T]>>,
    budget: &Budget<'_>,
) -> Result<()> {
    together(members, |members| {
        let (members, rooms) = split(object, members)?;
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
    })
}

/// The gradients from the states and their cotangents.
pub fn backward<'a, T: Scalar>(
    object: &str,
    members: Vec<Member<'a, T, Pull<'a, T>>>,
    budget: &Budget<'_>,
) -> Result<()> {
    together(members, |members| {
        let (members, mut pulls) = split(object, members)?;
        let mut uploads = Uploads::new()?;
        let mut record = Record::new(uploads.context())?;
        let mut found = Vec::with_capacity(members.len());
        for ((hosted, sequence), pull) in members.iter().zip(&pulls) {
            hosted.check_bars(&pull.bars)?;
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
                    operator.record_matrix_vjp(&mut record, Some(&w), &w_bar, &wanted(&pull.bars))?
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
            let Pull { bars: rooms, gradients, .. } = pull;
            let Gradients { x, input_weight, h0, bias, activation_bias, .. } = gradients;
            for (found, to) in
                [(&bars.x, x), (&bars.input_weight, input_weight), (&bars.h0, h0), (&bars.bias, bias)]
            {
                if let (Some(found), Some(to)) = (found, to) {
                    copies.push((found, single_mut(parts_mut(to))?));
                }
            }
            if let (Some(found), Some(to)) = (&bars.activation_bias, activation_bias) {
                copies.push((found, single_mut(to)?));
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
    })
}

/// Calls `f` with as many members as are submitted together.
fn together<'a, T: Scalar, R>(
    members: Vec<Member<'a, T, R>>,
    f: impl Fn(Vec<Member<'a, T, R>>) -> Result<()>,
) -> Result<()> {
    let Some(first) = members.first() else { return Ok(()) };
    let bytes = first.sequence.run.sizes().iter().fold(size_of::<T>(), |all, &size| all.saturating_mul(size));
    let most = (TOGETHER / bytes.max(1)).max(1);
    let mut members = members.into_iter();
    loop {
        let part: Vec<_> = members.by_ref().take(most).collect();
        if part.is_empty() {
            return Ok(());
        }
        f(part)?;
    }
}

/// The checked operators and sequences of members, and their results.
#[allow(clippy::type_complexity, reason = "the parts of members")]
fn split<'a, 'o, T: Scalar, R>(
    object: &'o str,
    members: Vec<Member<'a, T, R>>,
) -> Result<(Vec<(Hosted<'o, T>, Sequence<'a, T>)>, Vec<R>)>
where
    'a: 'o,
{
    let mut checked = Vec::with_capacity(members.len());
    let mut results = Vec::with_capacity(members.len());
    for Member { operator, sequence, results: own } in members {
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
        let Gradients { x, input_weight, h0, bias, activation_bias, .. } = &self.gradients;
        Wanted {
            w: self.bars.iter().any(|bar| !matches!(bar, Bar::None)),
            x: x.is_some(),
            input_weight: input_weight.is_some(),
            h0: h0.is_some(),
            bias: bias.is_some(),
            activation_bias: activation_bias.is_some(),
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
