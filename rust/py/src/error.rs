//! Maps errors of the core to Python exceptions.

use isometry_core::Error;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};

/// The exception of an error of the core, its message unchanged.
pub fn exception(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Shape { .. } | Error::Value { .. } => PyValueError::new_err(message),
        Error::Unsupported(_) => PyNotImplementedError::new_err(message),
        Error::Dtype(_) => PyTypeError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        _ => PyRuntimeError::new_err(message), // `Device`
    }
}

/// The error for an array whose memory cannot be a slice.
pub fn layout(argument: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: expected a C-contiguous, aligned array"))
}
