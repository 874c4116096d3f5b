//! What the CPU computes of an object without kernels on the device, on copies of the arrays that are there.

use super::arrays::{fill, resident};
use super::{field_of, single, single_mut};
use crate::array::zeros;
use crate::device::context;
use crate::{Array, Field};
use isometry_core::argument::{self, Argument, Bar, Given};
use isometry_core::internal::sizes::size;
use isometry_core::operators::{arguments, view};
use isometry_core::scalar::{Scalar, parts, parts_mut};
use isometry_core::{Budget, Error, Result, Saves};

/// The numbers of an array of the device, by its field.
enum Copy<T: Scalar> {
    None,
    Own(Vec<T>),
    Real(Vec<T::Real>),
}

impl<T: Scalar> Copy<T> {
    fn zeros(real: bool, len: usize) -> Result<Self> {
        if real { zeros(len).map(Copy::Real) } else { zeros(len).map(Copy::Own) }
    }

    /// Of an array that is on the device.
    fn of(given: &Given<'_, T>, real: bool, budget: &Budget<'_>) -> Result<Self> {
        let argument::Array::Remote(remote) = given.array else { return Ok(Copy::None) };
        let array = resident(remote)?;
        let mut copy = Self::zeros(real, array.len())?;
        let numbers = match &mut copy {
            Copy::Own(x) => single_mut(parts_mut(x))?,
            Copy::Real(x) => single_mut(x)?,
            Copy::None => &mut [],
        };
        array.download_into(numbers, budget.cancel)?;
        Ok(copy)
    }

    /// The array of the caller, or this copy.
    fn view<'a>(&'a self, given: &Given<'a, T>) -> Given<'a, T> {
        let array = match self {
            Copy::None => given.array,
            Copy::Own(x) => argument::Array::Own(x),
            Copy::Real(x) => argument::Array::Real(x),
        };
        Given { array, ..*given }
    }

    fn bar(&mut self) -> Bar<'_, T> {
        match self {
            Copy::None => Bar::None,
            Copy::Own(x) => Bar::Own(x),
            Copy::Real(x) => Bar::Real(x),
        }
    }
}

/// W, and its axes.
pub(super) fn matrix<T: Scalar>(
    object: &str,
    given: &[Given<'_, T>],
    budget: &Budget<'_>,
) -> Result<(Vec<T>, [usize; 3])> {
    let copies = copied(object, given, budget)?;
    let operator = view(object, &views(given, &copies))?;
    let (batch, (p, q)) = (operator.batch(), operator.shape());
    let mut w = zeros(size("matrix", &[batch, p, q])?)?;
    operator.matrix(&mut w, None, budget)?;
    Ok((w, [batch, p, q]))
}

/// Writes W.
pub(super) fn write<T: Scalar>(
    object: &str,
    given: &[Given<'_, T>],
    out: Bar<'_, T>,
    budget: &Budget<'_>,
) -> Result<()> {
    let (w, shape) = matrix(object, given, budget)?;
    match out {
        Bar::Own(out) if out.len() == w.len() => out.copy_from_slice(&w),
        Bar::Remote(room) => {
            fill(room, &Array::upload(&context()?, field_of::<T>()?, &shape, single(parts(&w))?)?)?
        }
        _ => return Err(Error::shape("out", format!("{} numbers of W", w.len()), "others")),
    }
    Ok(())
}

/// The gradients of the arguments from that of W, and from W, if it is given.
pub(super) fn pull<T: Scalar>(
    object: &str,
    given: &[Given<'_, T>],
    w: Option<&[T]>,
    ct: &Given<'_, T>,
    mut bars: Vec<Bar<'_, T>>,
    budget: &Budget<'_>,
) -> Result<()> {
    let (copies, list) = (copied(object, given, budget)?, arguments(object)?);
    let operator = view(object, &views(given, &copies))?;
    let own_ct = Copy::of(ct, false, budget)?;
    let argument::Array::Own(ct) = own_ct.view(ct).array else {
        return Err(Error::value("ct", "must be given"));
    };
    let rooms = bars.iter().enumerate().map(|(i, bar)| match (bar, given.get(i)) {
        (Bar::Remote(_), Some(given)) => Copy::zeros(nth(list, i)?.kind.real(), given.shape.iter().product()),
        _ => Ok(Copy::None),
    });
    let mut rooms: Vec<_> = rooms.collect::<Result<_>>()?;
    let mut own: Vec<_> = bars
        .iter_mut()
        .zip(&mut rooms)
        .map(|(bar, room)| if let Bar::Remote(_) = bar { room.bar() } else { bar.again() })
        .collect();
    let w = w.filter(|_| operator.matrix_saves() == Ok(Saves::Result));
    operator.matrix_vjp(w, ct, &mut own, budget)?;
    drop(own);
    for ((bar, room), given) in bars.into_iter().zip(&rooms).zip(given) {
        let (field, numbers) = match room {
            Copy::None => continue,
            Copy::Own(x) => (field_of::<T>()?, single(parts(x))?),
            Copy::Real(x) => (Field::Real, single(x)?),
        };
        if let Bar::Remote(room) = bar {
            fill(room, &Array::upload(&context()?, field, given.shape, numbers)?)?;
        }
    }
    Ok(())
}

fn copied<T: Scalar>(object: &str, given: &[Given<'_, T>], budget: &Budget<'_>) -> Result<Vec<Copy<T>>> {
    let list = arguments(object)?;
    let one = |(i, given): (usize, &Given<'_, T>)| Copy::of(given, nth(list, i)?.kind.real(), budget);
    given.iter().enumerate().map(one).collect()
}

fn views<'a, T: Scalar>(given: &[Given<'a, T>], copies: &'a [Copy<T>]) -> Vec<Given<'a, T>> {
    given.iter().zip(copies).map(|(given, copy)| copy.view(given)).collect()
}

/// The i-th argument; a list includes all that follow.
fn nth(list: &'static [Argument], i: usize) -> Result<&'static Argument> {
    let found = list.get(i).or_else(|| list.last().filter(|last| last.list));
    found.ok_or_else(|| Error::shape("arguments", format!("{} arrays", list.len()), i + 1))
}
