//! The inner loops of isometry-core on vectors of every instruction set, for pointers whose sizes others have checked.
//!
//! A kernel is a struct of its arguments and a computation that is generic over [`simd::Simd`]; the table that its file declares
//! (`compiled!`) compiles it here, once per instruction set and element type, and [`scalar::Scalar`] carries all tables. Crates that
//! call `T::multiply(..)` link to that code: they neither see nor compile it again.
//!
//! A complex array is a real one of twice the width.

pub mod activation;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod cayley;
mod dispatch;
pub mod eliminate;
pub mod householder;
mod lanes;
pub mod norms;
pub mod pack;
mod portable;
pub mod product;
pub mod recurrence;
pub mod scalar;
pub mod simd;
pub mod tile;
pub mod upper;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub use dispatch::{Isa, Kernel, chosen, isa, lanes};
pub use portable::Portable;

/// Elsewhere the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx512<R> = Portable<R>;
/// Elsewhere the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx2<R> = Portable<R>;
