//! The inner loops of isometry-core, vectorised for every instruction set, on pointers whose sizes the caller has
//! checked.
//!
//! A part of isometry-core, of its own only to be compiled once: programs use the core, whose functions are safe and have
//! examples. Nothing here keeps its name or meaning from one version to the next.
//!
//! A kernel is a struct of its arguments and a computation that is generic over [`simd::Simd`]; the table declared in
//! its file (`compiled!`) compiles it here, once per instruction set and element type, and [`scalar::Scalar`] has all
//! tables as supertraits. Crates that call `T::multiply(..)` link to that code and do not compile it again.
//!
//! A complex array is a real one of twice the width.
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod activation;
pub mod angles;
pub mod bounded_svd;
pub mod cayley;
pub mod circulant;
pub mod delta;
mod dispatch;
pub mod eliminate;
pub mod exponential;
pub mod fourier;
pub mod givens;
pub mod hadamard;
pub mod householder;
pub mod kronecker;
mod lanes;
pub mod limit;
pub mod mesh;
pub mod norms;
pub mod pack;
pub mod procrustes;
pub mod product;
pub mod qr;
pub mod quaternion;
pub mod recurrence;
pub mod rotation;
pub mod scalar;
pub mod simd;
pub mod stop;
pub mod symmetric;
pub mod tile;
pub mod transform;
pub mod upper;

pub use dispatch::{Isa, Kernel, chosen, isa, lanes};
pub use simd::{Avx2, Avx512, Neon, Portable};
