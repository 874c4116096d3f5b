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
use crate::shader::Shader;
use isometry_core::activation::Activation;

macro_rules! shaders {
    ($($name:ident $file:literal),*) => {$(
        #[doc = $file]
        pub(crate) static $name: Shader =
            Shader { name: $file, source: include_str!(concat!($file, ".wgsl")), variants: &[&[]] };
    )*};
}

shaders!(FACTORS "factors", PREVIOUS "previous", SCALED "scaled", UNIT "unit", UNIT_VJP "unit_vjp");

/// The arguments of a gated unit; the order of the gates is z, r, h.
#[derive(Clone, Copy, Debug)]
pub struct Gated<'a> {
    /// (T, B, d)
    pub x: &'a Array,
    /// W (3, n, n)
    pub w: &'a Array,
    /// U (3, n, d)
    pub u: &'a Array,
    /// (B, n), zeros if absent
    pub h0: Option<&'a Array>,
    /// b (3, n)
    pub bias: Option<&'a Array>,
    /// (3, n): zeros, zeros and c_h, with the reset behind W_h only
    pub hidden_bias: Option<&'a Array>,
    /// The reset gate acts behind W_h.
    pub after: bool,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs.
    pub activation_bias: Option<&'a Array>,
    /// Steps of each sequence, in any order; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
}
