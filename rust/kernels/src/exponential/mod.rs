//! Kernels of the matrix exponential of a skew-Hermitian matrix, between its products: one matrix ([`Fold`]), or one
//! matrix per lane ([`lanes`]).

mod fold;
pub mod lanes;
mod passes;

pub use fold::{BLOCK, Fold};
pub use passes::{Combine, Keep, Measure, Scale, TERMS};

use crate::dispatch::compiled;
use crate::scalar::{Real, Scalar, c32, c64};
use lanes::{Adjoint, Gradient, Load, Multiply, Skew, Squares, Store};

compiled! {
    /// Passes that are the same for both fields, compiled for each real type.
    ExponentialPasses: Real for f32, f64; {
        /// [`Combine`]
        fn combine(Combine);
        /// [`Keep`]
        fn keep(Keep);
        /// [`Measure`]
        fn measure(Measure);
        /// [`Scale`]
        fn scale_lanes(Scale);
    }
}

compiled! {
    /// The rest, compiled for each element type.
    ExponentialKernels: Scalar for f32, f64, c32, c64; {
        /// [`Fold`]
        fn fold(Fold);
        /// [`Skew`]
        fn lanes_skew(Skew);
        /// [`Load`]
        fn lanes_load(Load);
        /// [`Store`]
        fn lanes_store(Store);
        /// [`Multiply`]
        fn lanes_multiply(Multiply);
        /// [`Adjoint`]
        fn lanes_adjoint(Adjoint);
        /// [`Squares`]
        fn lanes_squares(Squares);
        /// [`Gradient`]
        fn lanes_gradient(Gradient);
    }
}
