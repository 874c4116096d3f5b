//! `triangle`: packs the strictly lower triangles of square matrices, in the order of the rows of their transposes, and unpacks them.

use crate::arrays::{Any, Input, Output};
use crate::error::exception;
use crate::{by_dtype, detached};
use isometry_core::internal::sizes::{size, triangles};
use isometry_core::scalar::{Real, Scalar};
use pyo3::prelude::*;

/// Columns that are read at a time, a cache line: their rows of the transpose are written side by side.
const WIDE: usize = 16;

/// Fills `upper` (batch, n (n - 1) / 2) with `factor` times the entries of x (batch, n, n); `back`: x, which has zeros elsewhere, from `upper`.
#[pyfunction]
pub fn triangle(x: Any<'_>, upper: Any<'_>, factor: f64, back: bool) -> PyResult<()> {
    by_dtype!("x", &x, T, py => {
        let [batch, n, _] = Input::<T>::new("x", &x)?.sizes("x")?;
        let each = size("upper", &triangles(1, n)).map_err(exception)?;
        let (shape, factor) = ([batch, each], T::real(<T as Scalar>::Real::of(factor)));
        if back {
            let upper = Input::<T>::shaped("upper", &upper, &shape)?;
            let mut x = Output::<T>::shaped("x", &x, &[batch, n, n])?;
            let (x, upper) = (x.slice(), upper.slice());
            return detached::run(py, move |_| {
                x.fill(T::default());
                for (x, upper) in x.chunks_exact_mut((n * n).max(1)).zip(upper.chunks_exact(each.max(1))) {
                    places(n).for_each(|(to, from)| x[to] = upper[from] * factor);
                }
                Ok(())
            });
        }
        let x = Input::<T>::shaped("x", &x, &[batch, n, n])?;
        let mut upper = Output::<T>::shaped("upper", &upper, &shape)?;
        let (x, upper) = (x.slice(), upper.slice());
        detached::run(py, move |_| {
            for (x, upper) in x.chunks_exact((n * n).max(1)).zip(upper.chunks_exact_mut(each.max(1))) {
                places(n).for_each(|(from, to)| upper[to] = x[from] * factor);
            }
            Ok(())
        })
    })
}

/// Of every entry below the diagonal, in x and in `upper`.
fn places(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).step_by(WIDE).flat_map(move |first| {
        (first + 1..n).flat_map(move |i| {
            (first..i.min(first + WIDE)).map(move |j| (i * n + j, j * n - j * (j + 1) / 2 + i - j - 1))
        })
    })
}
