//! Calls on arrays of the caller, or of the device: the former are uploaded and their results downloaded. Objects without
//! kernels on the device, and arguments for which the kernels are not accurate, go through their matrix, which the CPU forms.

mod arrays;
mod delta;
mod formed;
mod local;
mod sequence;
#[cfg(test)]
mod tests;

pub(crate) use arrays::Uploads;
pub use delta::{DeltaCall, delta_rule, delta_rule_vjp};
pub use sequence::{Backward, Forward, backward, forward};

use crate::array::zeros;
use crate::cell::CELLS;
use crate::objects::{OBJECTS, holds, view};
use crate::operator::Operator;
use crate::{Array, Field};
use arrays::Results;
use formed::Key;
use isometry_core::argument::{self, Bar, Given};
use isometry_core::internal::Task;
use isometry_core::internal::sizes::work;
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu, Error, Result, Saves, operators};
use std::any::TypeId;

/// The objects that have kernels here; all others go through their matrix.
pub fn objects() -> Vec<&'static str> {
    OBJECTS.to_vec()
}

/// The cells that have kernels here.
pub fn cells() -> Vec<&'static str> {
    CELLS.iter().map(|cell| cell.name).collect()
}

/// Runs a call of an operator; whether the matrix it has computed is what backward starts from.
pub fn operator<T: Scalar>(
    object: &str,
    given: &[Given<'_, T>],
    task: Task<'_, T>,
    budget: &Budget<'_>,
) -> Result<bool> {
    field_of::<T>()?;
    let (kernels, mut results) = (has_kernels(object, given)?, Results::default());
    let task = match task {
        Task::Matrix(out) if !kernels => {
            return local::write(object, given, out, budget).map(|()| false);
        }
        Task::MatrixVjp(_, ct, bars) if !kernels => {
            return local::pull(object, given, None, &ct, bars, budget).map(|()| false);
        }
        task => task,
    };
    let formed_there = matches!(task, Task::Matrix(_)) && !given.iter().any(remote);
    let mut uploads = Uploads::new()?;
    let held = Held::new(&mut uploads, object, given, kernels, None, budget)?;
    let views = held.views();
    let operator = view(held.object, &views)?;
    let shape = operator.sizes();
    match task {
        Task::Matrix(out) => results.put(&operator.matrix(budget.cancel)?, out)?,
        Task::MatrixVjp(saved, ct, bars) => {
            let w = uploads.array("saved", &saved, &shape)?;
            let ct = uploads.needed("ct", &ct, &shape)?;
            results.put_all(&operator.matrix_vjp(w.as_ref(), &ct, &wanted(&bars), budget.cancel)?, bars)?;
        }
        Task::Apply(x, side, out) => {
            let x = rows(&mut uploads, "x", &x, &*operator, operator.features(side).0)?;
            results.put(&operator.apply(&x, side, budget.cancel)?, out)?;
        }
        Task::ApplyVjp([_, x, ct], side, bars, x_bar) => {
            let (from, into) = operator.features(side);
            let x = rows(&mut uploads, "x", &x, &*operator, from)?;
            let ct = rows(&mut uploads, "ct", &ct, &*operator, into)?;
            let own = if kernels { wanted(&bars) } else { vec![wanted(&bars).contains(&true)] };
            let pulled =
                operator.apply_vjp(&x, &ct, side, &own, !matches!(x_bar, Bar::None), budget.cancel)?;
            pulled.x.map_or(Ok(()), |found| results.put(&found, x_bar))?;
            if kernels {
                results.put_all(&pulled.arguments, bars)?;
            } else if let [Some(w_bar)] = &pulled.arguments[..] {
                pull(&held.formed, w_bar, (object, given), bars, results, budget)?;
                return Ok(false);
            }
        }
    }
    results.wait(budget)?;
    Ok(formed_there && operators::view(object, given)?.matrix_saves()? == Saves::Result)
}

/// Waits for the results and the gradient of a matrix that the CPU has formed, which pulls it back.
fn pull<T: Scalar>(
    formed: &[T],
    w_bar: &Array,
    (object, given): (&str, &[Given<'_, T>]),
    bars: Vec<Bar<'_, T>>,
    results: Results<'_>,
    budget: &Budget<'_>,
) -> Result<()> {
    let mut ct = zeros::<T>(w_bar.len())?;
    let mut results = results; // of as short a life as ct
    results.put(w_bar, Bar::Own(&mut ct))?;
    results.wait(budget)?;
    let ct = Given { shape: &[], array: argument::Array::Own(&ct) };
    local::pull(object, given, Some(formed), &ct, bars, budget)
}

/// Rows (batch, rows, n) on the device.
fn rows<'a, T: Scalar>(
    uploads: &mut Uploads<'a>,
    name: &'static str,
    x: &Given<'a, T>,
    operator: &dyn Operator,
    n: usize,
) -> Result<Array> {
    let (batch, all) = (operator.sizes()[0], work(&x.shape[..x.shape.len().saturating_sub(1)]));
    uploads.needed(name, x, &[batch, all / batch.max(1), n])
}

/// An object with kernels, and its arguments on the device.
struct Held<'o, T> {
    object: &'o str,
    arrays: Vec<Option<Array>>,
    /// The matrix, if the CPU has formed it.
    formed: Vec<T>,
    /// What later calls find the matrix by.
    key: Option<Key>,
}

impl<'o, T: Scalar> Held<'o, T> {
    /// The operator on the device, with this key, to be filled; where its kernels are not used, its matrix, which the CPU forms.
    fn new<'a>(
        uploads: &mut Uploads<'a>,
        object: &'o str,
        given: &[Given<'a, T>],
        kernels: bool,
        mut key: Option<Key>,
        budget: &Budget<'_>,
    ) -> Result<Self> {
        if !kernels {
            let (formed, shape) = local::matrix(object, given, budget)?;
            let arrays = vec![Some(uploads.made(&formed, &shape)?)];
            return Ok(Held { object: "dense", arrays, formed, key: None });
        }
        let mut arrays = Vec::with_capacity(given.len());
        for (argument, given) in operators::arguments(object)?.iter().zip(given) {
            let axes = given.shape.len().saturating_sub(argument.rank());
            let shape = [&[work(&given.shape[..axes])], &given.shape[axes..]].concat();
            let sent = uploads.sent(argument.name, given, &shape, key.is_some())?;
            key.iter_mut().for_each(|key| key.push(sent.as_ref()));
            arrays.push(sent.map(|(array, _)| array));
        }
        Ok(Held { object, arrays, formed: vec![], key })
    }

    fn views(&self) -> Vec<Option<&Array>> {
        self.arrays.iter().map(Option::as_ref).collect()
    }
}

/// Whether the kernels of the device are used for these arguments. Values on the device are not checked.
fn has_kernels<T: Scalar>(object: &str, given: &[Given<'_, T>]) -> Result<bool> {
    if !OBJECTS.contains(&object) || given.iter().any(remote) {
        return Ok(OBJECTS.contains(&object));
    }
    let operator = operators::view(object, given)?;
    Ok(!empty(&*operator) && holds(object, &*operator)?)
}

/// Whether there is nothing to compute; the CPU handles this case.
fn empty<T: Scalar>(operator: &dyn Cpu<T>) -> bool {
    let (p, q) = operator.shape();
    operator.batch() == 0 || p == 0 || q == 0
}

/// Whether an array is on the device.
fn remote<T: Scalar>(given: &Given<'_, T>) -> bool {
    matches!(given.array, argument::Array::Remote(_))
}

/// float32 or complex64.
pub fn field_of<T: Scalar>() -> Result<Field> {
    if TypeId::of::<T::Real>() != TypeId::of::<f32>() {
        let text = "the GPU computes in float32 and complex64: convert the arrays, or use backend=\"cpu\"";
        return Err(Error::Dtype(text.into()));
    }
    Ok(if T::PARTS == 2 { Field::Complex } else { Field::Real })
}

/// The numbers of a type that was found to be f32.
fn single<R: 'static>(x: &[R]) -> Result<&[f32]> {
    if TypeId::of::<R>() != TypeId::of::<f32>() {
        return Err(Error::Device("not single precision".into()));
    }
    // SAFETY: R is f32.
    Ok(unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) })
}

fn single_mut<R: 'static>(x: &mut [R]) -> Result<&mut [f32]> {
    if TypeId::of::<R>() != TypeId::of::<f32>() {
        return Err(Error::Device("not single precision".into()));
    }
    // SAFETY: R is f32.
    Ok(unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) })
}

fn wanted<T: Scalar>(bars: &[Bar<'_, T>]) -> Vec<bool> {
    bars.iter().map(|bar| !matches!(bar, Bar::None)).collect()
}
