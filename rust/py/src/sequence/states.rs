//! Which form of the states a call has given.

use super::States;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

impl<'a, 'py> FromPyObject<'a, 'py> for States<'py> {
    type Error = PyErr;

    fn extract(states: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // asked first: the error of an attempt takes 2 us
        if states.is_instance_of::<PyTuple>() {
            return Ok(States::Parts(states.extract()?));
        }
        Ok(States::Whole(states.to_owned()))
    }
}
