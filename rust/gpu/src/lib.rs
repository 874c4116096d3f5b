//! Orthogonal and unitary transformations on GPUs, through wgpu: Vulkan, Metal, DirectX 12.
//!
//! Single precision, real and complex. An [`Array`] is memory of the device with a shape; functions of the objects take and
//! return arrays, record dispatches and submit them without waiting, so that a chain of calls copies nothing. The kernels are the
//! `.wgsl` files beside the Rust that dispatches them; what they bind stands in the shader alone ([`shader`]).

pub mod activation;
mod array;
pub mod cayley;
pub mod combine;
pub mod dense;
pub mod device;
pub mod hosted;
pub mod householder;
pub mod last;
pub mod objects;
pub mod operator;
pub mod product;
pub mod recurrence;
mod rows;
pub mod shader;
#[cfg(test)]
mod testing;

pub use array::{Array, Kind};
