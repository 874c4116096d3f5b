//! Orthogonal and unitary transformations on GPUs, through wgpu: Vulkan, Metal, DirectX 12.
//!
//! Single precision, real and complex. An [`Array`] is memory of the device with a shape; functions of the objects take and
//! return arrays, record dispatches and submit them without waiting, so that a chain of calls copies nothing. The kernels are the
//! `.wgsl` files beside the Rust that dispatches them; their bindings are declared in the shader only
//! (`shader`).
//!
//! Shaders run without wgpu's guard against endless loops, and on memory that is not cleared. So only this
//! crate chooses them, their arrays and sizes: callers can neither run a shader of their own nor pass an array
//! that no call has written.
//!
//! ```compile_fail,E0603
//! use isometry_gpu::shader::Shader;
//! ```
//! ```compile_fail,E0603
//! use isometry_gpu::product::Product;
//! ```
//! ```compile_fail,E0603
//! use isometry_gpu::device::Record;
//! ```
//! ```compile_fail,E0624
//! # use isometry_gpu::{Array, Field, device::context};
//! let room = Array::room(&context().unwrap(), Field::Real, &[256]);
//! ```

pub mod activation;
mod array;
mod cayley;
mod cell;
pub mod combine;
mod delta;
mod dense;
pub mod device;
mod gated;
pub mod hadamard;
pub mod hosted;
mod householder;
mod last;
mod lstm;
mod objects;
mod operator;
mod product;
#[cfg(any(test, feature = "proof"))]
mod proof;
mod recurrence;
mod rows;
mod rum;
mod shader;
#[cfg(test)]
mod testing;

pub use array::{Array, Field, Room};
pub use product::choose_tiles;
