//! The states that a call writes or reads: all, or what is returned and kept of them.

use crate::arrays::{Any, Optional};
use isometry_core::recurrence::Checkpoint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Arrays for all states, the last of each sequence, and those at the borders of a checkpoint's segments, and its name.
pub(super) type Parts<'py> = (Optional<'py>, Optional<'py>, Optional<'py>, Option<String>);

/// All states, or what is returned and kept of them.
pub enum States<'py> {
    /// Less than all.
    Parts(Parts<'py>),
    /// All.
    Whole(Any<'py>),
}

// A derived one would make an error of every array, since it is no tuple.
impl<'a, 'py> FromPyObject<'a, 'py> for States<'py> {
    type Error = PyErr;

    fn extract(states: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(match states.is_instance_of::<PyTuple>() {
            true => States::Parts(states.extract()?),
            false => States::Whole(states.to_owned()),
        })
    }
}

impl<'py> States<'py> {
    /// The arrays, and the checkpoint.
    pub(super) fn parts(self) -> PyResult<(Parts<'py>, Option<Checkpoint>)> {
        let parts = match self {
            States::Parts(parts) => parts,
            States::Whole(states) => (Some(states), None, None, None),
        };
        let unknown = |name: &String| {
            PyValueError::new_err(format!("checkpoint: expected \"sqrt\" or \"reversible\", got {name:?}"))
        };
        let checkpoint =
            parts.3.as_ref().map(|name| Checkpoint::parse(name).ok_or_else(|| unknown(name))).transpose()?;
        Ok((parts, checkpoint))
    }
}
