//! W = D3 R2 F^-1 D2 P R1 F D1 on rows, as many rows at a time as a vector has lanes.
//!
//! Rows are transposed on their way in, so that a lane holds a row: element j is one vector of real parts and one of
//! imaginary parts. Every factor is then arithmetic between vectors and numbers of the operator, without shuffles: transforms
//! of any length, dot products and permutations alike. A group of fewer rows costs as much
//! as a full one, with AVX-512 half as much if they fit into half a vector.
//!
//! F is computed without its factor n^-1/2, forward and back; D2 contains the 1/n of both.

mod apply;
mod passes;
mod plan;
mod pull;
mod transform;

pub use apply::Apply;
pub use plan::Plan;
pub use pull::Pull;

use crate::dispatch::{compiled, lanes};
use crate::scalar::Real;

compiled! {
    /// W, W^H and their gradients, compiled for each real type.
    FourierKernels: Real for f32, f64; {
        /// [`Apply`]
        fn apply(Apply);
        /// [`Pull`]
        fn pull(Pull);
    }
}

/// The factors of an operator: complex numbers as pairs.
///
/// # Safety
/// The plan is for vectors of n elements; every pointer has n of what it says.
#[derive(Clone, Copy)]
pub struct FourierFactors<R> {
    /// The transform.
    pub plan: *const Plan<R>,
    /// D1, D2 / n and D3.
    pub diagonals: [*const R; 3],
    /// sqrt(2) v / ||v|| of R1 and R2: R = I - w w^H.
    pub reflections: [*const R; 2],
    /// P: (P x)_i = x[permutation[i]].
    pub permutation: *const usize,
}

/// Buffers that a call needs besides its arrays.
const BUFFERS: usize = 4;

/// Real numbers that [`Apply`] and [`Pull`] need as scratch.
pub fn scratch<R: Real>(plan: &Plan<R>) -> usize {
    BUFFERS * plan.room() * 2 * lanes::<R>()
}

/// Real numbers that [`Pull`] adds gradients to, for n elements: three phases and two vectors.
pub fn sums(n: usize) -> usize {
    7 * n
}
