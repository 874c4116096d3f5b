//! Where a call computes: on threads of the CPU, or on the GPU.

use crate::detached;
use isometry_core::argument::Bar;
use isometry_core::recurrence::{Call, Outcome, Written, ensemble, sequence, sequence_vjp};
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu, Error, Result};
#[cfg(feature = "gpu")]
use isometry_gpu::hosted::sequence as hosted;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// A call, what it fills, its memory, empty without one, and what it saves.
type Forward<'a, T> = (Call<'a, T>, Written<'a, T>, &'a mut [T], Option<&'a mut [T]>);

/// A call, its results, and the rooms for the gradients of its arguments and of those of its operator.
type Backward<'a, T> = (Call<'a, T>, Outcome<'a, T>, Vec<Bar<'a, T>>, Vec<Bar<'a, T>>);

/// The last argument of a call: a number of threads, or "gpu".
#[derive(Clone, Copy)]
pub enum Place {
    /// Threads of the CPU.
    Threads(usize),
    /// The GPU.
    Gpu,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Place {
    type Error = PyErr;

    fn extract(place: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(name) = place.cast::<PyString>() else { return Ok(Place::Threads(place.extract()?)) };
        match &*name.to_cow()? {
            "gpu" => Ok(Place::Gpu),
            other => Err(PyValueError::new_err(format!(
                "place: expected a number of threads or 'gpu', got {other:?}"
            ))),
        }
    }
}

impl Place {
    /// The number of threads; on the GPU, for the parts that the CPU computes.
    pub fn threads(self) -> usize {
        match self {
            Place::Threads(threads) => threads,
            Place::Gpu => isometry_core::internal::parallel::available(),
        }
    }

    /// Runs a call detached from the interpreter. A wait for the GPU can be interrupted; an operator's call on the CPU is
    /// short.
    pub fn run<R: Send>(
        self,
        py: Python<'_>,
        f: impl FnOnce(&Budget<'_>) -> Result<R> + Send,
    ) -> PyResult<R> {
        let threads = self.threads();
        match self {
            Place::Threads(_) => detached::run(py, || f(&Budget::of(threads))),
            Place::Gpu => detached::run_interruptible(py, |cancel| f(&Budget { threads, cancel })),
        }
    }

    /// The operator at that place.
    pub fn of<'a, T: Scalar>(
        self,
        object: &'a str,
        operator: Result<Box<dyn Cpu<T> + 'a>>,
    ) -> Result<Box<dyn Cpu<T> + 'a>> {
        match self {
            Place::Threads(_) => operator,
            #[cfg(feature = "gpu")]
            Place::Gpu => Ok(Box::new(isometry_gpu::hosted::Hosted::new(object, operator?)?)),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without(object)),
        }
    }

    /// The states of calls of the same sizes and, on the CPU, what is saved for backward.
    pub fn sequence<T: Scalar>(self, mut calls: Vec<Forward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
        let Some((call, ..)) = calls.first() else { return Ok(()) };
        match self {
            Place::Threads(_) if calls.len() == 1 => {
                calls.pop().map_or(Ok(()), |(call, to, last, saved)| sequence(call, to, last, saved, budget))
            }
            Place::Threads(_) => {
                let sizes = call.sizes()?;
                ensemble::<T, _>(calls, sizes, budget, |(call, to, last, saved), budget| {
                    sequence(call, to, last, saved, budget)
                })
            }
            Place::Gpu if call.marks.is_some() => Err(marked()),
            #[cfg(feature = "gpu")]
            Place::Gpu => hosted::forward(
                calls.into_iter().map(|(call, to, last, _)| (call, to, last)).collect(),
                budget,
            ),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without(call.cell.name)),
        }
    }

    /// Their gradients.
    pub fn sequence_vjp<T: Scalar>(self, mut calls: Vec<Backward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
        let Some((call, ..)) = calls.first() else { return Ok(()) };
        match self {
            Place::Threads(_) if calls.len() == 1 => {
                calls.pop().map_or(Ok(()), |(call, outcome, mut bars, mut of_operator)| {
                    sequence_vjp(call, &outcome, &mut bars, &mut of_operator, budget)
                })
            }
            Place::Threads(_) => {
                let sizes = call.sizes()?;
                ensemble::<T, _>(
                    calls,
                    sizes,
                    budget,
                    |(call, outcome, mut bars, mut of_operator), budget| {
                        sequence_vjp(call, &outcome, &mut bars, &mut of_operator, budget)
                    },
                )
            }
            Place::Gpu if call.marks.is_some() => Err(marked()),
            #[cfg(feature = "gpu")]
            Place::Gpu => hosted::backward(calls, budget),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without(call.cell.name)),
        }
    }
}

fn marked() -> Error {
    Error::Unsupported("backend='gpu' cannot serve starts: use the CPU".into())
}

#[cfg(not(feature = "gpu"))]
fn without(object: &str) -> Error {
    let text = "backend='gpu' cannot serve: this build of isometry has no GPU support";
    Error::Unsupported(format!("{text} (feature gpu), asked for by {object}"))
}
