//! The arrays of a call on their way to the device, each once.

use super::{field_of, single};
use crate::device::{Context, context};
use crate::{Array, Field};
use isometry_core::Result;
use isometry_core::scalar::{Scalar, parts};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a call has uploaded, by address and number of the caller's numbers, which are borrowed for as long.
pub(super) struct Uploads<'a> {
    context: Arc<Context>,
    sent: HashMap<(usize, usize), Array>,
    borrowed: PhantomData<&'a [f32]>,
}

impl<'a> Uploads<'a> {
    /// To the device, which is opened.
    pub fn new() -> Result<Self> {
        Ok(Uploads { context: context()?, sent: HashMap::new(), borrowed: PhantomData })
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// An array of the matrix's type.
    pub fn own<T: Scalar>(&mut self, x: &'a [T], shape: &[usize]) -> Result<Array> {
        self.send(field_of::<T>()?, single(parts(x))?, shape)
    }

    /// An array of its real type.
    pub fn real<R: 'static>(&mut self, x: &'a [R], shape: &[usize]) -> Result<Array> {
        self.send(Field::Real, single(x)?, shape)
    }

    /// An array that the call has made.
    pub fn made<T: Scalar>(&self, x: &[T], shape: &[usize]) -> Result<Array> {
        Array::upload(&self.context, field_of::<T>()?, shape, single(parts(x))?)
    }

    fn send(&mut self, field: Field, numbers: &'a [f32], shape: &[usize]) -> Result<Array> {
        let key = (numbers.as_ptr() as usize, numbers.len());
        if let Some(array) = self.sent.get(&key).filter(|array| array.field() == field) {
            return array.reshaped(shape);
        }
        let array = Array::upload(&self.context, field, shape, numbers)?;
        self.sent.insert(key, array.clone());
        Ok(array)
    }
}
