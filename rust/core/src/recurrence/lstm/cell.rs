//! A step of an LSTM forward.

use super::super::driver::cell::Cell;
use super::super::driver::window::{Pointer, Window};
use super::super::parts::drive::Drive;
use super::Setting;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{DenseStep, Part, Step, Uses};
use isometry_kernels::recurrence::LstmGates;
use std::ops::Range;

/// An LSTM in a forward pass.
pub(super) struct LstmCell<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    w: DenseStep<'s, R>,
    drive: Drive<'s, R>,
}

/// The gates in a step, rows of 4n numbers.
const GATES: Range<usize> = 0..4;

impl<R: Real> Setting<'_, R> {
    /// The gates of step t.
    pub(super) fn gates<P: Pointer>(&self, t: usize, window: &Window<P>) -> P {
        self.pairs.saved(t, window, GATES)
    }
}

impl<'s, R: Real> LstmCell<'s, R> {
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>) -> Self {
        let &Setting { ref pairs, packs: [of_w, of_u] } = setting;
        let n = pairs.n;
        LstmCell {
            setting,
            w: DenseStep::carve(
                arena,
                (4 * n, n),
                pairs.w,
                None,
                Uses::forward(of_w, pairs.line.schedule.once()),
            )
            .apart(2 * n),
            drive: pairs.drive(arena, GATES, of_u),
        }
    }
}

// SAFETY: no step needs scratch.
unsafe impl<R: Real> Cell<R> for LstmCell<'_, R> {
    fn work(&self) -> usize {
        self.w.work().saturating_add(self.drive.work())
    }
    fn divisible(&self) -> bool {
        self.w.divisible()
    }
    fn scratch(&self) -> usize {
        0
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.prepare(scratch, member);
            self.drive.prepare(member);
        }
    }

    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.drive.ahead(k, segment, part) }
    }

    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R) {
        let Setting { pairs, .. } = self.setting;
        let (line, n, gates) = (&pairs.line, pairs.n, self.setting.gates(t, window));
        let (out, columns) = (window.states.wrapping_add(t * line.stride()), part.columns::<R>(n));
        let sources = line.sources(t, window.states).map(|(rows, previous)| (part.rows(rows), previous));
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, window.states, part);
            for (rows, previous) in &sources {
                let map = self.drive.of(t, gates);
                if previous.is_null() {
                    map.run(rows.clone(), part.columns::<R>(4 * n));
                } else {
                    self.w.forward(*previous, map, rows.clone(), part, scratch);
                }
            }
            part.sync();
            for (rows, previous) in &sources {
                let area = pairs.area(rows, &columns);
                LstmGates { gates, previous: *previous, out, area }.call();
            }
        }
    }
}
