//! `householder_from_matrix`; all else is in [`crate::operator`].

use crate::arrays::{Any, Input, Output};
use crate::{by_dtype, detached};
use isometry_core::operators::householder;
use isometry_core::scalar::Scalar;
use pyo3::prelude::*;

/// Reflection vectors and last factor of given orthogonal or unitary matrices.
#[pyfunction]
pub fn householder_from_matrix(w: Any<'_>, vectors: Any<'_>, last: Any<'_>, tol: f64) -> PyResult<()> {
    by_dtype!("w", &w, T, py => {
        let w = Input::<T>::new("w", &w)?;
        let [batch, n, _] = w.sizes("w")?;
        let mut vectors = Output::<T>::shaped("vectors", &vectors, &[batch, n, n.saturating_sub(1)])?;
        let own: &[usize] = if <T as Scalar>::PARTS == 1 { &[batch] } else { &[batch, n] };
        let mut last = Output::<<T as Scalar>::Real>::shaped("last", &last, own)?;
        let (w, vectors, last) = (w.slice(), vectors.slice(), last.slice());
        detached::run(py, move |cancel| {
            householder::from_matrix(w, batch, n, tol, vectors, last, cancel)
        })
    })
}
