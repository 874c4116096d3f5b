//! `cayley_*`: the scaled Cayley transform.

use crate::arrays::{Input, Number, Output, read, write};
use crate::error::exception;
use crate::{by_kind, gate};
use isometry_core::Operator;
use isometry_core::operators::cayley::{self, Cayley, Gradients, Last};
use isometry_core::sizes::{size, triangles};
use pyo3::prelude::*;

type Array<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

fn last<'a, R: numpy::Element>(
    signs: &'a Option<Input<'_, R>>,
    phases: &'a Option<Input<'_, R>>,
) -> Last<'a, R> {
    match (read(signs), read(phases)) {
        (Some(signs), _) => Last::Signs(signs),
        (None, Some(phases)) => Last::Phases(phases),
        (None, None) => Last::None,
    }
}

/// The size n of a skew matrix with `packed` = n (n - 1) / 2 entries above the diagonal, if there is one.
fn size_of(packed: usize) -> usize {
    // n = (1 + sqrt(1 + 8 packed)) / 2, exact for every length that fits in memory
    ((1.0 + (1.0 + 8.0 * packed as f64).sqrt()) / 2.0).round() as usize
}

/// n (n - 1) / 2
fn triangle(n: usize) -> PyResult<usize> {
    size("upper", &triangles(1, n)).map_err(exception)
}

/// W of a batch of skew matrices packed above the diagonal.
#[pyfunction]
pub fn cayley_matrix<'py>(
    py: Python<'py>,
    upper: Bound<'py, PyAny>,
    diagonal: Optional<'py>,
    signs: Optional<'py>,
    phases: Optional<'py>,
    out: Bound<'py, PyAny>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        upper: Array<'_, 'py>,
        [diagonal, signs, phases]: [&Optional<'py>; 3],
        out: Array<'_, 'py>,
        threads: usize,
    ) -> PyResult<()> {
        let upper = Input::<T>::new("upper", upper)?;
        let [batch, packed] = upper.sizes("upper")?;
        let n = size_of(packed);
        let diagonal = Input::optional("diagonal", diagonal.as_ref(), &[batch, n])?;
        let signs = Input::optional("signs", signs.as_ref(), &[batch, n])?;
        let phases = Input::optional("phases", phases.as_ref(), &[batch, n])?;
        let mut out = Output::shaped("out", out, &[batch, n, n])?;
        let (upper, diagonal, last, out) =
            (upper.slice(), read(&diagonal), last(&signs, &phases), out.slice());
        gate::run(py, move || Cayley::new(upper, diagonal, last, batch, n)?.matrix(out, threads))
    }
    by_kind!("upper", &upper, call(py, &upper, [&diagonal, &signs, &phases], &out, threads))
}

/// Gradients of the parameters from W itself and its cotangent.
#[pyfunction]
pub fn cayley_matrix_vjp<'py>(
    py: Python<'py>,
    w: Bound<'py, PyAny>,
    signs: Optional<'py>,
    phases: Optional<'py>,
    ct: Bound<'py, PyAny>,
    upper_bar: Optional<'py>,
    diagonal_bar: Optional<'py>,
    phases_bar: Optional<'py>,
    threads: usize,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        w: Array<'_, 'py>,
        [signs, phases]: [&Optional<'py>; 2],
        ct: Array<'_, 'py>,
        [upper, diagonal, phase]: [&Optional<'py>; 3],
        threads: usize,
    ) -> PyResult<()> {
        let w = Input::<T>::new("w", w)?;
        let [batch, n, _] = w.sizes("w")?;
        let signs = Input::optional("signs", signs.as_ref(), &[batch, n])?;
        let phases = Input::optional("phases", phases.as_ref(), &[batch, n])?;
        let ct = Input::shaped("ct", ct, &[batch, n, n])?;
        let packed = triangle(n)?;
        let mut upper = Output::optional("upper_bar", upper.as_ref(), &[batch, packed])?;
        let mut diagonal = Output::optional("diagonal_bar", diagonal.as_ref(), &[batch, n])?;
        let mut phase = Output::optional("phases_bar", phase.as_ref(), &[batch, n])?;
        let gradients =
            Gradients { upper: write(&mut upper), diagonal: write(&mut diagonal), phases: write(&mut phase) };
        let (w, last, ct) = (w.slice(), last(&signs, &phases), ct.slice());
        gate::run(py, move || cayley::matrix_vjp(w, last, ct, gradients, batch, n, threads))
    }
    let bars = [&upper_bar, &diagonal_bar, &phases_bar];
    by_kind!("w", &w, call(py, &w, [&signs, &phases], &ct, bars, threads))
}

/// The skew matrices of given orthogonal or unitary ones; the last factor is chosen or given.
#[pyfunction]
pub fn cayley_from_matrix<'py>(
    py: Python<'py>,
    w: Bound<'py, PyAny>,
    last: Bound<'py, PyAny>,
    choose: bool,
    upper: Bound<'py, PyAny>,
    diagonal: Optional<'py>,
    tol: f64,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        w: Array<'_, 'py>,
        (last, choose): (Array<'_, 'py>, bool),
        upper: Array<'_, 'py>,
        diagonal: &Optional<'py>,
        tol: f64,
    ) -> PyResult<()> {
        let w = Input::<T>::new("w", w)?;
        let [batch, n, _] = w.sizes("w")?;
        let mut last = Output::shaped("last", last, &[batch, n])?;
        let mut upper = Output::shaped("upper", upper, &[batch, triangle(n)?])?;
        let mut diagonal = Output::optional("diagonal", diagonal.as_ref(), &[batch, n])?;
        let (w, last, upper, diagonal) = (w.slice(), last.slice(), upper.slice(), write(&mut diagonal));
        gate::run_interruptible(py, move |cancel| {
            cayley::from_matrix(w, last, choose, upper, diagonal, (batch, n), tol, 1, cancel)
        })
    }
    by_kind!("w", &w, call(py, &w, (&last, choose), &upper, &diagonal, tol))
}
