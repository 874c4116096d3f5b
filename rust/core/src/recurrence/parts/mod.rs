//! Parts of cells: the input V x + b, activations, gates, the transition, and the sums of their gradients.

pub mod activation;
pub mod bars;
pub mod drive;
pub mod gates;
pub mod inputs;
pub mod padded;
pub mod sums;
pub mod transition;

pub use activation::{BiasGatherer, Values, over, source};
pub use bars::Bars;
pub use drive::Drive;
pub use gates::{GatePull, Gates, Operands};
pub use inputs::{InputBars, Inputs};
pub use padded::{or_null, padded};
pub use sums::ColumnSums;
pub use transition::transition;
