//! The nonlinearities, one file each, within a vector register ([`Elementwise`]) or on whole rows; the pass over
//! complete rows, and the column sums of bias gradients.

mod elementwise;
pub(crate) mod exponential;
mod identity;
mod leaky_relu;
mod modrelu;
mod modrelu_realrep;
mod oplu;
mod oplu_halves;
mod phi;
mod relu;
mod sigmoid;
mod sums;
mod tanh;

pub use elementwise::Elementwise;
pub(crate) use phi::TOGETHER;
pub use phi::{Nonlinearity, Pass, Phi, Source};
pub(crate) use sigmoid::Sigmoid;
pub use sums::{Along, Columns, units};
pub(crate) use tanh::Tanh;

use crate::dispatch::compiled;
use crate::scalar::Real;

compiled! {
    /// Passes of the nonlinearities, compiled for each real type.
    ActivationKernels: Real for f32, f64; {
        /// [`Pass`]
        fn activation(Pass);
        /// [`Columns`]
        fn columns(Columns);
    }
}
