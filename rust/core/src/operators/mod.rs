//! One folder per operator: definition in `mod.rs`, the arithmetic beside it.

pub mod cayley;
pub mod dense;
pub mod householder;
