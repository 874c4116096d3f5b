//! `dense_*`: plain matrices.

use crate::arrays::{Input, Number, Output, write};
use crate::{by_kind, gate};
use isometry_core::operators::dense::Dense;
use isometry_core::{Operator, Side};
use pyo3::prelude::*;

type Array<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// (side, features in, features out) of a (p, q) matrix or its adjoint.
fn orient(adjoint: bool, p: usize, q: usize) -> (Side, usize, usize) {
    if adjoint { (Side::Adjoint, p, q) } else { (Side::Forward, q, p) }
}

/// W x, or W^H x if `adjoint`, for rows x.
#[pyfunction]
pub fn dense_apply<'py>(
    py: Python<'py>,
    weight: Bound<'py, PyAny>,
    x: Bound<'py, PyAny>,
    out: Bound<'py, PyAny>,
    adjoint: bool,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        weight: Array<'_, 'py>,
        (x, out): (Array<'_, 'py>, Array<'_, 'py>),
        adjoint: bool,
        threads: usize,
    ) -> PyResult<()> {
        let weight = Input::<T>::new("weight", weight)?;
        let [batch, p, q] = weight.sizes("weight")?;
        let (side, _, into) = orient(adjoint, p, q);
        let x = Input::new("x", x)?;
        let [_, rows, _] = x.sizes("x")?;
        let mut out = Output::shaped("out", out, &[batch, rows, into])?;
        let (weight, x, out) = (weight.slice(), x.slice(), out.slice());
        gate::run(py, move || Dense::new(weight, batch, p, q)?.apply(x, rows, side, out, threads))
    }
    by_kind!("weight", &weight, call(py, &weight, (&x, &out), adjoint, threads))
}

/// Gradients of the weight and of x from the cotangent of W x (or W^H x).
#[pyfunction]
pub fn dense_apply_vjp<'py>(
    py: Python<'py>,
    weight: Bound<'py, PyAny>,
    x: Bound<'py, PyAny>,
    ct: Bound<'py, PyAny>,
    weight_bar: Optional<'py>,
    x_bar: Optional<'py>,
    adjoint: bool,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        weight: Array<'_, 'py>,
        (x, ct): (Array<'_, 'py>, Array<'_, 'py>),
        (weight_bar, x_bar): (&Optional<'py>, &Optional<'py>),
        adjoint: bool,
        threads: usize,
    ) -> PyResult<()> {
        let weight = Input::<T>::new("weight", weight)?;
        let [batch, p, q] = weight.sizes("weight")?;
        let (side, from, into) = orient(adjoint, p, q);
        let x = Input::new("x", x)?;
        let [_, rows, _] = x.sizes("x")?;
        let ct = Input::shaped("ct", ct, &[batch, rows, into])?;
        let mut weight_bar = Output::optional("weight_bar", weight_bar.as_ref(), &[batch, p, q])?;
        let mut x_bar = Output::optional("x_bar", x_bar.as_ref(), &[batch, rows, from])?;
        let (weight, x, ct) = (weight.slice(), x.slice(), ct.slice());
        let (weight_bar, x_bar) = (write(&mut weight_bar), write(&mut x_bar));
        gate::run(py, move || {
            Dense::new(weight, batch, p, q)?.apply_vjp(x, ct, rows, side, weight_bar, x_bar, threads)
        })
    }
    by_kind!("weight", &weight, call(py, &weight, (&x, &ct), (&weight_bar, &x_bar), adjoint, threads))
}
