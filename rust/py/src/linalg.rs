//! `linalg_*`: products of reflections in LAPACK's storage.

use crate::arrays::{Any, Input, Number, Output, write};
use crate::error::exception;
use crate::{by_dtype, detached};
use isometry_core::linalg::{self, Bars, Order, Reflectors};
use pyo3::prelude::*;

/// a (batch, m, k) with its sizes, and tau (batch, k).
fn reflectors<'py, T: Number>(
    a: &Any<'py>,
    tau: &Any<'py>,
) -> PyResult<(Input<'py, T>, Input<'py, T>, [usize; 3])> {
    let a = Input::<T>::new("a", a)?;
    let [batch, m, k] = a.sizes("a")?;
    let tau = Input::shaped("tau", tau, &[batch, k])?;
    Ok((a, tau, [batch, m, k]))
}

/// X with its shape, which has m rows, or m columns from the right.
fn other<'py, T: Number>(
    x: &Any<'py>,
    [batch, m, _]: [usize; 3],
    (left, adjoint): (bool, bool),
) -> PyResult<(Input<'py, T>, [usize; 3], Order)> {
    let x = Input::<T>::new("other", x)?;
    let [_, rows, columns] = x.sizes("other")?;
    let order = Order { left, adjoint, columns: if left { columns } else { rows } };
    let shape = if left { [batch, m, columns] } else { [batch, rows, m] };
    crate::arrays::fits("other", x.shape(), &shape).map_err(exception)?;
    Ok((x, shape, order))
}

/// The first k columns of the products.
#[pyfunction]
pub fn linalg_product(a: Any<'_>, tau: Any<'_>, out: Any<'_>, threads: usize) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let (a, tau, [batch, m, k]) = reflectors::<T>(&a, &tau)?;
        let mut out = Output::shaped("out", &out, &[batch, m, k])?;
        let (a, tau, out) = (a.slice(), tau.slice(), out.slice());
        detached::run(py, move |_| linalg::product(&Reflectors::new(a, tau, batch, m, k)?, out, threads))
    })
}

/// Their gradients.
#[pyfunction]
pub fn linalg_product_vjp(
    a: Any<'_>,
    tau: Any<'_>,
    ct: Any<'_>,
    a_bar: Any<'_>,
    tau_bar: Any<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let (a, tau, [batch, m, k]) = reflectors::<T>(&a, &tau)?;
        let ct = Input::shaped("ct", &ct, &[batch, m, k])?;
        let mut a_bar = Output::shaped("a_bar", &a_bar, &[batch, m, k])?;
        let mut tau_bar = Output::shaped("tau_bar", &tau_bar, &[batch, k])?;
        let (a, tau, ct, a_bar, tau_bar) =
            (a.slice(), tau.slice(), ct.slice(), a_bar.slice(), tau_bar.slice());
        detached::run(py, move |_| {
            linalg::product_vjp(&Reflectors::new(a, tau, batch, m, k)?, ct, a_bar, tau_bar, threads)
        })
    })
}

/// Q X, Q^H X, X Q or X Q^H.
#[pyfunction]
pub fn linalg_apply(
    a: Any<'_>,
    tau: Any<'_>,
    other: Any<'_>,
    left: bool,
    adjoint: bool,
    out: Any<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let (a, tau, sizes) = reflectors::<T>(&a, &tau)?;
        let (x, shape, order) = self::other::<T>(&other, sizes, (left, adjoint))?;
        let mut out = Output::shaped("out", &out, &shape)?;
        let (a, tau, x, out, [batch, m, k]) = (a.slice(), tau.slice(), x.slice(), out.slice(), sizes);
        detached::run(py, move |_| {
            linalg::apply(&Reflectors::new(a, tau, batch, m, k)?, x, order, out, threads)
        })
    })
}

