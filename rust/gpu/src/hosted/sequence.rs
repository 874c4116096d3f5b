//! Cells by their names: every array is uploaded once, all members of an ensemble are one submission, and all results come with one wait.

use super::arrays::{Results, Uploads};
use super::formed::{self, Key};
use super::{Held, has_kernels, local, wanted};
use crate::Array;
use crate::array::zeros;
use crate::cell::{CELLS, Cell, Gradients, Outcome};
use crate::device::Record;
use crate::objects::view;
use isometry_core::argument::{self, Bar, Given};
use isometry_core::internal::sizes::work;
use isometry_core::recurrence::Call;
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Error, Result};

/// Bytes of the arrays of members that are submitted together; a member itself may have more.
const TOGETHER: usize = 1 << 28;

/// A call, and rooms for its states and its memory.
pub type Forward<'a, T> = (Call<'a, T>, Bar<'a, T>, Bar<'a, T>);

/// A call, its states, their cotangents, those of the memory, and rooms for the gradients of its arguments and of those of its operator.
pub type Backward<'a, T> = (Call<'a, T>, [Given<'a, T>; 3], Vec<Bar<'a, T>>, Vec<Bar<'a, T>>);

/// The states of members of the same sizes.
pub fn forward<T: Scalar>(members: Vec<Forward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
    let Some((first, ..)) = members.first() else { return Ok(()) };
    let bytes = bytes(first)?;
    together(members, bytes, |members| {
        let (calls, rooms): (Vec<_>, Vec<_>) =
            members.into_iter().map(|(call, states, memory)| (call, (states, memory))).unzip();
        let (mut uploads, mut results) = (Uploads::new()?, Results::default());
        let mut record = Record::until(uploads.context(), budget.cancel)?;
        let mut found = Vec::with_capacity(calls.len());
        let mut matrices = Vec::with_capacity(calls.len());
        for call in &calls {
            let held = transition(&mut uploads, call, budget)?;
            let w = held.as_ref().map(|held| matrix(&mut record, held)).transpose()?;
            let cell = Cell::new(&mut uploads, call, w.as_ref().map(flat).transpose()?)?;
            found.push((cell.kernels.forward)(&mut record, &cell)?);
            matrices.extend(held.and_then(|held| held.key).zip(w));
        }
        record.submit()?;
        matrices.into_iter().for_each(|(key, w)| formed::keep(key, w));
        for ((states, memory), (to, last)) in found.iter().zip(rooms) {
            results.put(states, to)?;
            memory.as_ref().map_or(Ok(()), |memory| results.put(memory, last))?;
        }
        results.wait(budget)
    })
}

/// Their gradients.
pub fn backward<T: Scalar>(members: Vec<Backward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
    let Some((first, ..)) = members.first() else { return Ok(()) };
    let bytes = bytes(first)?;
    together(members, bytes, |members| {
        let mut rooms = Vec::with_capacity(members.len());
        let mut calls = Vec::with_capacity(members.len());
        for (call, given, bars, of_operator) in members {
            calls.push((call, given));
            rooms.push((bars, of_operator));
        }
        let mut uploads = Uploads::new()?;
        let mut record = Record::until(uploads.context(), budget.cancel)?;
        let mut found = Vec::with_capacity(calls.len());
        for ((call, [states, ct, last_ct]), (bars, of_operator)) in calls.iter().zip(&rooms) {
            let held = transition(&mut uploads, call, budget)?;
            let views = held.as_ref().map_or(vec![], Held::views);
            let operator = held.as_ref().map(|held| view(held.object, &views)).transpose()?;
            let w = held.as_ref().map(|held| matrix(&mut record, held)).transpose()?;
            let cell = Cell::new(&mut uploads, call, w.as_ref().map(flat).transpose()?)?;
            let shape = [cell.steps, cell.batch, cell.state];
            let last_ct = uploads.array("last_ct", last_ct, &[cell.batch, cell.n, cell.n])?;
            let outcome = Outcome {
                states: uploads.needed("states", states, &shape)?,
                ct: uploads.needed("ct", ct, &shape)?,
                last_ct,
            };
            let own = wanted(of_operator);
            let mut out = Gradients::new(call.cell, &wanted(bars), own.contains(&true));
            (cell.kernels.backward)(&mut record, &cell, &outcome, &mut out)?;
            let (of_arguments, w_bar) = out.found();
            let of_operator = match (&operator, &w, &held, &w_bar) {
                (Some(operator), Some(w), Some(held), Some(w_bar)) if held.formed.is_empty() => {
                    let w_bar = w_bar.reshaped(w.shape())?;
                    operator.record_matrix_vjp(&mut record, Some(w), &w_bar, &own)?
                }
                _ => vec![],
            };
            drop(operator);
            found.push((of_arguments, of_operator, w_bar, held.map_or(vec![], |held| held.formed)));
        }
        record.submit()?;
        // of members whose W the CPU has formed
        let mut left = Vec::new();
        let mut results = Results::default();
        for (((call, _), (bars, rooms)), found) in calls.iter().zip(rooms).zip(&found) {
            let (of_arguments, of_operator, w_bar, formed) = found;
            results.put_all(of_arguments, bars)?;
            match (w_bar, &call.transition) {
                (Some(w_bar), Some(object)) if !formed.is_empty() => {
                    left.push((formed, w_bar, zeros::<T>(w_bar.len())?, object, rooms));
                }
                _ => results.put_all(of_operator, rooms)?,
            }
        }
        for (_, w_bar, host, ..) in &mut left {
            results.put(w_bar, Bar::Own(host))?;
        }
        results.wait(budget)?;
        for (formed, _, w_bar, (object, given), rooms) in left {
            let ct = Given { shape: &[], array: argument::Array::Own(&w_bar) };
            local::pull(object, given, Some(formed), &ct, rooms, budget)?;
        }
        Ok(())
    })
}

/// The operator of a call on the device, if it has one.
fn transition<'b, 'a, T: Scalar>(
    uploads: &mut Uploads<'a>,
    call: &'b Call<'a, T>,
    budget: &Budget<'_>,
) -> Result<Option<Held<'b, T>>> {
    let Some((object, given)) = &call.transition else { return Ok(None) };
    Held::new(uploads, object, given, has_kernels(object, given)?, Key::new(object, given), budget).map(Some)
}

