//! The arrays of a call on their way to the device, each once, and its results on their way back.

use super::{field_of, single, single_mut};
use crate::array::zeros;
use crate::device::{Context, context};
use crate::{Array, Field, Room};
use isometry_core::argument::{self, Bar, Given, Remote};
use isometry_core::scalar::{Scalar, parts, parts_mut};
use isometry_core::{Budget, Error, Result};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a call has uploaded, by address and number of the caller's numbers, which are borrowed for as long.
pub(crate) struct Uploads<'a> {
    context: Arc<Context>,
    sent: HashMap<(usize, usize), Sent>,
    borrowed: PhantomData<&'a [f32]>,
}

/// An array on the device, and the copy that it was uploaded from, if one was asked for.
type Sent = (Array, Option<Arc<Vec<f32>>>);

impl<'a> Uploads<'a> {
    /// To the device, which is opened.
    pub fn new() -> Result<Self> {
        Ok(Uploads { context: context()?, sent: HashMap::new(), borrowed: PhantomData })
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The array of an argument in that shape: a copy of the caller's numbers, or the array of the device; None if it is not given.
    pub fn array<T: Scalar>(
        &mut self,
        name: &'static str,
        given: &Given<'a, T>,
        shape: &[usize],
    ) -> Result<Option<Array>> {
        Ok(self.sent(name, given, shape, false)?.map(|(array, _)| array))
    }

    /// The same, and if `copied` the numbers that were uploaded, which those of the caller may no longer be: another thread may write to them.
    pub fn sent<T: Scalar>(
        &mut self,
        name: &'static str,
        given: &Given<'a, T>,
        shape: &[usize],
        copied: bool,
    ) -> Result<Option<Sent>> {
        match given.array {
            argument::Array::None => Ok(None),
            argument::Array::Own(x) => {
                self.send(field_of::<T>()?, single(parts(x))?, shape, copied).map(Some)
            }
            argument::Array::Real(x) => self.send(Field::Real, single(x)?, shape, copied).map(Some),
            argument::Array::Integers(_) => Err(Error::Device(format!("{name} holds integers"))),
            argument::Array::Remote(remote) => Ok(Some((resident(remote)?.reshaped(shape)?, None))),
        }
    }

    /// [`Uploads::array`] of one that must be given.
    pub fn needed<T: Scalar>(
        &mut self,
        name: &'static str,
        given: &Given<'a, T>,
        shape: &[usize],
    ) -> Result<Array> {
        self.array(name, given, shape)?.ok_or_else(|| Error::value(name, "must be given"))
    }

    /// An array that the call has made.
    pub fn made<T: Scalar>(&self, x: &[T], shape: &[usize]) -> Result<Array> {
        Array::upload(&self.context, field_of::<T>()?, shape, single(parts(x))?)
    }

    fn send(&mut self, field: Field, numbers: &'a [f32], shape: &[usize], copied: bool) -> Result<Sent> {
        let key = (numbers.as_ptr() as usize, numbers.len());
        let fits = |(array, copy): &&Sent| array.field() == field && (copy.is_some() || !copied);
        if let Some((array, copy)) = self.sent.get(&key).filter(fits) {
            return Ok((array.reshaped(shape)?, copy.clone()));
        }
        let copy = copied.then(|| {
            let mut copy = zeros(numbers.len())?;
            copy.copy_from_slice(numbers);
            Ok(Arc::new(copy))
        });
        let copy = copy.transpose()?;
        let array =
            Array::upload(&self.context, field, shape, copy.as_ref().map_or(numbers, |copy| &copy[..]))?;
        self.sent.insert(key, (array.clone(), copy.clone()));
        Ok((array, copy))
    }
}

/// Results, which stay on the device or are copied to the caller's arrays, all of them with one wait.
#[derive(Default)]
pub(super) struct Results<'a>(Vec<(Array, &'a mut [f32])>);

impl<'a> Results<'a> {
    /// A result and its place.
    pub fn put<T: Scalar>(&mut self, found: &Array, to: Bar<'a, T>) -> Result<()> {
        match to {
            Bar::None => {}
            Bar::Own(to) => self.0.push((found.clone(), single_mut(parts_mut(to))?)),
            Bar::Real(to) => self.0.push((found.clone(), single_mut(to)?)),
            Bar::Remote(to) => fill(to, found)?,
        }
        Ok(())
    }

    /// Gradients and their places; one that is missing is 0.
    pub fn put_all<T: Scalar>(&mut self, found: &[Option<Array>], to: Vec<Bar<'a, T>>) -> Result<()> {
        for (to, found) in to.into_iter().zip(found.iter().chain(std::iter::repeat(&None))) {
            match (found, to) {
                (Some(found), to) => self.put(found, to)?,
                (None, Bar::Own(to)) => to.fill(T::zero()),
                (None, Bar::Real(to)) => single_mut(to)?.fill(0.0),
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Waits for those that are copied.
    pub fn wait(mut self, budget: &Budget<'_>) -> Result<()> {
        let mut copies: Vec<_> = self.0.iter_mut().map(|(array, to)| (&*array, &mut **to)).collect();
        Array::download_all(&mut copies, budget.cancel)
    }
}

/// The array of the device that the caller gives.
pub(super) fn resident(remote: Remote<'_>) -> Result<Array> {
    room(remote)?.array()
}

/// Fills the room on the device that the caller gives.
pub(super) fn fill(remote: Remote<'_>, found: &Array) -> Result<()> {
    room(remote)?.fill(found)
}

fn room(remote: Remote<'_>) -> Result<&Room> {
    remote.downcast_ref().ok_or_else(|| Error::Device("an array of another device".into()))
}
