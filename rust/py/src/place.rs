//! Where a call computes: on threads of the CPU, or on the GPU.

#[cfg(not(feature = "gpu"))]
use pyo3::exceptions::PyNotImplementedError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The last argument of a call: a number of threads, or "gpu".
#[derive(Clone, Copy)]
pub enum Place {
    /// Threads of the CPU.
    Threads(usize),
    /// The thread of the caller, which keeps the interpreter's lock: it holds tensors, not their memory.
    Here,
    /// The GPU.
    #[cfg(feature = "gpu")]
    Gpu,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Place {
    type Error = PyErr;

    fn extract(place: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(name) = place.cast::<PyString>() else { return Ok(Place::Threads(place.extract()?)) };
        match &*name.to_cow()? {
            #[cfg(feature = "gpu")]
            "gpu" => Ok(Place::Gpu),
            #[cfg(not(feature = "gpu"))]
            "gpu" => Err(PyNotImplementedError::new_err(
                "backend='gpu' cannot serve: this build of isometry has no GPU support (feature gpu)",
            )),
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
            Place::Here => 1,
            #[cfg(feature = "gpu")]
            Place::Gpu => isometry_core::internal::parallel::available(),
        }
    }
}