/// W (1, n, n), which the call before may have formed.
fn matrix<T: Scalar>(record: &mut Record<'_>, held: &Held<'_, T>) -> Result<Array> {
    let found = held.key.as_ref().and_then(|key| formed::find(record.context(), key));
    found.map_or_else(|| view(held.object, &held.views())?.record_matrix(record), Ok)
}

/// W (1, n, n) as (n, n).
fn flat(w: &Array) -> Result<Array> {
    match w.shape() {
        &[1, p, q] if p == q => w.reshaped(&[p, q]),
        shape => Err(Error::shape("transition", "one square operator", format!("{shape:?}"))),
    }
}

/// Bytes of a member's arrays: its states, the states before each step, their cotangents, the widest array over all steps, and its
/// arguments, those of its operator and W, with their gradients.
fn bytes<T: Scalar>(call: &Call<'_, T>) -> Result<usize> {
    let [steps, batch, _, n] = call.sizes()?;
    let widest = CELLS.iter().find(|cell| cell.name == call.cell.name).map_or(0, |cell| cell.most);
    let operator = call.transition.as_ref().map_or(&[][..], |(_, given)| given);
    let given: usize = call.given.iter().chain(operator).map(|given| work(given.shape)).sum();
    let given = given.saturating_add(if call.transition.is_some() { work(&[n, n]) } else { 0 });
    let states = work(&[steps, batch, n, 3 * call.cell.width + widest]);
    Ok(states.saturating_add(given.saturating_mul(2)).saturating_mul(size_of::<T>()))
}

/// Calls `f` with as many members as are submitted together.
fn together<M>(members: Vec<M>, bytes: usize, f: impl Fn(Vec<M>) -> Result<()>) -> Result<()> {
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
