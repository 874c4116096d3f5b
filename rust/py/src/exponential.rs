//! `exponential_from_matrix`; all else is in [`crate::operator`].

use crate::arrays::{Any, Input, Output};
use crate::error::exception;
use crate::{by_dtype, detached};
use isometry_core::internal::sizes::{size, triangles};
use isometry_core::operators::exponential;
use pyo3::prelude::*;

/// The principal logarithms of given rotations of the plane and of space.
#[pyfunction]
pub fn exponential_from_matrix(w: Any<'_>, upper: Any<'_>, tol: f64) -> PyResult<()> {
    by_dtype!("w", &w, T, py => {
        let w = Input::<T>::new("w", &w)?;
        let [batch, n, _] = w.sizes("w")?;
        let packed = size("upper", &triangles(1, n)).map_err(exception)?;
        let mut upper = Output::shaped("upper", &upper, &[batch, packed])?;
        let (w, upper) = (w.slice(), upper.slice());
        detached::run(py, move |_| exponential::from_matrix(w, upper, (batch, n), tol))
    })
}
