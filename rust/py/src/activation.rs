//! `activate*`: nonlinearities on rows.

use crate::arrays::{Any, Input, Optional, Output, read, write};
use crate::error::exception;
use crate::{by_dtype, detached};
use isometry_core::activation::{self, Activation};
use pyo3::prelude::*;

/// The nonlinearity of this name.
pub fn parse(name: &str, slope: f64) -> PyResult<Activation> {
    Activation::parse(name, slope).map_err(exception)
}

/// phi(z) of every row.
#[pyfunction]
pub fn activate(
    z: Any<'_>,
    name: &str,
    bias: Optional<'_>,
    slope: f64,
    out: Any<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("z", &z, T, py => {
        let z = Input::<T>::new("z", &z)?;
        let [rows, n] = z.sizes("z")?;
        let activation = parse(name, slope)?;
        let bias = bias.as_ref().map(|bias| Input::new("bias", bias)).transpose()?;
        let mut out = Output::shaped("out", &out, &[rows, n])?;
        let (z, bias, out) = (z.slice(), read(&bias), out.slice());
        detached::run(py, move |_| activation::activate(z, rows, n, activation, bias, out, threads))
    })
}

/// Gradients of z and of the bias from the cotangent of phi(z).
#[pyfunction]
pub fn activate_vjp(
    z: Any<'_>,
    name: &str,
    bias: Optional<'_>,
    slope: f64,
    ct: Any<'_>,
    z_bar: Any<'_>,
    bias_bar: Optional<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("z", &z, T, py => {
        let z = Input::<T>::new("z", &z)?;
        let [rows, n] = z.sizes("z")?;
        let activation = parse(name, slope)?;
        let bias = bias.as_ref().map(|bias| Input::new("bias", bias)).transpose()?;
        let ct = Input::shaped("ct", &ct, &[rows, n])?;
        let mut z_bar = Output::shaped("z_bar", &z_bar, &[rows, n])?;
        let units = bias.as_ref().map_or(&[][..], Input::shape);
        let mut bias_bar = Output::optional("bias_bar", bias_bar.as_ref(), units)?;
        let (z, bias, ct, z_bar, bias_bar) =
            (z.slice(), read(&bias), ct.slice(), z_bar.slice(), write(&mut bias_bar));
        detached::run(py, move |_| {
            activation::activate_vjp(z, rows, n, activation, bias, ct, z_bar, bias_bar, threads)
        })
    })
}
