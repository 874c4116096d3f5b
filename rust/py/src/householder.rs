//! `householder_*`: products of reflections.

use crate::arrays::{Input, Number, Output, read, write};
use crate::error::exception;
use crate::{by_kind, gate};
use isometry_core::operators::householder::{self, Gradients, Householder, Last};
use isometry_core::sizes::size;
use isometry_core::{Error, Operator, Side};
use pyo3::prelude::*;

type Array<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// The arrays of one operator, borrowed.
pub struct Arrays<'py, T: Number> {
    vectors: Input<'py, T>,
    sign: Option<Input<'py, T::Real>>,
    phases: Option<Input<'py, T::Real>>,
    /// batch, n, m
    pub sizes: [usize; 3],
}

impl<'py, T: Number> Arrays<'py, T> {
    fn new(vectors: Array<'_, 'py>, sign: &Optional<'py>, phases: &Optional<'py>) -> PyResult<Self> {
        let vectors = Input::new("vectors", vectors)?;
        let sizes @ [batch, n, _] = vectors.sizes("vectors")?;
        let sign = Input::optional("sign", sign.as_ref(), &[batch])?;
        let phases = Input::optional("phases", phases.as_ref(), &[batch, n])?;
        Ok(Arrays { vectors, sign, phases, sizes })
    }

    fn view(&self) -> isometry_core::Result<Householder<'_, T>> {
        let [batch, n, m] = self.sizes;
        Householder::new(self.vectors.slice(), last(&self.sign, &self.phases), batch, n, m)
    }
}

/// The last factor from the array that was given.
pub fn last<'a, R: numpy::Element>(
    sign: &'a Option<Input<'_, R>>,
    phases: &'a Option<Input<'_, R>>,
) -> Last<'a, R> {
    match (read(sign), read(phases)) {
        (Some(sign), _) => Last::Sign(sign),
        (None, Some(phases)) => Last::Phases(phases),
        (None, None) => Last::None,
    }
}

/// Numbers per matrix that `householder_matrix` can save for backward.
fn kept_len(n: usize, m: usize) -> PyResult<usize> {
    size("kept", &[m, m.saturating_add(n)]).map_err(exception)
}

fn side(adjoint: bool) -> Side {
    if adjoint { Side::Adjoint } else { Side::Forward }
}

/// W of a batch of products; `kept` is room for factors saved for backward.
#[pyfunction]
pub fn householder_matrix<'py>(
    py: Python<'py>,
    vectors: Bound<'py, PyAny>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    out: Bound<'py, PyAny>,
    kept: Optional<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        vectors: Array<'_, 'py>,
        last: [&Optional<'py>; 2],
        (out, kept): (Array<'_, 'py>, &Optional<'py>),
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(vectors, last[0], last[1])?;
        let [batch, n, m] = arrays.sizes;
        let mut out = Output::shaped("out", out, &[batch, n, n])?;
        let mut kept = Output::optional("kept", kept.as_ref(), &[batch, kept_len(n, m)?])?;
        let (arrays, out, kept) = (arrays.view(), out.slice(), write(&mut kept));
        gate::run(py, move || match kept {
            Some(kept) => arrays?.matrix_keeping(out, kept, threads),
            None => arrays?.matrix(out, threads),
        })
    }
    by_kind!("vectors", &vectors, call(py, &vectors, [&sign, &phases], (&out, &kept), threads))
}

