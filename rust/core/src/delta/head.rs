//! Where the rows of a value head stand in the arrays of a call.

use super::{Delta, Gate};
use crate::scalar::Real;
use isometry_kernels::delta::Matrix;

/// A value head of a sequence: pointers to its rows in the arrays of the call.
#[derive(Clone, Copy)]
pub struct Head<R> {
    pub q: Matrix<R>,
    pub k: Matrix<R>,
    pub v: Matrix<R>,
    /// A number per row.
    pub beta: Matrix<R>,
    /// Gates per token (null: none).
    pub g: Matrix<R>,
}

impl<R: Real> Head<R> {
    /// Value head `head` of the sequence whose first token is `first`.
    pub fn of(delta: &Delta<'_, R>, first: usize, head: usize) -> Self {
        let Delta { householders: m, heads: h, value_heads: hv, key, value, .. } = *delta;
        let (group, row) = (head / (hv / h), first * m);
        let at = |x: &[R], rows: usize, heads: usize, head: usize, n: usize| {
            Matrix::of(x.as_ptr().wrapping_add((rows * heads + head) * n), heads * n)
        };
        Head {
            q: at(delta.q, first, h, group, key),
            k: at(delta.k, row, h, group, key),
            v: at(delta.v, row, hv, head, value),
            beta: at(delta.beta, row, hv, head, 1),
            g: match delta.gate {
                Gate::None => Matrix::none(),
                Gate::Head(g) => at(g, first, hv, head, 1),
                Gate::Row(g) => at(g, first, hv, head, key),
            },
        }
    }
}
