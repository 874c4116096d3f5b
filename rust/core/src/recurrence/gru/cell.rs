//! A step of a GRU forward.

use super::super::driver::{Cell, Window};
use super::super::parts::{Operands, or_null, over};
use super::{Reset, Setting};
use crate::activation::{Nonlinearity, sigmoid};
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Component, On, Part, Step, TransitionStep, Uses};
use isometry_kernels::recurrence::{self as passes, Affine, Area, Finish};
use std::ops::Range;

/// The arrays that a step saves behind z and r: c, or the argument of phi, and W_h h + c_h.
pub(super) const C: usize = 2;
pub(super) const PRODUCT: usize = 3;

/// A GRU in a forward pass.
pub(super) struct GruCell<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    operands: Operands<'s, R>,
    /// W_h
    own: TransitionStep<'s, R>,
    /// r * h of one step.
    reset: Region<R>,
}

impl<'s, R: Real> GruCell<'s, R> {
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>) -> Self {
        let Setting { gates, own, given, reset, .. } = setting;
        let schedule = &gates.line.schedule;
        let before = usize::from(*reset == Reset::Before);
        GruCell {
            setting,
            operands: Operands::carve(arena, gates),
            own: own.carve(arena, gates.n, schedule.extent(), Uses::forward(*given, schedule.products())),
            reset: arena.take(&[before, schedule.batch, gates.n]),
        }
    }

    /// The argument of c, or c itself, for these rows and columns.
    ///
    /// # Safety
    /// That of [`Cell::advance`]; what W_h acts on is complete.
    unsafe fn candidate(
        &self,
        t: usize,
        c: *mut R,
        rows: Range<usize>,
        part: &Part<'_>,
        zero: bool,
        scratch: *mut R,
    ) {
        let Setting { gates, reset, .. } = self.setting;
        let mut map = self.operands.of_candidate(t, c);
        if *reset == Reset::After {
            map.base = c;
        }
        if gates.phi.readable() && gates.phi.kind != Nonlinearity::Identity {
            map.finish = Finish::Value(gates.phi.kernel());
        }
        // SAFETY: the contract above; the packed operands have n columns.
        unsafe {
            if *reset == Reset::After || zero {
                map.run(rows, part.columns::<R>(gates.n));
            } else {
                self.own.forward(self.reset.ptr(), map, On { rows, part, scratch });
            }
        }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real> Component<R> for GruCell<'_, R> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        self.operands.each(f);
        f(&*self.own);
    }
}

// SAFETY: each thread has rows of its own, or columns, with barriers between the products and the elementwise passes.
unsafe impl<R: Real> Cell<R> for GruCell<'_, R> {
    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.operands.ahead(k, segment, part) }
    }

    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R) {
        let Setting { gates: of, reset, hidden_bias, places: [z, r], .. } = self.setting;
        let (line, n, operands) = (&of.line, of.n, &self.operands);
        let (states, gates, c) = (window.states, of.gates(t, window), of.saved(t, window, C));
        let columns = part.columns::<R>(n);
        let sources = line.sources(t, states).map(|(rows, previous)| (part.rows(rows), previous));
        let area = |rows: &Range<usize>| Area { n, rows: rows.clone(), columns: columns.clone() };
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, states, part);
            for (rows, previous) in &sources {
                let mut map = operands.of_gates(t, window);
                map.finish = Finish::Value(sigmoid(2 * n));
                if previous.is_null() {
                    map.run(rows.clone(), part.columns::<R>(2 * n));
                } else {
                    operands.w.forward(*previous, map, On { rows: rows.clone(), part, scratch });
                }
                if *reset == Reset::Before || rows.is_empty() {
                    continue;
                }
                let mut map = Affine::new(n, line.schedule.batch, of.saved(t, window, PRODUCT));
                (map.bias, map.turned) = (or_null(hidden_bias), t % 2 == 1);
                if previous.is_null() {
                    map.run(rows.clone(), columns.clone());
                } else {
                    self.own.forward(*previous, map, On { rows: rows.clone(), part, scratch });
                }
            }
            part.sync();
            for (rows, previous) in &sources {
                let (y, out) = match reset {
                    Reset::Before => (*previous, self.reset.ptr()),
                    Reset::After => (of.saved(t, window, PRODUCT).cast_const(), c),
                };
                passes::Reset { gates, r: *r, y, out, area: area(rows) }.call();
            }
            if *reset == Reset::Before {
                part.sync();
            }
            for (rows, previous) in &sources {
                if !rows.is_empty() {
                    self.candidate(t, c, rows.clone(), part, previous.is_null(), scratch);
                }
            }
            let value = operands.value(c);
            if !of.phi.readable() {
                let rows = part.rows(0..line.schedule.active(t));
                over(&of.phi, part, |columns| of.phi.value(c, value, rows, columns));
            }
            let (c, out) = (value, states.add(t * line.stride()));
            for (rows, previous) in &sources {
                passes::Blend { gates, z: *z, previous: *previous, c, out, area: area(rows) }.call();
            }
        }
    }
}