/// Gradients of the parameters from the cotangent of W, and from the saved factors, if any.
#[pyfunction]
pub fn householder_matrix_vjp<'py>(
    py: Python<'py>,
    vectors: Bound<'py, PyAny>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    kept: Optional<'py>,
    ct: Bound<'py, PyAny>,
    vectors_bar: Optional<'py>,
    sign_bar: Optional<'py>,
    phases_bar: Optional<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        vectors: Array<'_, 'py>,
        last: [&Optional<'py>; 2],
        (kept, ct): (&Optional<'py>, Array<'_, 'py>),
        bars: [&Optional<'py>; 3],
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(vectors, last[0], last[1])?;
        let [batch, n, m] = arrays.sizes;
        let kept = Input::optional("kept", kept.as_ref(), &[batch, kept_len(n, m)?])?;
        let ct = Input::shaped("ct", ct, &[batch, n, n])?;
        let mut outputs = Bars::<T>::new(bars, [&[batch, n, m], &[batch], &[batch, n]])?;
        let (arrays, kept, ct, gradients) = (arrays.view(), read(&kept), ct.slice(), outputs.view());
        gate::run(py, move || match kept {
            Some(kept) => arrays?.matrix_vjp_kept(kept, ct, gradients, threads),
            None => arrays?.matrix_vjp(ct, gradients, threads),
        })
    }
    let bars = [&vectors_bar, &sign_bar, &phases_bar];
    by_kind!("vectors", &vectors, call(py, &vectors, [&sign, &phases], (&kept, &ct), bars, threads))
}

/// Numbers per matrix that `householder_apply` can save for backward; 0 where that does not pay.
#[pyfunction]
pub fn householder_apply_kept(n: usize, m: usize, rows: usize, last: bool) -> PyResult<usize> {
    householder::apply_keep_len(n, m, rows, last).map_err(exception)
}

/// W x, or W^H x if `adjoint`, for rows x; `kept` is room for what the gradient of W x needs again.
#[pyfunction]
pub fn householder_apply<'py>(
    py: Python<'py>,
    vectors: Bound<'py, PyAny>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    x: Bound<'py, PyAny>,
    out: Bound<'py, PyAny>,
    kept: Optional<'py>,
    adjoint: bool,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        vectors: Array<'_, 'py>,
        last: [&Optional<'py>; 2],
        (x, out, kept): (Array<'_, 'py>, Array<'_, 'py>, &Optional<'py>),
        adjoint: bool,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(vectors, last[0], last[1])?;
        let [batch, n, m] = arrays.sizes;
        let x = Input::new("x", x)?;
        let [_, rows, _] = x.sizes("x")?;
        let mut out = Output::shaped("out", out, &[batch, rows, n])?;
        let len = householder_apply_kept(n, m, rows, last.iter().any(|last| last.is_some()))?;
        let mut kept = Output::optional("kept", kept.as_ref(), &[batch, len])?;
        let (arrays, x, out) = (arrays.view(), x.slice(), out.slice());
        let kept = write(&mut kept);
        gate::run(py, move || match kept {
            Some(_) if adjoint => Err(Error::value("kept", "belongs to W x, not to W^H x")),
            Some(kept) => arrays?.apply_keeping(x, rows, out, kept, threads),
            None => arrays?.apply(x, rows, side(adjoint), out, threads),
        })
    }
    by_kind!("vectors", &vectors, call(py, &vectors, [&sign, &phases], (&x, &out, &kept), adjoint, threads))
}

/// Gradients of the parameters and of x from the cotangent of W x (or W^H x), and from the saved data, if any.
#[pyfunction]
pub fn householder_apply_vjp<'py>(
    py: Python<'py>,
    vectors: Bound<'py, PyAny>,
    sign: Optional<'py>,
    phases: Optional<'py>,
    kept: Optional<'py>,
    x: Bound<'py, PyAny>,
    ct: Bound<'py, PyAny>,
    vectors_bar: Optional<'py>,
    sign_bar: Optional<'py>,
    phases_bar: Optional<'py>,
    x_bar: Optional<'py>,
    adjoint: bool,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        vectors: Array<'_, 'py>,
        last: [&Optional<'py>; 2],
        (kept, x, ct): (&Optional<'py>, Array<'_, 'py>, Array<'_, 'py>),
        bars: [&Optional<'py>; 3],
        x_bar: &Optional<'py>,
        adjoint: bool,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = Arrays::<T>::new(vectors, last[0], last[1])?;
        let [batch, n, m] = arrays.sizes;
        let x = Input::new("x", x)?;
        let [_, rows, _] = x.sizes("x")?;
        let len = householder_apply_kept(n, m, rows, last.iter().any(|last| last.is_some()))?;
        let kept = Input::optional("kept", kept.as_ref(), &[batch, len])?;
        let ct = Input::shaped("ct", ct, &[batch, rows, n])?;
        let mut outputs = Bars::<T>::new(bars, [&[batch, n, m], &[batch], &[batch, n]])?;
        let mut x_bar = Output::optional("x_bar", x_bar.as_ref(), &[batch, rows, n])?;
        let (arrays, x, ct, gradients) = (arrays.view(), x.slice(), ct.slice(), outputs.view());
        let (kept, x_bar) = (read(&kept), write(&mut x_bar));
        gate::run(py, move || arrays?.apply_vjp(kept, x, ct, rows, side(adjoint), gradients, x_bar, threads))
    }
    let bars = [&vectors_bar, &sign_bar, &phases_bar];
    by_kind!(
        "vectors",
        &vectors,
        call(py, &vectors, [&sign, &phases], (&kept, &x, &ct), bars, &x_bar, adjoint, threads)
    )
}

/// Outputs for the gradients of the parameters.
pub struct Bars<'py, T: Number> {
    vectors: Option<Output<'py, T>>,
    sign: Option<Output<'py, T::Real>>,
    phases: Option<Output<'py, T::Real>>,
}

impl<'py, T: Number> Bars<'py, T> {
    /// Borrows `vectors_bar`, `sign_bar`, `phases_bar` of the given shapes.
    pub fn new(bars: [&Optional<'py>; 3], shapes: [&[usize]; 3]) -> PyResult<Self> {
        Ok(Bars {
            vectors: Output::optional("vectors_bar", bars[0].as_ref(), shapes[0])?,
            sign: Output::optional("sign_bar", bars[1].as_ref(), shapes[1])?,
            phases: Output::optional("phases_bar", bars[2].as_ref(), shapes[2])?,
        })
    }

    /// The slices.
    pub fn view(&mut self) -> Gradients<'_, T> {
        Gradients {
            vectors: write(&mut self.vectors),
            sign: write(&mut self.sign),
            phases: write(&mut self.phases),
        }
    }
}

/// (batch, column) of the first reflection vector whose squared norm is zero or overflows although its entries are finite.
#[pyfunction]
pub fn householder_check(vectors: Bound<'_, PyAny>) -> PyResult<Option<(usize, usize)>> {
    fn call<T: Number>(vectors: Array<'_, '_>) -> PyResult<Option<(usize, usize)>> {
        let py = vectors.py();
        let vectors = Input::<T>::new("vectors", vectors)?;
        let [batch, n, m] = vectors.sizes("vectors")?;
        let numbers = vectors.slice();
        gate::run(py, || Householder::new(numbers, Last::None, batch, n, m)?.check())
    }
    by_kind!("vectors", &vectors, call(&vectors))
}

/// Reflection vectors and last factor of given orthogonal or unitary matrices.
#[pyfunction]
pub fn householder_from_matrix<'py>(
    py: Python<'py>,
    w: Bound<'py, PyAny>,
    vectors: Bound<'py, PyAny>,
    last: Bound<'py, PyAny>,
    tol: f64,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        w: Array<'_, 'py>,
        vectors: Array<'_, 'py>,
        last: Array<'_, 'py>,
        tol: f64,
    ) -> PyResult<()> {
        let w = Input::<T>::new("w", w)?;
        let [batch, n, _] = w.sizes("w")?;
        let mut vectors = Output::<T>::shaped("vectors", vectors, &[batch, n, n.saturating_sub(1)])?;
        let own: &[usize] = if T::PARTS == 1 { &[batch] } else { &[batch, n] };
        let mut last = Output::<T::Real>::shaped("last", last, own)?;
        let (w, vectors, last) = (w.slice(), vectors.slice(), last.slice());
        gate::run_interruptible(py, move |cancel| {
            householder::from_matrix(w, batch, n, tol, vectors, last, cancel)
        })
    }
    by_kind!("w", &w, call(py, &w, &vectors, &last, tol))
}
