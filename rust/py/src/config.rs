//! Properties of this build and machine.

use crate::detached;
use isometry_core::activation::NAMES;
use isometry_core::internal::kernels::{self, Isa};
use isometry_core::internal::parallel;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Constants of the module; loading fails if the processor does not support the set forced by `ISOMETRY_SIMD`.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    kernels::chosen().map_err(|error| PyImportError::new_err(error.to_string()))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    crate::operator::objects(module)?;
    crate::sequence::cells(module)?;
    module.add("ACTIVATIONS", PyTuple::new(module.py(), NAMES)?)
}

/// Runs a loop of multiply-adds in registers, its rounds shared by up to `threads` threads: a rate that no call exceeds. Returns
/// the number of operations.
#[pyfunction]
pub fn multiply_adds(py: Python<'_>, rounds: usize, threads: usize) -> PyResult<usize> {
    let made = AtomicUsize::new(0);
    detached::run(py, |_| {
        parallel::run(threads, &|member| {
            made.fetch_add(kernels::multiply_adds(member.share(rounds, 1).len()).0, Ordering::Relaxed);
        });
        Ok(made.load(Ordering::Relaxed))
    })
}

/// The number of threads available to this process.
#[pyfunction]
pub fn available_parallelism() -> usize {
    parallel::available()
}

/// Uses torch's OpenMP team from now on, if this process has one; returns whether it has.
#[pyfunction]
pub fn adopt_openmp() -> bool {
    parallel::adopt(crate::openmp::find)
}

/// Version, target and instruction sets.
#[pyfunction]
pub fn config(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("version", env!("CARGO_PKG_VERSION"))?;
    dict.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
    dict.set_item("simd", kernels::isa().name())?;
    dict.set_item("simd_available", Isa::available().into_iter().map(Isa::name).collect::<Vec<_>>())?;
    dict.set_item("optimised", !cfg!(debug_assertions))?;
    dict.set_item("team", if parallel::adopted() { "openmp" } else { "rayon" })?;
    dict.set_item("threads_available", parallel::available())?;
    Ok(dict)
}
