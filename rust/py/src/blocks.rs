//! `blocks_apply` and its gradient: rows times a block-diagonal matrix.

use crate::arrays::{Any, Input, Optional, Output, fits, write};
use crate::error::exception;
use crate::{by_dtype, detached};
use isometry_core::internal::Blocks;
use pyo3::prelude::*;

/// x (rows, nb, q) -> out (rows, nb, p) for blocks w (nb, p, q).
#[pyfunction]
pub fn blocks_apply(w: Any<'_>, x: Any<'_>, out: Any<'_>, threads: usize) -> PyResult<()> {
    by_dtype!("w", &w, T, py => {
        let w = Input::<T>::new("w", &w)?;
        let [nb, p, q] = w.sizes("w")?;
        let x = Input::<T>::new("x", &x)?;
        let [rows, ..] = x.sizes::<3>("x")?;
        fits("x", x.shape(), &[rows, nb, q]).map_err(exception)?;
        let mut out = Output::shaped("out", &out, &[rows, nb, p])?;
        let (w, x, out) = (w.slice(), x.slice(), out.slice());
        detached::run(py, |_| Blocks::new(w, (nb, p, q)).apply(x, rows, out, threads))
    })
}

/// The gradients that are wanted, of w and of x.
#[pyfunction]
pub fn blocks_apply_vjp(
    w: Any<'_>,
    x: Any<'_>,
    ct: Any<'_>,
    w_bar: Optional<'_>,
    x_bar: Optional<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("w", &w, T, py => {
        let w = Input::<T>::new("w", &w)?;
        let [nb, p, q] = w.sizes("w")?;
        let x = Input::<T>::new("x", &x)?;
        let [rows, ..] = x.sizes::<3>("x")?;
        fits("x", x.shape(), &[rows, nb, q]).map_err(exception)?;
        let ct = Input::<T>::shaped("ct", &ct, &[rows, nb, p])?;
        let mut w_bar = Output::optional("w_bar", w_bar.as_ref(), &[nb, p, q])?;
        let mut x_bar = Output::optional("x_bar", x_bar.as_ref(), &[rows, nb, q])?;
        let (w, x, ct) = (w.slice(), x.slice(), ct.slice());
        let (w_bar, x_bar) = (write(&mut w_bar), write(&mut x_bar));
        detached::run(py, |_| Blocks::new(w, (nb, p, q)).apply_vjp(x, ct, rows, w_bar, x_bar, threads))
    })
}
