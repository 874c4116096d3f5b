//! A step of a long expressive memory forward.

use super::super::driver::cell::Cell;
use super::super::driver::window::{Pointer, Window};
use super::super::parts::drive::Drive;
use super::Setting;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{DenseStep, Part, Step, Uses};
use isometry_kernels::recurrence::{Express, Remember};
use std::ops::Range;

/// Among the matrices, and among what a step saves: those of s_1, s_2 and t_z, and that of t_y.
const STAGES: [Range<usize>; 2] = [0..3, 3..4];

/// The memory in a forward pass.
pub(super) struct LemCell<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    /// Of y and of z.
    w: [DenseStep<'s, R>; 2],
    drives: [Drive<'s, R>; 2],
}

impl<R: Real> Setting<'_, R> {
    /// s_1, s_2 and t_z of step t, rows of 3n numbers, and t_y, rows of n.
    pub(super) fn gates<P: Pointer>(&self, t: usize, window: &Window<P>) -> [P; 2] {
        STAGES.map(|of| self.pairs.saved(t, window, of))
    }
}

impl<'s, R: Real> LemCell<'s, R> {
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>) -> Self {
        let &Setting { ref pairs, packs: [w_of_y, w_of_z, u_of_gates, u_of_own], .. } = setting;
        let (n, [of_y, of_z]) = (pairs.n, setting.matrices());
        let w = [(of_y, 3 * n, w_of_y), (of_z, n, w_of_z)].map(|(w, rows, given)| {
            DenseStep::carve(arena, (rows, n), w, None, Uses::forward(given, pairs.line.schedule.once()))
                .apart(2 * n)
        });
        let [gates, own] = STAGES;
        let drives = [(gates, u_of_gates), (own, u_of_own)].map(|(of, given)| pairs.drive(arena, of, given));
        LemCell { setting, w, drives }
    }
}

// SAFETY: no step needs scratch.
unsafe impl<R: Real> Cell<R> for LemCell<'_, R> {
    fn work(&self) -> usize {
        self.w.iter().map(Step::work).fold(self.setting.pairs.input_work(), usize::saturating_add)
    }
    fn divisible(&self) -> bool {
        self.w[0].divisible()
    }
    fn scratch(&self) -> usize {
        0
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.w.iter().for_each(|w| w.prepare(scratch, member));
            self.drives.iter().for_each(|drive| drive.prepare(member));
        }
    }

    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.drives.iter().for_each(|drive| drive.ahead(k, segment, part)) }
    }

    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R) {
        let &Setting { ref pairs, dt, .. } = self.setting;
        let (line, n, [gates, own]) = (&pairs.line, pairs.n, self.setting.gates(t, window));
        let (out, columns) = (window.states.wrapping_add(t * line.stride()), part.columns::<R>(n));
        let sources = line.sources(t, window.states).map(|(rows, previous)| (part.rows(rows), previous));
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, window.states, part);
            for (rows, previous) in &sources {
                let map = self.drives[0].of(t, gates);
                if previous.is_null() {
                    map.run(rows.clone(), part.columns::<R>(3 * n));
                } else {
                    self.w[0].forward(*previous, map, rows.clone(), part, scratch);
                }
            }
            part.sync();
            for (rows, previous) in &sources {
                let area = pairs.area(rows, &columns);
                Remember { gates, previous: *previous, out, dt, area }.call();
            }
            part.sync();
            for (rows, previous) in &sources {
                let map = self.drives[1].of(t, own);
                self.w[1].forward(out.add(n), map, rows.clone(), part, scratch);
                let area = pairs.area(rows, &columns);
                Express { gates, own, previous: *previous, out, dt, area }.call();
            }
        }
    }
}
