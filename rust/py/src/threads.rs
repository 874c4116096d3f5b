//! Calls on threads of the CPU.

use crate::arrays::{Any, Number, Optional, Output, empty, fits};
use isometry_core::argument::{Array, Bar, Given};
use isometry_core::internal::Task;
use isometry_core::internal::sizes::{size, work};
use isometry_core::operators::view;
use isometry_core::recurrence::{Call, Outcome, Written, ensemble, sequence, sequence_vjp};
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu, Error, Result, Saves, Side};
use pyo3::prelude::*;

/// A call, what it fills, its memory, empty without one, and what it saves.
type Forward<'a, T> = (Call<'a, T>, Written<'a, T>, &'a mut [T], Option<&'a mut [T]>);

/// A call, its results, and the rooms for the gradients of its arguments and of those of its operator.
type Backward<'a, T> = (Call<'a, T>, Outcome<'a, T>, Vec<Bar<'a, T>>, Vec<Bar<'a, T>>);

/// What a forward call saved.
pub enum SavedValues {
    Nothing,
    Result,
    Own(Py<PyAny>),
}

impl SavedValues {
    pub fn array<'py>(self, result: &Any<'py>) -> Optional<'py> {
        match self {
            SavedValues::Nothing => None,
            SavedValues::Result => Some(result.clone()),
            SavedValues::Own(array) => Some(array.into_bound(result.py())),
        }
    }
}

/// Runs `f`, detached from the interpreter, with an array for what it saves, if it saves anything and `save`
/// is given: an array of its own, or its result.
fn keeping<T: Number>(
    save: bool,
    saves: Saves,
    batch: usize,
    f: impl FnOnce(Option<&mut [T]>) -> Result<()>,
) -> Result<SavedValues> {
    match saves {
        Saves::Result if save => f(None).map(|()| SavedValues::Result),
        Saves::Elements(each) if save && each > 0 => {
            let len = size("saved", &[batch, each])?;
            // none in a daemon thread that outlives the interpreter
            let made = Python::try_attach(|py| {
                let array = empty::<T>(py, &[len])?;
                let data = Output::<T>::new("saved", &array)?.slice().as_mut_ptr();
                Ok((array.unbind(), data))
            });
            let lack = |_: PyErr| Error::OutOfMemory { bytes: work(&[len, size_of::<T>()]) };
            let (array, data) = made.ok_or(Error::Interrupted)?.map_err(lack)?;
            // SAFETY: a new array of this many elements, not shared yet; `array` keeps it alive.
            f(Some(unsafe { std::slice::from_raw_parts_mut(data, len) }))?;
            Ok(SavedValues::Own(array))
        }
        _ => f(None).map(|()| SavedValues::Nothing),
    }
}

/// Rows per matrix of an array x (..., features): the product of all leading axes except the batch.
fn rows<T: Number>(shape: &[usize], operator: &dyn Cpu<T>, side: Side) -> Result<usize> {
    let ((from, _), batch) = (operator.features(side), operator.batch());
    let own = shape.len() > usize::from(batch != 1) && shape.last() == Some(&from);
    if !own || (batch != 1 && shape[0] != batch) {
        return Err(Error::shape("x", format!("shape ({batch}, rows, {from})"), format!("{shape:?}")));
    }
    Ok(work(&shape[usize::from(batch != 1)..shape.len() - 1]))
}

/// The shape of the result of rows x.
fn mapped<T: Number>(shape: &[usize], operator: &dyn Cpu<T>, side: Side) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = operator.features(side).1;
    }
    shape
}

/// Runs a call on threads of the CPU, with an array for what it saves if `save`; `out` is the shape of its result.
pub fn on_threads<T: Number>(
    object: &str,
    given: &[Given<'_, T>],
    task: Task<'_, T>,
    out: &[usize],
    save: bool,
    budget: &Budget<'_>,
) -> Result<SavedValues> {
    let operator = view(object, given)?;
    let (batch, (p, q)) = (operator.batch(), operator.shape());
    match task {
        Task::Matrix(w) => {
            fits("out", out, &[batch, p, q])?;
            let w = w.own().ok_or_else(elsewhere)?;
            keeping(save, operator.matrix_saves()?, batch, |kept| operator.matrix(w, kept, budget))
        }
        Task::MatrixVjp(saved, ct, mut bars) => {
            fits("ct", ct.shape, &[batch, p, q])?;
            operator.matrix_vjp(some(&saved), numbers(&ct)?, &mut bars, budget)?;
            Ok(SavedValues::Nothing)
        }
        Task::Apply(x, side, c) => {
            let rows = rows(x.shape, &*operator, side)?;
            fits("out", out, &mapped(x.shape, &*operator, side))?;
            let (x, c, saves) =
                (numbers(&x)?, c.own().ok_or_else(elsewhere)?, operator.apply_saves(rows, side)?);
            keeping(save, saves, batch, |kept| operator.apply(x, rows, side, c, kept, budget))
        }
        Task::ApplyVjp([saved, x, ct], side, mut bars, x_bar) => {
            let rows = rows(x.shape, &*operator, side)?;
            fits("ct", ct.shape, &mapped(x.shape, &*operator, side))?;
            let (x, ct) = (numbers(&x)?, numbers(&ct)?);
            operator.apply_vjp(some(&saved), x, ct, rows, side, &mut bars, x_bar.own(), budget)?;
            Ok(SavedValues::Nothing)
        }
    }
}

fn some<'a, T: Number>(given: &Given<'a, T>) -> Option<&'a [T]> {
    if let Array::Own(numbers) = given.array { Some(numbers) } else { None }
}

fn numbers<'a, T: Number>(given: &Given<'a, T>) -> Result<&'a [T]> {
    some(given).ok_or_else(elsewhere)
}

fn elsewhere() -> Error {
    Error::Dtype("arrays: expected arrays of the CPU".into())
}

/// The states of calls of the same sizes T, B, d and n, and what is saved for backward, on threads of the CPU.
pub fn sequences<T: Scalar>(
    calls: Vec<Forward<'_, T>>,
    sizes: [usize; 4],
    budget: &Budget<'_>,
) -> Result<()> {
    each::<T, _>(calls, sizes, budget, |(call, to, last, saved), budget| {
        sequence(call, to, last, saved, budget)
    })
}

/// Their gradients.
pub fn sequences_vjp<T: Scalar>(
    calls: Vec<Backward<'_, T>>,
    sizes: [usize; 4],
    budget: &Budget<'_>,
) -> Result<()> {
    each::<T, _>(calls, sizes, budget, |(call, outcome, mut bars, mut of_operator), budget| {
        sequence_vjp(call, &outcome, &mut bars, &mut of_operator, budget)
    })
}

/// One call, or those of the members of an ensemble.
fn each<T: Scalar, P: Send>(
    mut calls: Vec<P>,
    sizes: [usize; 4],
    budget: &Budget<'_>,
    f: impl Fn(P, &Budget<'_>) -> Result<()> + Sync,
) -> Result<()> {
    match calls.pop() {
        Some(only) if calls.is_empty() => f(only, budget),
        last => ensemble::<T, _>(calls.into_iter().chain(last).collect(), sizes, budget, f),
    }
}