/// Their gradients: those of a and tau, of X, or both.
#[pyfunction]
pub fn linalg_apply_vjp(
    a: Any<'_>,
    tau: Any<'_>,
    other: Any<'_>,
    ct: Any<'_>,
    left: bool,
    adjoint: bool,
    a_bar: Option<Any<'_>>,
    tau_bar: Option<Any<'_>>,
    other_bar: Option<Any<'_>>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let (a, tau, sizes) = reflectors::<T>(&a, &tau)?;
        let [batch, m, k] = sizes;
        let (x, shape, order) = self::other::<T>(&other, sizes, (left, adjoint))?;
        let ct = Input::shaped("ct", &ct, &shape)?;
        let mut a_bar = Output::optional("a_bar", a_bar.as_ref(), &[batch, m, k])?;
        let mut tau_bar = Output::optional("tau_bar", tau_bar.as_ref(), &[batch, k])?;
        let mut x_bar = Output::optional("other_bar", other_bar.as_ref(), &shape)?;
        let bars = Bars { reflectors: write(&mut a_bar).zip(write(&mut tau_bar)), x: write(&mut x_bar) };
        let (a, tau, x, ct) = (a.slice(), tau.slice(), x.slice(), ct.slice());
        detached::run(py, move |_| {
            linalg::apply_vjp(&Reflectors::new(a, tau, batch, m, k)?, x, ct, order, bars, threads)
        })
    })
}

/// The factors of a QR factorisation: reflections and R in `out`, tau.
#[pyfunction]
pub fn linalg_geqrf(a: Any<'_>, out: Any<'_>, tau: Any<'_>, threads: usize) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let a = Input::<T>::new("a", &a)?;
        let sizes @ [batch, m, n] = a.sizes("a")?;
        let mut out = Output::shaped("out", &out, &sizes)?;
        let mut tau = Output::shaped("tau", &tau, &[batch, m.min(n)])?;
        let (a, out, tau) = (a.slice(), out.slice(), tau.slice());
        detached::run(py, move |_| linalg::geqrf(a, sizes.into(), out, tau, threads))
    })
}

/// The gradient of the matrix, from the factors and their cotangents.
#[pyfunction]
pub fn linalg_geqrf_vjp(
    a: Any<'_>,
    tau: Any<'_>,
    ct: Any<'_>,
    tau_ct: Any<'_>,
    out: Any<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let a = Input::<T>::new("a", &a)?;
        let sizes @ [batch, m, n] = a.sizes("a")?;
        let tau = Input::shaped("tau", &tau, &[batch, m.min(n)])?;
        let ct = Input::shaped("ct", &ct, &sizes)?;
        let tau_ct = Input::shaped("tau_ct", &tau_ct, &[batch, m.min(n)])?;
        let mut out = Output::shaped("out", &out, &sizes)?;
        let (a, tau, ct, tau_ct, out) = (a.slice(), tau.slice(), ct.slice(), tau_ct.slice(), out.slice());
        detached::run(py, move |_| {
            linalg::geqrf_vjp((a, tau), (ct, tau_ct), sizes.into(), out, threads)
        })
    })
}

/// The nearest matrices with orthonormal columns or rows.
#[pyfunction]
pub fn linalg_procrustes(a: Any<'_>, special: bool, out: Any<'_>, threads: usize) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let a = Input::<T>::new("a", &a)?;
        let sizes = a.sizes("a")?;
        let mut out = Output::shaped("out", &out, &sizes)?;
        let (a, out) = (a.slice(), out.slice());
        detached::run(py, move |_| linalg::procrustes(a, sizes.into(), special, out, threads))
    })
}

/// Their gradients.
#[pyfunction]
pub fn linalg_procrustes_vjp(
    a: Any<'_>,
    w: Any<'_>,
    ct: Any<'_>,
    special: bool,
    out: Any<'_>,
    threads: usize,
) -> PyResult<()> {
    by_dtype!("a", &a, T, py => {
        let a = Input::<T>::new("a", &a)?;
        let sizes = a.sizes("a")?;
        let w = Input::shaped("w", &w, &sizes)?;
        let ct = Input::shaped("ct", &ct, &sizes)?;
        let mut out = Output::shaped("out", &out, &sizes)?;
        let (a, w, ct, out) = (a.slice(), w.slice(), ct.slice(), out.slice());
        detached::run(py, move |_| linalg::procrustes_vjp((a, w, ct), sizes.into(), special, out, threads))
    })
}
