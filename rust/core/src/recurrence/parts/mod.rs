//! Parts of cells: the input V x + b, activations, gates, the transition, and the sums of their gradients.

pub mod activation;
pub mod bars;
pub mod drive;
pub mod gates;
pub mod inputs;
pub mod padded;
pub mod sums;
pub mod transition;
