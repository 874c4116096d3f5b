//! The gated recurrent unit over a sequence, real numbers, of `isometry_core::recurrence::gru`: W_h is a matrix.
//!
//! Forward, a step is a product with all matrices and a pass over its rows, two of each where the reset gate acts before W_h. Backward computes
//! for all steps at once what does not depend on the recursion (`factors.wgsl`), from the states alone; a step is then a pass
//! and a product, and products over all rows give the gradients.

mod backward;
mod forward;
mod setting;
#[cfg(test)]
mod tests;

pub use backward::{Gradients, Wanted, backward};
pub use forward::forward;
pub(crate) use {backward::record_backward, forward::record_forward};

use crate::Array;
use crate::cell::Arguments;
use crate::shader::Shader;

macro_rules! shaders {
    ($($name:ident $file:literal),*) => {$(
        #[doc = $file]
        pub(crate) static $name: Shader =
            Shader { name: $file, source: include_str!(concat!($file, ".wgsl")), variants: &[&[]] };
    )*};
}

shaders!(FACTORS "factors", SCALED "scaled", UNIT "unit", UNIT_VJP "unit_vjp");

/// The arguments of a gated unit; the order of the gates is z, r, h.
#[derive(Clone, Copy, Debug)]
pub struct Gated<'a> {
    /// W (3n, n), U (3n, d), b (3n), h0 (B, n)
    pub arguments: Arguments<'a>,
    /// (3n): zeros, zeros and c_h, with the reset behind W_h only
    pub hidden_bias: Option<&'a Array>,
    /// The reset gate acts behind W_h.
    pub after: bool,
}
