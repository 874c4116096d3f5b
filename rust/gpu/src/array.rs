//! Arrays in the memory of the device.

use crate::device::{Context, Memory};
use isometry_core::internal::sizes::{check_len, size, work};
use isometry_core::scalar::Scalar;
use isometry_core::{Error, Result};
use std::sync::{Arc, OnceLock};

/// The field of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// float32
    Real,
    /// complex64: pairs of float32.
    Complex,
}

impl Field {
    /// float32 of a number.
    pub fn parts(self) -> usize {
        match self {
            Field::Real => 1,
            Field::Complex => 2,
        }
    }

    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        self.parts() * size_of::<f32>()
    }
}

/// A row-major array of the device. Copies share the memory, which does not change after the call that made
/// it.
#[derive(Clone, Debug)]
pub struct Array {
    memory: Arc<Memory>,
    shape: Vec<usize>,
    field: Field,
}

impl Array {
    /// Memory that a call has yet to write: it may hold numbers of earlier calls.
    pub(crate) fn room(context: &Arc<Context>, field: Field, shape: &[usize]) -> Result<Self> {
        let bytes = size("array", &[size("array", shape)?, field.bytes()])?;
        Ok(Array { memory: Arc::new(context.memory(bytes)?), shape: shape.to_vec(), field })
    }

    /// A copy of numbers, two for each complex one.
    pub fn upload(context: &Arc<Context>, field: Field, shape: &[usize], numbers: &[f32]) -> Result<Self> {
        check_len("array", numbers.len(), &[size("array", shape)?, field.parts()])?;
        let array = Self::room(context, field, shape)?;
        context.write(&array.memory, numbers)?;
        Ok(array)
    }

    /// Waits for what was submitted, and copies the numbers.
    pub fn download(&self) -> Result<Vec<f32>> {
        let mut numbers = zeros(self.len() * self.field.parts())?;
        self.download_into(&mut numbers, &|| false)?;
        Ok(numbers)
    }

    /// The same into an array of the caller, unless it cancels the wait.
    pub fn download_into(&self, numbers: &mut [f32], cancel: &dyn Fn() -> bool) -> Result<()> {
        Self::download_all(&mut [(self, numbers)], cancel)
    }

    /// The same for several arrays of a device, with one wait.
    pub fn download_all(to: &mut [(&Array, &mut [f32])], cancel: &dyn Fn() -> bool) -> Result<()> {
        let Some(context) = to.first().map(|(array, _)| array.context().clone()) else { return Ok(()) };
        let mut memories = Vec::with_capacity(to.len());
        for (array, numbers) in to {
            check_len("numbers", numbers.len(), &[array.len(), array.field.parts()])?;
            if !Arc::ptr_eq(&context, array.context()) {
                return Err(Error::value("arrays", "must be on one device"));
            }
            memories.push((&*array.memory, &mut **numbers));
        }
        context.read(&mut memories, cancel)
    }

    /// The same numbers in another shape.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Self> {
        check_len("array", self.len(), shape)?;
        Ok(Array { memory: self.memory.clone(), shape: shape.to_vec(), field: self.field })
    }

    /// Sizes of its axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its numbers.
    pub fn field(&self) -> Field {
        self.field
    }

    /// The device it is on.
    pub fn context(&self) -> &Arc<Context> {
        self.memory.context()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Refuses complex numbers, and those of another device.
    pub(crate) fn check_real(&self, argument: &'static str, context: &Arc<Context>) -> Result<()> {
        if self.field != Field::Real {
            return Err(Error::value(argument, "must be Real, not Complex"));
        }
        if !Arc::ptr_eq(self.context(), context) {
            return Err(Error::value(argument, "is on another device"));
        }
        Ok(())
    }

    /// Whether both are on one device and of one field.
    pub fn fits(&self, argument: &'static str, other: &Array) -> Result<()> {
        if !Arc::ptr_eq(self.context(), other.context()) {
            return Err(Error::value(argument, "is on another device"));
        }
        if self.field != other.field {
            return Err(Error::value(argument, format!("must be {:?}, not {:?}", self.field, other.field)));
        }
        Ok(())
    }
}

/// Room for an array that a call makes, or the array once it is made.
#[derive(Clone, Debug)]
pub struct Room {
    shape: Vec<usize>,
    field: Field,
    made: Arc<OnceLock<Array>>,
}

impl Room {
    /// Without an array.
    pub fn new(field: Field, shape: Vec<usize>) -> Self {
        Room { shape, field, made: Arc::default() }
    }

    /// Sizes of its axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its numbers.
    pub fn field(&self) -> Field {
        self.field
    }

    /// The same room, or array, in another shape.
    pub fn reshaped(&self, shape: Vec<usize>) -> Result<Self> {
        check_len("array", work(&self.shape), &shape)?;
        Ok(Room { shape, ..self.clone() })
    }

    /// The array.
    pub fn array(&self) -> Result<Array> {
        let lacking = || Error::value("array", "was not computed: the call that makes it failed");
        self.made.get().ok_or_else(lacking)?.reshaped(&self.shape)
    }

    /// Takes an array of the right field and as many elements.
    pub fn fill(&self, array: &Array) -> Result<()> {
        if array.field() != self.field {
            return Err(Error::Device(format!(
                "{:?} numbers in place of {:?} ones",
                array.field(),
                self.field
            )));
        }
        let array = array.reshaped(&self.shape)?;
        self.made
            .set(array)
            .map_err(|_| Error::value("array", "has been computed already: arrays do not change"))
    }
}

impl From<Array> for Room {
    fn from(array: Array) -> Self {
        Room { shape: array.shape.clone(), field: array.field, made: Arc::new(OnceLock::from(array)) }
    }
}

/// Zeros in memory of the host.
pub(crate) fn zeros<T: Scalar>(len: usize) -> Result<Vec<T>> {
    let mut zeros = Vec::new();
    let lack = |_| Error::OutOfMemory { bytes: len.saturating_mul(size_of::<T>()) };
    zeros.try_reserve_exact(len).map_err(lack)?;
    zeros.resize(len, T::zero());
    Ok(zeros)
}
