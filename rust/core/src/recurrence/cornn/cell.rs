//! A step of a network of oscillators forward.

use super::super::driver::cell::Cell;
use super::super::driver::window::{Pointer, Window};
use super::super::parts::drive::Drive;
use super::Setting;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{DenseStep, Part, Step, Uses};
use isometry_kernels::recurrence::{Affine, Oscillate};
use std::ops::Range;

/// The network in a forward pass.
pub(super) struct CornnCell<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    /// Of y and of z.
    w: [DenseStep<'s, R>; 2],
    drive: Drive<'s, R>,
}

impl<R: Real> Setting<'_, R> {
    /// t of step t, rows of n numbers.
    pub(super) fn t<P: Pointer>(&self, t: usize, window: &Window<P>) -> P {
        self.pairs.saved(t, window, 0..1)
    }
}

impl<'s, R: Real> CornnCell<'s, R> {
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>) -> Self {
        let &Setting { ref pairs, packs: [of_y, of_z, of_u], .. } = setting;
        let (n, [w_y, w_z]) = (pairs.n, setting.matrices());
        let w = [(w_y, of_y), (w_z, of_z)].map(|(w, given)| {
            DenseStep::carve(arena, (n, n), w, None, Uses::forward(given, pairs.line.schedule.once()))
                .apart(2 * n)
        });
        CornnCell { setting, w, drive: pairs.drive(arena, 0..1, of_u) }
    }
}

// SAFETY: no step needs scratch.
unsafe impl<R: Real> Cell<R> for CornnCell<'_, R> {
    fn work(&self) -> usize {
        self.w.iter().map(Step::work).fold(self.drive.work(), usize::saturating_add)
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
            self.drive.prepare(member);
        }
    }

    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.drive.ahead(k, segment, part) }
    }

    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R) {
        let Setting { pairs, law, .. } = self.setting;
        let (line, n, of_t) = (&pairs.line, pairs.n, self.setting.t(t, window));
        let (out, columns) = (window.states.wrapping_add(t * line.stride()), part.columns::<R>(n));
        let sources = line.sources(t, window.states).map(|(rows, previous)| (part.rows(rows), previous));
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, window.states, part);
            for (rows, previous) in sources {
                let map = self.drive.of(t, of_t);
                if previous.is_null() {
                    map.run(rows.clone(), columns.clone());
                } else {
                    let mut add = Affine::new(n, line.schedule.batch, of_t);
                    add.add = of_t;
                    self.w[0].forward(previous, map, rows.clone(), part, scratch);
                    self.w[1].forward(previous.add(n), add, rows.clone(), part, scratch);
                }
                Oscillate { t: of_t, previous, out, law: *law, area: pairs.area(&rows, &columns) }.call();
            }
        }
    }
}
