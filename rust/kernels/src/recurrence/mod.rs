//! Kernels of the steps of all recurrences.

mod affine;
mod cross;

pub use affine::{Affine, Finish, Sweep, Term};
pub use cross::Cross;

use crate::dispatch::compiled;
use crate::scalar::Real;

compiled! {
    /// Steps, compiled for each real type.
    RecurrenceKernels: Real for f32, f64; {
        /// [`Sweep`]
        fn affine(Sweep);
        /// [`Cross`]
        fn cross(Cross);
    }
}
