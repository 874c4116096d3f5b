//! `gpu_*`: the same calls on arrays of the device, by handle. The Python faces upload and download.

use crate::activation::parse;
use crate::arrays::{Any, Input, Number, Optional, Output, dtype_of, empty};
use crate::detached::{run, run_interruptible};
use crate::dtype::Dtype;
use crate::error::exception;
use crate::sequence::counts;
use isometry_core::scalar::{Scalar, c32, parts, parts_mut};
use isometry_core::{Result, Side};
use isometry_gpu::combine::combine;
use isometry_gpu::device::{adapters, context, reset, statistics};
use isometry_gpu::{Array, activation, choose_tiles, hadamard, objects, recurrence};
use numpy::Element;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// An array of the device.
#[pyclass(frozen, module = "isometry._core")]
pub struct GpuArray(Array);

fn uploaded<T: Number + Scalar<Real = f32>>(
    array: &Bound<'_, PyAny>,
    field: isometry_gpu::Field,
) -> PyResult<Array> {
    let input = Input::<T>::new("array", array)?;
    let (numbers, shape) = (parts(input.slice()), input.shape());
    run(array.py(), || Array::upload(&context()?, field, shape, numbers))
}

fn downloaded<'py, T: Number + Scalar<Real = f32> + Element>(
    py: Python<'py>,
    array: &Array,
) -> PyResult<Any<'py>> {
    let out = empty::<T>(py, array.shape())?;
    let mut to = Output::<T>::new("out", &out)?;
    let numbers = parts_mut(to.slice());
    run_interruptible(py, |cancel| array.download_into(numbers, cancel))?;
    Ok(out)
}

/// The items, one by one: extraction of a Vec would trust the length that an object claims and allocate it.
fn listed<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(items: &Any<'py>) -> PyResult<Vec<T>> {
    items.try_iter()?.map(|item| item?.extract()).collect()
}

#[pymethods]
impl GpuArray {
    /// A copy of a NumPy array of float32 or complex64 on the device.
    #[staticmethod]
    fn upload(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        match dtype_of("array", array)? {
            Dtype::F32 => uploaded::<f32>(array, isometry_gpu::Field::Real).map(GpuArray),
            Dtype::C32 => uploaded::<c32>(array, isometry_gpu::Field::Complex).map(GpuArray),
            _ => Err(PyTypeError::new_err("array: the device computes in float32 and complex64")),
        }
    }

    /// Waits for what was submitted, and copies to a NumPy array.
    fn download<'py>(&self, py: Python<'py>) -> PyResult<Any<'py>> {
        match self.0.field() {
            isometry_gpu::Field::Real => downloaded::<f32>(py, &self.0),
            isometry_gpu::Field::Complex => downloaded::<c32>(py, &self.0),
        }
    }

    /// The same numbers in another shape.
    fn reshape(&self, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.0.reshaped(&listed(shape)?).map(GpuArray).map_err(exception)
    }

    /// Sizes of its axes.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    /// "float32" or "complex64".
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.0.field() {
            isometry_gpu::Field::Real => "float32",
            isometry_gpu::Field::Complex => "complex64",
        }
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
) -> PyResult<GpuArray> {
    run(py, || combine(&a.0, alpha, b.map(|b| (&b.0, beta)))).map(GpuArray)
}

/// phi(z) of every row.
#[pyfunction]
pub fn gpu_activate(
    py: Python<'_>,
    z: &GpuArray,
    name: &str,
    bias: Option<&GpuArray>,
    slope: f64,
) -> PyResult<GpuArray> {
    let phi = parse(name, slope)?;
    run(py, || activation::activate(&z.0, phi, bias.map(|bias| &bias.0))).map(GpuArray)
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
) -> PyResult<(GpuArray, Option<GpuArray>)> {
    let phi = parse(name, slope)?;
    let bias = bias.map(|bias| &bias.0);
    let (z_bar, bias_bar) = run(py, || activation::activate_vjp(&z.0, phi, bias, &ct.0, bias.is_some()))?;
    Ok((GpuArray(z_bar), bias_bar.map(GpuArray)))
}

/// scale sqrt(n) H_n x of every row.
#[pyfunction]
pub fn gpu_hadamard_transform(py: Python<'_>, x: &GpuArray, scale: f64) -> PyResult<GpuArray> {
    run(py, || hadamard::transform(&x.0, scale as f32, Side::Forward)).map(GpuArray)
}

type AdapterRow = (String, &'static str, &'static str, String, u64, bool);

/// (name, kind, backend, driver, most bytes of an array, whether it is used) of every adapter.
#[pyfunction]
pub fn gpu_adapters(py: Python<'_>) -> PyResult<Vec<AdapterRow>> {
    let found = run(py, || Ok(adapters()))?;
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
    run_interruptible(py, |cancel| context()?.wait(cancel))
}

/// Closes the device.
#[pyfunction]
pub fn gpu_reset(py: Python<'_>) -> PyResult<()> {
    run(py, || {
        reset();
        Ok(())
    })
}

/// The objects that have kernels on the device.
#[pyfunction]
pub fn gpu_objects() -> Vec<&'static str> {
    objects::OBJECTS.to_vec()
}

type Arguments = Vec<Option<Array>>;

fn held(given: &Bound<'_, PyTuple>) -> PyResult<Arguments> {
    let one = |array: Bound<'_, PyAny>| {
        if array.is_none() { Ok(None) } else { Ok(Some(array.cast::<GpuArray>()?.get().0.clone())) }
    };
    given.iter().map(one).collect()
}

