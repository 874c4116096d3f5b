//! `cayley_from_matrix` and `cayley_from_rotvec`; all else is in [`crate::operator`].

use crate::arrays::{Any, Input, Optional, Output, write};
use crate::error::exception;
use crate::{by_dtype, detached};
use isometry_core::internal::sizes::{size, triangles};
use isometry_core::operators::cayley;
use pyo3::prelude::*;

/// The skew matrices of given orthogonal or unitary ones; the last factor is chosen or given.
#[pyfunction]
pub fn cayley_from_matrix(
    w: Any<'_>,
    last: Any<'_>,
    choose: bool,
    upper: Any<'_>,
    diagonal: Optional<'_>,
    tol: f64,
) -> PyResult<()> {
    by_dtype!("w", &w, T, py => {
        let w = Input::<T>::new("w", &w)?;
        let [batch, n, _] = w.sizes("w")?;
        let packed = size("upper", &triangles(1, n)).map_err(exception)?;
        let mut last = Output::shaped("last", &last, &[batch, n])?;
        let mut upper = Output::shaped("upper", &upper, &[batch, packed])?;
        let mut diagonal = Output::optional("diagonal", diagonal.as_ref(), &[batch, n])?;
        let (w, last, upper, diagonal) = (w.slice(), last.slice(), upper.slice(), write(&mut diagonal));
        detached::run(py, move |cancel| {
            cayley::from_matrix(w, last, choose, upper, diagonal, (batch, n), tol, 1, cancel)
        })
    })
}

/// The triangles of given rotation vectors; returns whether some vector turns by an odd multiple of pi.
#[pyfunction]
pub fn cayley_from_rotvec(rotvec: Any<'_>, upper: Any<'_>) -> PyResult<bool> {
    by_dtype!("rotvec", &rotvec, T, py => {
        let rotvec = Input::<T>::new("rotvec", &rotvec)?;
        let [batch, _] = rotvec.sizes("rotvec")?;
        let mut upper = Output::shaped("upper", &upper, &[batch, 3])?;
        let (rotvec, upper) = (rotvec.slice(), upper.slice());
        detached::run(py, move |_| cayley::from_rotvec(rotvec, upper, batch))
    })
}
