//! `isometry._core`: stateless functions on arrays, without mathematics or policy.

mod activation;
mod arrays;
mod blocks;
mod cayley;
mod config;
mod delta;
mod detached;
mod dtype;
mod error;
mod exponential;
mod finite;
#[cfg(feature = "gpu")]
mod gpu;
mod hadamard;
mod householder;
mod linalg;
mod openmp;
mod operator;
mod place;
mod plain;
mod ranges;
mod recurrence;
#[cfg(feature = "gpu")]
mod resident;
mod sequence;
mod tensors;
mod threads;
mod triangle;

/// Private extension module of isometry; the public documentation is in the Python packages.
///
/// It does not need the lock of the interpreter: calls compute without it, what the process shares is set once, and the
/// only class is frozen. As with NumPy, nobody may write to or resize an array that a call uses.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::{
        activation::{activate, activate_vjp},
        blocks::{blocks_apply, blocks_apply_vjp},
        cayley::{cayley_from_matrix, cayley_from_rotvec},
        config::{adopt_openmp, available_parallelism, config, multiply_adds},
        delta::{delta_rule, delta_rule_vjp},
        exponential::exponential_from_matrix,
        finite::all_finite,
        hadamard::hadamard_transform,
        householder::householder_from_matrix,
        linalg::{
            linalg_apply, linalg_apply_vjp, linalg_geqrf, linalg_geqrf_vjp, linalg_procrustes,
            linalg_procrustes_vjp, linalg_product, linalg_product_vjp,
        },
        operator::{
            operator_apply, operator_apply_vjp, operator_check, operator_matrix, operator_matrix_vjp,
        },
        plain::plain_sequence,
        recurrence::{pack, recurrence_marks, recurrence_route},
        sequence::{sequence, sequence_vjp},
        tensors::exchange_with,
        triangle::triangle,
    };
    #[cfg(feature = "gpu")]
    #[pymodule_export]
    use crate::{
        gpu::{
            gpu_activate, gpu_activate_vjp, gpu_adapters, gpu_cells, gpu_combine, gpu_download,
            gpu_hadamard_transform, gpu_objects, gpu_reset, gpu_statistics, gpu_tiles, gpu_upload, gpu_wait,
        },
        resident::GpuArray,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::config::init(module)
    }
}