/// Runs `f` on the operator without the lock of the interpreter.
fn on<R: Send>(
    py: Python<'_>,
    object: &str,
    given: &Arguments,
    f: impl FnOnce(&dyn isometry_gpu::operator::Operator) -> Result<R> + Send,
) -> PyResult<R> {
    run(py, || {
        let views: Vec<Option<&Array>> = given.iter().map(Option::as_ref).collect();
        f(&*objects::view(object, &views)?)
    })
}

fn handles(arrays: Vec<Option<Array>>) -> Vec<Option<GpuArray>> {
    arrays.into_iter().map(|array| array.map(GpuArray)).collect()
}

fn side(adjoint: bool) -> Side {
    if adjoint { Side::Adjoint } else { Side::Forward }
}

/// W of every matrix of the batch.
#[pyfunction]
pub fn gpu_operator_matrix(
    py: Python<'_>,
    object: &str,
    arguments: &Bound<'_, PyTuple>,
) -> PyResult<GpuArray> {
    on(py, object, &held(arguments)?, |operator| operator.matrix()).map(GpuArray)
}

/// The gradients of the arguments that are wanted, from the cotangent of W, and W itself where the caller has it.
#[pyfunction]
pub fn gpu_operator_matrix_vjp(
    py: Python<'_>,
    object: &str,
    arguments: &Bound<'_, PyTuple>,
    w: Option<&GpuArray>,
    ct: &GpuArray,
    wanted: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<GpuArray>>> {
    let wanted = listed(wanted)?;
    on(py, object, &held(arguments)?, |operator| operator.matrix_vjp(w.map(|w| &w.0), &ct.0, &wanted))
        .map(handles)
}

/// W x or W^H x of rows (batch, rows, n).
#[pyfunction]
pub fn gpu_operator_apply(
    py: Python<'_>,
    object: &str,
    arguments: &Bound<'_, PyTuple>,
    x: &GpuArray,
    adjoint: bool,
) -> PyResult<GpuArray> {
    on(py, object, &held(arguments)?, |operator| operator.apply(&x.0, side(adjoint))).map(GpuArray)
}

/// The gradients of the arguments that are wanted and of x.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "the two results of one call")]
pub fn gpu_operator_apply_vjp(
    py: Python<'_>,
    object: &str,
    arguments: &Bound<'_, PyTuple>,
    x: &GpuArray,
    ct: &GpuArray,
    adjoint: bool,
    wanted: &Bound<'_, PyAny>,
    x_wanted: bool,
) -> PyResult<(Vec<Option<GpuArray>>, Option<GpuArray>)> {
    let wanted = listed(wanted)?;
    let pulled = on(py, object, &held(arguments)?, |operator| {
        operator.apply_vjp(&x.0, &ct.0, side(adjoint), &wanted, x_wanted)
    })?;
    Ok((handles(pulled.arguments), pulled.x.map(GpuArray)))
}

/// x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse.
type Sequence<'py> = (
    Bound<'py, GpuArray>,
    Bound<'py, GpuArray>,
    Option<Bound<'py, GpuArray>>,
    Option<Bound<'py, GpuArray>>,
    String,
    Option<Bound<'py, GpuArray>>,
    f64,
    bool,
    Optional<'py>,
    bool,
);

/// Runs `f` on the sequence with a transition W, (n, n), without the lock of the interpreter.
fn over<R: Send>(
    py: Python<'_>,
    w: &GpuArray,
    given: &Sequence<'_>,
    f: impl FnOnce(&recurrence::Sequence<'_>) -> Result<R> + Send,
) -> PyResult<R> {
    let (x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse) = given;
    let own = |array: &Option<Bound<'_, GpuArray>>| array.as_ref().map(|array| array.get().0.clone());
    let (h0, bias, activation_bias) = (own(h0), own(bias), own(activation_bias));
    let (activation, lengths) = (parse(activation, *slope)?, lengths.as_ref().map(counts).transpose()?);
    let (w, x, input_weight) = (&w.0, &x.get().0, &input_weight.get().0);
    let (on_input, reverse) = (*on_input, *reverse);
    run(py, || {
        f(&recurrence::Sequence {
            w,
            x,
            input_weight,
            h0: h0.as_ref(),
            bias: bias.as_ref(),
            activation,
            activation_bias: activation_bias.as_ref(),
            on_input,
            lengths: lengths.as_deref(),
            reverse,
        })
    })
}

/// The states, (T, B, n), for a transition W, (n, n).
#[pyfunction]
pub fn gpu_recurrence(py: Python<'_>, w: &GpuArray, sequence: Sequence<'_>) -> PyResult<GpuArray> {
    over(py, w, &sequence, recurrence::forward).map(GpuArray)
}

/// The gradients of W, x, input_weight, h0, bias and activation_bias that are wanted, from the states and their cotangents.
#[pyfunction]
pub fn gpu_recurrence_vjp(
    py: Python<'_>,
    w: &GpuArray,
    sequence: Sequence<'_>,
    states: &GpuArray,
    ct: &GpuArray,
    wanted: [bool; 6],
) -> PyResult<Vec<Option<GpuArray>>> {
    let [w_bar, x, input_weight, h0, bias, activation_bias] = wanted;
    let wanted = recurrence::Wanted { w: w_bar, x, input_weight, h0, bias, activation_bias };
    let (states, ct) = (&states.0, &ct.0);
    let found = over(py, w, &sequence, |sequence| recurrence::backward(sequence, states, ct, wanted))?;
    let recurrence::Gradients { w, x, input_weight, h0, bias, activation_bias } = found;
    Ok(handles(vec![w, x, input_weight, h0, bias, activation_bias]))
}
