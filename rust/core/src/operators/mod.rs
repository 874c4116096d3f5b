//! One folder per object: definition and law in `mod.rs`, the arithmetic in `cpu.rs`.

pub mod cayley;
pub mod dense;
pub mod householder;
