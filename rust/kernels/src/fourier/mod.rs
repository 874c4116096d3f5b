//! W = D3 R2 F^-1 D2 P R1 F D1 on rows, a row per lane as in [`crate::transform`]; D2 contains the 1/n of both transforms.

mod apply;
mod permutation;
mod pull;

pub use apply::Apply;
pub use pull::Pull;

use crate::dispatch::compiled;
use crate::scalar::Real;
use crate::transform::Plan;

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
    /// P: `(P x)_i = x[permutation[i]]`.
    pub permutation: *const usize,
}

/// Buffers that a call needs besides its arrays.
const BUFFERS: usize = 4;

/// Real numbers that [`Apply`] and [`Pull`] need as scratch.
pub fn scratch<R: Real>(plan: &Plan<R>) -> usize {
    plan.scratch(BUFFERS)
}

/// Real numbers that [`Pull`] adds gradients to, for n elements: three phases and two vectors.
pub fn sums(n: usize) -> usize {
    7 * n
}
