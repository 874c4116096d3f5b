//! The inputs of a recurrence besides its transition.

use super::super::time::Run;
use crate::scalar::Scalar;

/// The inputs of a recurrence besides its transition: h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b).
#[derive(Clone, Copy)]
pub struct Sequence<'a, T: Scalar> {
    /// What every cell has; `packs` are V, then a dense W.
    pub run: Run<'a, T>,
    /// V (n, d)
    pub input_weight: &'a [T],
    /// b (n)
    pub bias: Option<&'a [T]>,
    /// phi acts on V x_t + b only.
    pub on_input: bool,
}
