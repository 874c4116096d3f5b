//! A step of an LSTM forward.

use super::super::driver::cell::Cell;
use super::super::driver::window::Window;
use super::super::parts::padded::or_null;
use super::{SAVED, Setting};
use crate::kernels::Operand;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::sizes::work;
use crate::transition::{DenseStep, Packed, Part, Step, Uses};
use isometry_kernels::recurrence::{Affine, LstmGates};

/// An LSTM in a forward pass.
pub(super) struct LstmCell<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    w: DenseStep<'s, R>,
    u: Packed<R>,
}

impl<R: Real> Setting<'_, R> {
    /// The gates of step t, rows of 4n numbers.
    pub(super) fn gates(&self, t: usize, window: &Window<R>) -> *mut R {
        window.saved(t, 0, self.line.stride(), SAVED)
    }

    /// Multiply-adds of U x per row.
    pub(super) fn input_work(&self) -> usize {
        work(&[4, self.n, self.line.features])
    }
}

impl<'s, R: Real> LstmCell<'s, R> {
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>) -> Self {
        let &Setting { ref line, n, w, packs: [of_w, of_u], .. } = setting;
        LstmCell {
            setting,
            w: DenseStep::carve(arena, (4 * n, n), w, None, Uses::forward(of_w)).apart(line.width),
            u: Packed::new(arena, line.features, 4 * n, of_u),
        }
    }
}

// SAFETY: no step needs scratch.
unsafe impl<R: Real> Cell<R> for LstmCell<'_, R> {
    fn work(&self) -> usize {
        self.w.work().saturating_add(self.setting.input_work())
    }
    fn divisible(&self) -> bool {
        self.w.divisible()
    }
    fn scratch(&self) -> usize {
        0
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        let Setting { u, line, .. } = self.setting;
        // SAFETY: the contract of the trait; U has 4 n rows and d columns.
        unsafe {
            self.w.prepare(scratch, member);
            self.u.fill(Operand::new(u.as_ptr(), line.features).t(), member);
        }
    }

    unsafe fn advance(&self, t: usize, window: &Window<R>, part: &Part<'_>, scratch: *mut R) {
        let Setting { line, n, bias, .. } = self.setting;
        let (n, gates, columns) = (*n, self.setting.gates(t, window), part.columns::<R>(*n));
        let out = window.states.wrapping_add(t * line.stride());
        let sources = line.sources(t, window.states).map(|(rows, previous)| (part.rows(rows), previous));
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, window.states, part);
            for (rows, previous) in &sources {
                let mut map = Affine::new(4 * n, line.schedule.batch, gates);
                map.terms[0] = self.u.times(line.x(t));
                map.bias = or_null(bias);
                if previous.is_null() {
                    map.run(rows.clone(), part.columns::<R>(4 * n));
                } else {
                    self.w.forward(*previous, map, rows.clone(), part, scratch);
                }
            }
            part.sync();
            for (rows, previous) in &sources {
                let area = self.setting.area(rows, &columns);
                LstmGates { gates, previous: *previous, out, area }.call();
            }
        }
    }
}
