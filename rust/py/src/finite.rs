//! `all_finite`.

use crate::arrays::{Input, resident_dtype};
use crate::{by_dtype, detached};
use pyo3::prelude::*;

/// Whether every number of the array is finite; those on the GPU are not looked at.
#[pyfunction]
pub fn all_finite(array: Bound<'_, PyAny>) -> PyResult<bool> {
    by_dtype!("array", &array, T => {
        let input = match Input::<T>::new("array", &array) {
            Err(_) if resident_dtype(&array).is_some() => return Ok(true),
            input => input?,
        };
        let numbers = input.slice();
        detached::run(array.py(), |_| Ok(isometry_core::scalar::all_finite(numbers)))
    })
}
