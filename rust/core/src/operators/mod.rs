//! One folder per object: definition and law in `mod.rs`, the arithmetic beside it.

pub mod cayley;
pub mod dense;
pub mod householder;
