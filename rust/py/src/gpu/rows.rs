//! Activations and the Hadamard transform of rows on the device.

use crate::activation::parse;
use crate::detached::run;
use crate::resident::GpuArray;
use isometry_core::Side;
use isometry_gpu::{activation, hadamard};
use pyo3::prelude::*;

/// phi(z) of every row.
#[pyfunction]
pub fn gpu_activate(
    py: Python<'_>,
    z: &GpuArray,
    name: &str,
    bias: Option<&GpuArray>,
    slope: f64,
    out: &GpuArray,
) -> PyResult<()> {
    let (z, bias, phi) = (z.array()?, bias.map(GpuArray::array).transpose()?, parse(name, slope)?);
    run(py, |_| out.0.fill(&activation::activate(&z, phi, bias.as_ref())?))
}

/// The gradients of z and, if it is given, of the bias, from the cotangent of phi(z).
#[pyfunction]
pub fn gpu_activate_vjp(
    py: Python<'_>,
    z: &GpuArray,
    name: &str,
    bias: Option<&GpuArray>,
    slope: f64,
    ct: &GpuArray,
    z_bar: &GpuArray,
    bias_bar: Option<&GpuArray>,
) -> PyResult<()> {
    let (z, ct, phi) = (z.array()?, ct.array()?, parse(name, slope)?);
    let bias = bias.map(GpuArray::array).transpose()?;
    run(py, |_| {
        let (of_z, of_bias) = activation::activate_vjp(&z, phi, bias.as_ref(), &ct, bias_bar.is_some())?;
        z_bar.0.fill(&of_z)?;
        bias_bar.zip(of_bias).map_or(Ok(()), |(room, found)| room.0.fill(&found))
    })
}

/// scale sqrt(n) H_n x of every row.
#[pyfunction]
pub fn gpu_hadamard_transform(py: Python<'_>, x: &GpuArray, scale: f64, out: &GpuArray) -> PyResult<()> {
    let x = x.array()?;
    run(py, |_| out.0.fill(&hadamard::transform(&x, scale as f32, Side::Forward)?))
}
