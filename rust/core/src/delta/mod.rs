//! The delta rule: a state S (K x V) per head, multiplied by generalised Householder reflections that every token draws anew.
//!
//! ```text
//! S <- diag(e^g_t) S                                     once per token
//! S <- (I - beta_i k_i k_i^T) S + beta_i k_i v_i^T       for its rows i = t m ... t m + m - 1
//! o_t = scale S^T q_t
//! ```
//!
//! Rows are taken in chunks, in order (`chunk` has the formulas); the state before every [`SEGMENT`] rows is saved for the
//! backward pass. A sequence of at most `FEW` rows is computed row by row, so that its state is read and written once.
//! Sequences and heads are independent: threads share the pairs, or where that leaves threads idle, all share each pair
//! (`window`). What is computed for a sequence depends on its own length alone, so packed sequences get the bits of separate
//! ones.

mod backward;
mod chunk;
mod forward;
mod head;
mod pull;
mod retreat;
mod shared_backward;
mod shared_forward;
pub(crate) mod sizes;
mod solve;
mod state;
mod task;
mod task_pull;
#[cfg(test)]
mod tests;
mod window;
mod workspace;

pub use backward::{DeltaGradients, backward};
pub use forward::{advance, forward};
use sizes::Sizes;

use crate::budget::Budget;
use crate::error::Result;
use crate::parallel::worth;
use crate::scalar::Real;
use crate::scratch::most;
use crate::sizes::work;
use std::ops::Range;

/// Rows from one saved state to the next.
pub const SEGMENT: usize = 64;
/// Most rows of a sequence that is computed row by row.
const FEW: usize = 8;
/// Rows of a chunk whose rows of S have a gate each: their decays stand inside the products of keys.
const WIDE: usize = 16;

/// The gates of a call.
#[derive(Clone, Copy)]
pub enum Gate<'a, R> {
    /// None.
    None,
    /// A logarithm for every token and value head: (B, T, HV).
    Head(&'a [R]),
    /// One for every row of S: (B, T, HV, K).
    Row(&'a [R]),
}

impl<'a, R> Gate<'a, R> {
    /// All of them, if there are any.
    fn numbers(&self) -> Option<&'a [R]> {
        match self {
            Gate::None => None,
            Gate::Head(g) | Gate::Row(g) => Some(g),
        }
    }
}

/// The arguments of a call.
///
/// ```
/// use isometry_core::delta::{Delta, Gate};
///
/// // two packed sequences, of 50 and 150 tokens
/// let packed = Delta {
///     batch: 1, tokens: 200, householders: 1, heads: 1, value_heads: 1, key: 2, value: 1,
///     q: &[0.5f32; 400], k: &[0.5; 400], v: &[1.0; 200], beta: &[1.0; 200],
///     gate: Gate::None, initial: None, ends: Some(&[0, 50, 200]), scale: 1.0, normalise: true,
/// };
/// assert_eq!((packed.sequences(), packed.saved()), (2, [1, 3, 1, 2, 1]));
/// ```
pub struct Delta<'a, R> {
    /// B; 1 for packed sequences.
    pub batch: usize,
    /// T
    pub tokens: usize,
    /// m
    pub householders: usize,
    /// H
    pub heads: usize,
    /// HV, a multiple of H: value head h reads key head h H / HV.
    pub value_heads: usize,
    /// K
    pub key: usize,
    /// V
    pub value: usize,
    /// (B, T, H, K)
    pub q: &'a [R],
    /// (B, T m, H, K)
    pub k: &'a [R],
    /// (B, T m, HV, V)
    pub v: &'a [R],
    /// (B, T m, HV)
    pub beta: &'a [R],
    /// The gates.
    pub gate: Gate<'a, R>,
    /// (N, HV, K, V), or zero.
    pub initial: Option<&'a [R]>,
    /// The first token of each of N packed sequences, and T. Without them, N = B.
    pub ends: Option<&'a [i64]>,
    /// The factor of the outputs.
    pub scale: f64,
    /// Whether q and k are divided by sqrt(|.|^2 + 1e-6) first.
    pub normalise: bool,
}

impl<R: Real> Delta<'_, R> {
    /// N
    pub fn sequences(&self) -> usize {
        self.ends.map_or(self.batch, |ends| ends.len().saturating_sub(1))
    }

    /// Rows of the longest sequence.
    fn longest(&self) -> usize {
        let tokens = self
            .ends
            .map_or(Some(self.tokens), |ends| ends.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max());
        work(&[tokens.unwrap_or(0), self.householders])
    }

    /// Sizes of the array of saved states: (B, ., HV, K, V).
    pub fn saved(&self) -> [usize; 5] {
        let rows = work(&[self.tokens, self.householders]);
        [self.batch, rows.saturating_sub(1) / SEGMENT, self.value_heads, self.key, self.value]
    }

    fn check(&self) -> Result<()> {
        let Delta { batch, tokens, householders, heads, value_heads, key, value, ends, .. } = *self;
        let sizes = Sizes { batch, tokens, householders, heads, value_heads, key, value, ends };
        let lens = [self.q.len(), self.k.len(), self.v.len(), self.beta.len()];
        let gate = self.gate.numbers().map(|g| (g.len(), matches!(self.gate, Gate::Row(_))));
        sizes.check(lens, gate, self.initial.map(<[R]>::len))
    }

    /// The tokens of sequence n, counted through the batch, and the place of its first saved state.
    fn sequence(&self, n: usize) -> (Range<usize>, usize) {
        match self.ends {
            None => (n * self.tokens..(n + 1) * self.tokens, n * self.saved()[1]),
            // rows before the sequence / SEGMENT: at least the saved states of the sequences before it
            Some(ends) => {
                let (first, end) = (ends[n] as usize, ends[n + 1] as usize);
                (first..end, first * self.householders / SEGMENT)
            }
        }
    }

    /// The members of a call of `passes` forward passes. (Unit tests cover every split.)
    fn members(&self, budget: &Budget<'_>, passes: usize) -> usize {
        let threads = most(budget.threads);
        worth(threads, self.work().saturating_mul(passes))
    }

    /// Multiply-adds of the forward pass.
    fn work(&self) -> usize {
        self.work_of(work(&[self.batch, self.tokens, self.householders, self.value_heads]))
    }

    /// Those of so many rows of a value head.
    fn work_of(&self, rows: usize) -> usize {
        work(&[rows, 3, self.key, self.value])
    }
}
