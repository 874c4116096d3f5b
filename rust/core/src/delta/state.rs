//! A state, or the gradient of one, in memory.

use crate::kernels::lanes;
use crate::scalar::Real;
use isometry_kernels::delta::Matrix;
use std::ops::Range;

/// K rows of V numbers: a matrix, or each panel of the columns that members share in memory of its own. (In one matrix the core of
/// one member prefetches what another writes, and each write then waits for the line.)
#[derive(Clone, Copy)]
pub struct State<R> {
    first: Matrix<R>,
    /// Numbers from one panel to the next; 0 in a matrix.
    apart: usize,
}

impl<R: Real> State<R> {
    /// A matrix.
    pub fn whole(first: Matrix<R>) -> Self {
        State { first, apart: 0 }
    }

    /// Panels with `key` rows, in the numbers of [`State::len`].
    pub fn panels(at: *mut R, key: usize) -> Self {
        let pitch = panel::<R>();
        State { first: Matrix { at, pitch }, apart: Self::len(key, pitch) }
    }

    /// Numbers of a state of `key` rows and `value` columns in panels.
    pub fn len(key: usize, value: usize) -> usize {
        (key.saturating_mul(panel::<R>()).saturating_add(64)).saturating_mul(value.div_ceil(panel::<R>()))
    }

    /// Columns, which begin at a panel, as parts of one matrix each.
    pub fn pieces(self, columns: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let most = if self.apart == 0 { columns.len().max(1) } else { panel::<R>() };
        columns.clone().step_by(most).map(move |start| start..columns.end.min(start + most))
    }

    /// The matrix whose columns from `start` to the end of the panel are those of the state.
    pub fn around(self, start: usize) -> Matrix<R> {
        match self.apart {
            0 => self.first,
            apart => {
                let at = self.first.at.wrapping_add(start / panel::<R>() * apart).wrapping_sub(start);
                Matrix { at, ..self.first }
            }
        }
    }
}

/// Columns of a panel.
pub fn panel<R: Real>() -> usize {
    2 * lanes::<R>()
}
