//! The delta rule on the device, of `isometry_core::delta`: all chunks of all heads and sequences at once but for the states, which one
//! dispatch passes through the chunks of each sequence.
//!
//! Rows are laid out by chunks first, so that what stands inside a chunk is a batch of products, and the triangle I + A is inverted as that of
//! reflections is. With the names of `isometry_core::delta`, (I + A)^T = X^-1, S the state before a chunk:
//!
//! ```text
//! W = X^T diag(beta) (e^c * K),   U = X^T diag(beta) V - W S,   S' = e^(c_C) S + (e^(c_C - c) * K)^T U,
//! O = scale ((e^c * Q) S + P U).
//! ```
//!
//! | dispatches | forward | all of backward, which computes the states again |
//! |---|---|---|
//! | no gate | 12 | 26 |
//! | a gate for each head | 13 | 31 |
//! | one for each row of the state | 12 | 26 |
//!
//! They do not depend on tokens, sequences and heads, unless the arrays take more memory than a part of a call may: then each part takes as
//! many, and backward those of the states once more where a sequence goes on in the next part. A chunk has 64 rows, 32 with gates for rows
//! of the state, or one token of more rows, for which the inverse takes one dispatch for each doubling from 32 rows on.

mod backward;
mod chunks;
mod forward;
mod part;
#[cfg(test)]
mod tests;

pub(crate) use backward::backward;
pub(crate) use forward::forward;

use crate::Array;
use crate::shader::shaders;
use isometry_core::Result;
use isometry_core::internal::delta::Sizes;

/// Whether there are m rows of each token.
const BY_ROWS: &[&[(&str, u32)]] = &[&[("BY_ROWS", 0)], &[("BY_ROWS", 1)]];
/// Whether they are queries.
const QUERIES: &[&[(&str, u32)]] = &[&[("QUERIES", 0)], &[("QUERIES", 1)]];

shaders! {
    COLLECT "delta_collect" "collect.wgsl" QUERIES,
    DECAYS "delta_decays" "decays.wgsl",
    DOTS "delta_dots" "dots.wgsl",
    GATES "delta_gates" "gates.wgsl",
    GATES_WIDE "delta_gates_wide" "gates_wide.wgsl",
    GATHER "delta_gather" "gather.wgsl",
    LAY "delta_lay" "lay.wgsl" BY_ROWS,
    MASK "delta_mask" "mask.wgsl",
    MASK_VJP "delta_mask_vjp" "mask_vjp.wgsl",
    PASS "delta_pass" "pass.wgsl",
    SPREAD "delta_spread" "spread.wgsl",
    VALUES "delta_values" "values.wgsl",
    WIDE "delta_wide" "wide.wgsl",
    WIDE_VJP "delta_wide_vjp" "wide_vjp.wgsl",
}

/// A call, with the shapes of `isometry_core::delta::Delta`.
pub(crate) struct Delta<'a> {
    /// Those of the arrays.
    pub sizes: Sizes<'a>,
    /// (B, T, H, K)
    pub q: &'a Array,
    /// (B, T m, H, K)
    pub k: &'a Array,
    /// (B, T m, HV, V)
    pub v: &'a Array,
    /// (B, T m, HV)
    pub beta: &'a Array,
    /// (B, T, HV) or (B, T, HV, K)
    pub g: Option<&'a Array>,
    /// (N, HV, K, V)
    pub initial: Option<&'a Array>,
    /// The factor of the outputs.
    pub scale: f32,
    /// Whether q and k are divided by sqrt(|.|^2 + 1e-6) first.
    pub normalise: bool,
}

impl Delta<'_> {
    fn check(&self) -> Result<()> {
        let lens = [self.q, self.k, self.v, self.beta].map(Array::len);
        let gate = self.g.map(|g| (g.len(), g.shape().len() == 4));
        self.sizes.check(lens, gate, self.initial.map(Array::len))
    }

    /// Whether each row of the state has its gate.
    fn wide(&self) -> bool {
        self.width() > 1
    }

    /// Numbers of a token's gate.
    fn width(&self) -> usize {
        self.g.map_or(0, |g| if g.shape().len() == 4 { self.sizes.key } else { 1 })
    }
}
