//! `isometry._core`: a list of stateless functions. Arrays in, arrays out, no mathematics, no policy.

mod activation;
mod arrays;
mod cayley;
mod config;
mod dense;
mod error;
mod gate;
mod gru;
mod householder;
mod recurrence;
mod sequence;
mod tensors;

/// Private extension module of isometry; the public text is in the Python packages.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::activation::{activate, activate_vjp};
    #[pymodule_export]
    use crate::arrays::all_finite;
    #[pymodule_export]
    use crate::cayley::{cayley_from_matrix, cayley_matrix, cayley_matrix_vjp};
    #[pymodule_export]
    use crate::config::{adopt_openmp, available_parallelism, config};
    #[pymodule_export]
    use crate::dense::{dense_apply, dense_apply_vjp};
    #[pymodule_export]
    use crate::gru::{gru, gru_vjp};
    #[pymodule_export]
    use crate::householder::{
        householder_apply, householder_apply_kept, householder_apply_vjp, householder_check,
        householder_from_matrix, householder_matrix, householder_matrix_vjp,
    };
    #[pymodule_export]
    use crate::recurrence::{
        recurrence_dense, recurrence_dense_vjp, recurrence_plan, recurrence_reflections,
        recurrence_reflections_vjp,
    };
    #[pymodule_export]
    use crate::tensors::exchange_with;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::config::init(module)
    }
}
