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

pub(crate) use backward::backward;
pub(crate) use forward::forward;
pub(crate) use setting::setting;

use crate::shader::shaders;

shaders! {
    FACTORS "rum_factors" "factors.wgsl",
    MEMORY "rum_memory" "memory.wgsl",
    MEMORY_VJP "rum_memory_vjp" "memory_vjp.wgsl",
    UNIT "rum" "unit.wgsl",
    UNIT_VJP "rum_vjp" "unit_vjp.wgsl",
}

/// Phases of a step: without a memory; with one, up to its rotation, and from there on.
const WHOLE: u32 = 0;
const FIRST: u32 = 1;
const SECOND: u32 = 2;
