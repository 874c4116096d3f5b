//! `gpu_*`: copies to and from the device, what is for its arrays alone, its adapters and its counts.

mod rows;

pub use rows::{gpu_activate, gpu_activate_vjp, gpu_hadamard_transform};

use crate::arrays::{Any, Input, Number, Output, dtype_of, empty};
use crate::detached::run;
use crate::dtype::Dtype;
use crate::error::exception;
use crate::resident::GpuArray;
use isometry_core::scalar::{Scalar, c32, parts, parts_mut};
use isometry_gpu::combine::combine;
use isometry_gpu::device::{adapters, context, reset, statistics};
use isometry_gpu::hosted::{self, field_of};
use isometry_gpu::{Array, Field, choose_tiles};
use numpy::Element;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

fn uploaded<T: Number + Scalar<Real = f32>>(array: &Any<'_>) -> PyResult<Array> {
    let input = Input::<T>::new("array", array)?;
    let (numbers, shape) = (parts(input.slice()), input.shape());
    run(array.py(), |_| Array::upload(&context()?, field_of::<T>()?, shape, numbers))
}

fn downloaded<'py, T: Number + Scalar<Real = f32> + Element>(
    py: Python<'py>,
    array: &Array,
) -> PyResult<Any<'py>> {
    let out = empty::<T>(py, array.shape())?;
    let mut to = Output::<T>::new("out", &out)?;
    let numbers = parts_mut(to.slice());
    run(py, |cancel| array.download_into(numbers, cancel))?;
    Ok(out)
}

/// Fills room on the device with a copy of a NumPy array of float32 or complex64.
#[pyfunction]
pub fn gpu_upload(array: &Any<'_>, out: &GpuArray) -> PyResult<()> {
    let array = match dtype_of("array", array)? {
        Dtype::F32 => uploaded::<f32>(array),
        Dtype::C32 => uploaded::<c32>(array),
        _ => Err(PyTypeError::new_err("array: the device computes in float32 and complex64")),
    };
    out.0.fill(&array?).map_err(exception)
}

/// Waits for what was submitted, and copies to a NumPy array.
#[pyfunction]
pub fn gpu_download<'py>(py: Python<'py>, array: &GpuArray) -> PyResult<Any<'py>> {
    let array = array.array()?;
    match array.field() {
        Field::Real => downloaded::<f32>(py, &array),
        Field::Complex => downloaded::<c32>(py, &array),
    }
}

/// alpha a + beta b, or alpha a; a factor is (real part, imaginary part).
#[pyfunction]
pub fn gpu_combine(
    py: Python<'_>,
    a: &GpuArray,
    alpha: (f32, f32),
    b: Option<&GpuArray>,
    beta: (f32, f32),
    out: &GpuArray,
) -> PyResult<()> {
    let (a, b) = (a.array()?, b.map(GpuArray::array).transpose()?);
    run(py, |_| out.0.fill(&combine(&a, alpha, b.as_ref().map(|b| (b, beta)))?))
}

type AdapterRow = (String, &'static str, &'static str, String, u64, bool);

/// (name, kind, backend, driver, most bytes of an array, whether it is used) of every adapter.
#[pyfunction]
pub fn gpu_adapters(py: Python<'_>) -> PyResult<Vec<AdapterRow>> {
    let found = run(py, |_| Ok(adapters()))?;
    Ok(found.into_iter().map(|a| (a.name, a.kind, a.backend, a.driver, a.most_bytes, a.used)).collect())
}

/// What this process has asked of the device so far.
#[pyfunction]
pub fn gpu_statistics() -> [(&'static str, u64); 6] {
    statistics()
}

/// Makes all products use tiles of this side, for comparisons of their times; None: those that fit.
#[pyfunction]
pub fn gpu_tiles(side: Option<usize>) -> PyResult<()> {
    choose_tiles(side).map_err(exception)
}

/// Waits for all that was submitted.
#[pyfunction]
pub fn gpu_wait(py: Python<'_>) -> PyResult<()> {
    run(py, |cancel| context()?.wait(cancel))
}

/// Closes the device.
#[pyfunction]
pub fn gpu_reset(py: Python<'_>) -> PyResult<()> {
    run(py, |_| {
        reset();
        Ok(())
    })
}

/// The objects that have kernels on the device.
#[pyfunction]
pub fn gpu_objects() -> Vec<&'static str> {
    hosted::objects()
}

/// The cells that have kernels on the device.
#[pyfunction]
pub fn gpu_cells() -> Vec<&'static str> {
    hosted::cells()
}
