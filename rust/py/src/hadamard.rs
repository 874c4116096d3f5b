//! `hadamard_transform`: the transform of rows, without an operator.

use crate::arrays::{Any, Input, Output};
use crate::{by_dtype, detached};
use isometry_core::Side;
use isometry_core::operators::hadamard;
use pyo3::prelude::*;

/// scale sqrt(n) H_n x of every row of an array (..., n), or H_n^T x.
#[pyfunction]
pub fn hadamard_transform(
    x: Any<'_>,
    scale: f64,
    adjoint: bool,
    out: Any<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("x", &x, T, py => {
        let x = Input::<T>::new("x", &x)?;
        let mut out = Output::shaped("out", &out, x.shape())?;
        let n = x.shape().last().copied().unwrap_or(0);
        let (x, out) = (x.slice(), out.slice());
        let side = if adjoint { Side::Adjoint } else { Side::Forward };
        detached::run(py, move |_| hadamard::transform(x, n, scale, side, out, threads))
    })
}
