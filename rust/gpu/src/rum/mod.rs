//! The rotational unit of memory over a sequence, real numbers, of `isometry_core::recurrence::rum`.
//!
//! Forward, a step is a product with W and a pass with one workgroup for each sequence, since rotations and norms need whole rows. With a memory
//! it is two such passes, and between them one over the memory, with a workgroup for 16 of its rows.
//!
//! Backward begins from the states alone: frames of the rotations, gates and k of all steps are computed at once (`frames`, some 7 T B n
//! numbers). A step is then a pass and a product. With a memory it is two passes, and between them one over R and its cotangent.
//! R h of all steps comes from R_0, since rows of R are recurrences of their own; that also gives the last R, from which R of earlier steps is
//! obtained by turning back.

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
    ($($name:ident $shader:literal $file:literal),*) => {$(
        #[doc = $file]
        pub(crate) static $name: Shader =
            Shader { name: $shader, source: include_str!($file), variants: &[&[]] };
    )*};
}

shaders!(
    FACTORS "rum_factors" "factors.wgsl",
    MEMORY "rum_memory" "memory.wgsl",
    MEMORY_VJP "rum_memory_vjp" "memory_vjp.wgsl",
    UNIT "rum" "unit.wgsl",
    UNIT_VJP "rum_vjp" "unit_vjp.wgsl"
);

/// Phases of a step: without a memory; with one, up to its rotation, and from there on.
const WHOLE: u32 = 0;
const FIRST: u32 = 1;
const SECOND: u32 = 2;

/// The arguments of a rotational unit.
#[derive(Clone, Copy, Debug)]
pub struct Rotational<'a> {
    /// W (2n, n): rows of u, then of tau; U (3n, d) and b (3n): of u, tau, e; h0 (B, n)
    pub arguments: Arguments<'a>,
    /// Whether each sequence has a matrix of its own that all its rotations multiply.
    pub memory: bool,
    /// (B, n, n), identities if absent; with a memory only
    pub r0: Option<&'a Array>,
    /// The length of the states, if they are normalised.
    pub eta: Option<f32>,
}
