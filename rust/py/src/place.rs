//! Where a call computes: on threads of the CPU, or on the GPU.

use isometry_core::scalar::Scalar;
use isometry_core::{Cpu, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

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
    /// Threads of the CPU that may take part; on the GPU, of what the CPU computes for it.
    pub fn threads(self) -> usize {
        match self {
            Place::Threads(threads) => threads,
            Place::Gpu => isometry_core::parallel::available(),
        }
    }

    /// The operator there.
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
            Place::Gpu => {
                let text = "backend='gpu' cannot serve: this build of isometry has no GPU support";
                Err(isometry_core::Error::Device(format!("{text} (feature gpu), asked for by {object}")))
            }
        }
    }
}
