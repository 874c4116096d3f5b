//! Kernels of the scaled Cayley transform: one matrix, or one matrix per lane.

mod check;
mod finish;
pub mod group;
mod slabs;
pub mod triangle;

pub use check::{Limits, probe, probe_norm2};
pub use finish::Finish;
pub use slabs::Slabs;
pub use triangle::{PackGradient, Unpack};

use crate::dispatch::compiled;
use crate::scalar::{Scalar, c32, c64};
use group::{Backward, Forward};

/// Outputs of the gradients of one matrix, or of several consecutive ones.
#[derive(Clone, Copy)]
pub struct Targets<T: Scalar> {
    /// (n (n - 1) / 2)
    pub upper: Option<*mut T>,
    /// (n)
    pub diagonal: Option<*mut T::Real>,
    /// (n)
    pub phases: Option<*mut T::Real>,
}

compiled! {
    /// Cayley transforms, compiled for each element type.
    CayleyKernels: Scalar for f32, f64, c32, c64; {
        /// [`Unpack`]
        fn unpack(Unpack);
        /// [`Finish`]
        fn finish(Finish);
        /// [`PackGradient`]
        fn pack_gradient(PackGradient);
        /// [`Forward`]
        fn group_forward(Forward) -> u32;
        /// [`Backward`]
        fn group_backward(Backward);
    }
}
