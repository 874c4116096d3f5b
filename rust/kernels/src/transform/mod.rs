//! Discrete Fourier transforms of rows, as many rows at a time as a vector has lanes.
//!
//! Rows are transposed on their way in (`Load`) and out (`Store`), so that a lane holds a row: element j is one vector of
//! real parts and one of imaginary parts. All that is done between is then arithmetic between vectors and numbers of the operator,
//! without shuffles: transforms of any length (`Transform`), dot products, diagonals and permutations alike. A group of fewer
//! rows costs as much as a full one, with AVX-512 half as much if they fit into half a vector.
//!
//! F is computed without its factor n^-1/2, forward and back.

mod passes;
mod plan;
mod rows;

pub(crate) use passes::Transform;
pub use plan::Plan;
pub(crate) use rows::{
    LANES, Load, Pair, Store, add_lanes, dot, get, given, inner, less, moved, outer, reflect, set, taken,
    turned,
};
