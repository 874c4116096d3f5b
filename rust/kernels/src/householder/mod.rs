//! Kernels of products of reflections, applied one after another.

mod reflect;
mod sequential;

pub use reflect::Reflect;
pub use sequential::{Pass, Pull, Sizes};
pub(crate) use sequential::{inner, scaled_add, total};

use crate::dispatch::compiled;
use crate::scalar::{Scalar, c32, c64};

compiled! {
    /// Reflections, compiled for each element type.
    HouseholderKernels: Scalar for f32, f64, c32, c64; {
        /// [`Pass`]
        fn reflections(Pass);
        /// [`Pull`]
        fn reflections_pull(Pull);
        /// [`Reflect`]
        fn reflect(Reflect);
    }
}
