//! Kernels of the steps of all recurrences.

mod affine;
mod cross;
mod gates;

pub use affine::{Affine, Finish, Sweep, Term};
pub use cross::Cross;
pub use gates::{Area, Blend, BlendPull, Reset, ResetPull};

use crate::dispatch::compiled;
use crate::scalar::Real;

compiled! {
    /// Steps, compiled for each real type.
    RecurrenceKernels: Real for f32, f64; {
        /// [`Sweep`]
        fn affine(Sweep);
        /// [`Cross`]
        fn cross(Cross);
        /// [`Reset`]
        fn reset(Reset);
        /// [`Blend`]
        fn blend(Blend);
        /// [`BlendPull`]
        fn blend_pull(BlendPull);
        /// [`ResetPull`]
        fn reset_pull(ResetPull);
    }
}
