//! Cells over sequences on the GPU, of arrays there or copied there.

use super::members::each;
use super::{Arrays, States};
use crate::arrays::{Any, Input, Number, Optional, fits};
use crate::detached::run;
use crate::error::exception;
use crate::operator::{ArgumentBars, room};
use crate::place::Place;

use isometry_core::argument::{Array, Bar, Given};
use isometry_core::{Budget, Error};
use isometry_gpu::hosted;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Fills all states, and the memory after them if there is one.
pub(super) fn sequence<T: Number>(
    py: Python<'_>,
    arrays: &Arrays<'_, T>,
    states: States<'_>,
    memory: Optional<'_>,
) -> PyResult<()> {
    let ([of_states, of_memory, _], count) = (arrays.results(), arrays.count());
    let mut states = room::<T>(Place::Gpu, "states", &all(states)?, &of_states)?;
    let mut memory = memory.map(|memory| room::<T>(Place::Gpu, "memory", &memory, &of_memory)).transpose()?;
    let memory = memory.as_mut().map_or(Bar::None, |memory| memory.bar().0);
    let mut rooms = each(vec![states.bar().0, memory], count);
    let mut calls = Vec::with_capacity(count);
    for call in arrays.calls() {
        let mut own = rooms.iter_mut().map(|rooms| rooms.next().unwrap_or_default());
        calls.push((call, own.next().unwrap_or_default(), own.next().unwrap_or_default()));
    }
    run(py, |cancel| hosted::forward(calls, &Budget { threads: Place::Gpu.threads(), cancel }))
}

/// The gradients from all states, their cotangents and those of the memory.
pub(super) fn sequence_vjp<T: Number>(
    py: Python<'_>,
    arrays: &Arrays<'_, T>,
    states: States<'_>,
    (ct, memory_ct): (Any<'_>, Optional<'_>),
    [bars, transition_bars]: [Bound<'_, PyTuple>; 2],
) -> PyResult<()> {
    let ([of_states, of_memory, _], count) = (arrays.results(), arrays.count());
    let states = read::<T>("states", &all(states)?, &of_states)?;
    let ct = read::<T>("ct", &ct, &of_states)?;
    let memory_ct = memory_ct.map(|ct| read::<T>("last_ct", &ct, &of_memory)).transpose()?;
    let none = Given { shape: &[], array: Array::None };
    let given = [states.given(), ct.given(), memory_ct.as_ref().map_or(none, Input::given)];
    let mut own = ArgumentBars::of(arrays.cell.arguments, &arrays.arrays, &bars, arrays.members, Place::Gpu)?;
    let of_object = arrays.object.as_ref();
    let mut of_object = of_object
        .map(|(object, own)| ArgumentBars::new(object, own, &transition_bars, Place::Gpu))
        .transpose()?;
    let mut own = each(own.view(), count);
    let mut of_object = each(of_object.as_mut().map_or(vec![], ArgumentBars::view), count);
    let mut calls = Vec::with_capacity(count);
    for (i, call) in arrays.calls().into_iter().enumerate() {
        let given = given.map(|given| if arrays.members.is_some() { given.member(i) } else { given });
        let [own, of_object] =
            [&mut own, &mut of_object].map(|bars| bars.iter_mut().filter_map(Iterator::next).collect());
        calls.push((call, given, own, of_object));
    }
    run(py, |cancel| hosted::backward(calls, &Budget { threads: Place::Gpu.threads(), cancel }))
}

/// An array of that shape.
fn read<'py, T: Number>(name: &'static str, array: &Any<'py>, shape: &[usize]) -> PyResult<Input<'py, T>> {
    let input = Input::at(Place::Gpu, name, array)?;
    fits(name, input.shape(), shape).map_err(exception)?;
    Ok(input)
}

/// All states: the GPU neither writes nor reads less.
fn all(states: States<'_>) -> PyResult<Any<'_>> {
    let unserved = || exception(Error::Unsupported("backend='gpu' computes and reads all states".into()));
    match states.parts()? {
        ((Some(states), None, None, _), None) => Ok(states),
        _ => Err(unserved()),
    }
}
