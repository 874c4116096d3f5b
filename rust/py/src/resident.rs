//! `GpuArray`: an array of the GPU, which calls there take beside others.

use crate::dtype::{Dtype, Typed};
use crate::error::exception;
use crate::place::Place;
use isometry_core::scalar::c32;
use isometry_gpu::{Array, Field, Room};
use numpy::{PyArrayDescr, dtype};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// An array of the device, or room for one that a call makes.
#[pyclass(frozen, subclass, module = "isometry._core")]
pub struct GpuArray(pub Room);

/// Sizes, one by one: extraction of a Vec would trust the length that an object claims and allocate it.
fn sizes(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    shape.try_iter()?.map(|size| size?.extract()).collect()
}

impl GpuArray {
    /// The array; an error if the call that makes it has failed.
    pub fn array(&self) -> PyResult<Array> {
        self.0.array().map_err(exception)
    }

    /// The type of its numbers.
    pub fn kind(&self) -> Dtype {
        if self.0.field() == Field::Real { Dtype::F32 } else { Dtype::C32 }
    }
}

#[pymethods]
impl GpuArray {
    /// Room for an array of a shape, or the array `of` in that shape.
    #[new]
    #[pyo3(signature = (shape, complex_ = false, of = None))]
    fn new(shape: &Bound<'_, PyAny>, complex_: bool, of: Option<&GpuArray>) -> PyResult<Self> {
        let (shape, field) = (sizes(shape)?, if complex_ { Field::Complex } else { Field::Real });
        let Some(of) = of else { return Ok(GpuArray(Room::new(field, shape))) };
        of.0.reshaped(shape).map(GpuArray).map_err(exception)
    }

    /// Sizes of its axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// float32 or complex64.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        if self.0.field() == Field::Real { dtype::<f32>(py) } else { dtype::<c32>(py) }
    }
}

/// The element type of an array of the GPU.
pub fn dtype_of(array: &Bound<'_, PyAny>) -> Option<Dtype> {
    array.cast::<GpuArray>().ok().map(|array| array.get().kind())
}

/// An array of the GPU of that type, if the call is there and the array is one.
pub fn resident<'py, T: Typed>(
    place: Place,
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, GpuArray>>> {
    let Place::Gpu = place else { return Ok(None) };
    let Ok(array) = array.cast::<GpuArray>() else { return Ok(None) };
    if array.get().kind() != T::DTYPE {
        let (own, found) = (T::NAME, array.get().dtype(array.py()));
        return Err(PyTypeError::new_err(format!(
            "{argument} must be of {own}, not {found}: on the GPU nothing is converted"
        )));
    }
    Ok(Some(array.clone()))
}
