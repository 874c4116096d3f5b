//! W_h as a step of its own: a matrix, packed, or any operator on rows.

use super::super::affine::dense::DenseStep;
use super::super::affine::rows_step::RowsStep;
use super::Setting;
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{Packs, Step};

/// W_h
pub(super) enum Own<'a, R: Real> {
    Dense(DenseStep<'a, R>),
    Rows(RowsStep<'a, R>),
}

impl<'a, R: Real> Own<'a, R> {
    /// For a forward pass.
    pub fn forward(arena: &mut Arena, setting: &Setting<'a, R>, packs: &mut Packs<'_, R>) -> Self {
        let (n, w) = (setting.gru.n, setting.gru.w);
        let given = if setting.rows.is_none() { packs.next(n, n) } else { None };
        match given {
            Some(packed) => Own::Dense(DenseStep::given(arena, n, &w[2 * n * n..], packed)),
            None => Own::carve(arena, setting, false, (None, 1)),
        }
    }

    /// For a backward pass that fills W_h_bar, or the sums of the operator on rows, from this many halves.
    pub fn backward(arena: &mut Arena, setting: &Setting<'a, R>, bar: (Option<Shared<R>>, usize)) -> Self {
        Own::carve(arena, setting, true, bar)
    }

    fn carve(
        arena: &mut Arena,
        setting: &Setting<'a, R>,
        backward: bool,
        bar: (Option<Shared<R>>, usize),
    ) -> Self {
        let (n, w) = (setting.gru.n, setting.gru.w);
        match setting.rows {
            Some(rows) => Own::Rows(RowsStep::carve(arena, rows, &setting.line.schedule, bar)),
            None => Own::Dense(DenseStep::carve(arena, n, &w[2 * n * n..], backward, false, bar)),
        }
    }

    /// The step that the cell calls.
    pub fn step(&self) -> &dyn Step<R> {
        match self {
            Own::Dense(step) => step,
            Own::Rows(step) => step,
        }
    }
}
