//! A step of a rotational unit forward.

use super::super::driver::{Cell, Window};
use super::super::parts::Operands;
use super::Setting;
use crate::activation::{Nonlinearity, Source, sigmoid};
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{Component, On, Part, Step};
use isometry_kernels::activation::Pass;
use isometry_kernels::recurrence::{Area, Blend, Heard, Sphere};
use std::ops::Range;

/// The arrays that a step saves behind u and tau: e, and k or the argument of phi.
pub(super) const E: usize = 2;
pub(super) const K: usize = 3;

/// A rotational unit in a forward pass.
pub(super) struct RumCell<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    operands: Operands<'s, R>,
    /// (B, n, n)
    memory: Option<Shared<R>>,
}

impl<'s, R: Real> RumCell<'s, R> {
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, R>, memory: Option<Shared<R>>) -> Self {
        RumCell { setting, operands: Operands::carve(arena, &setting.gates), memory }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real> Component<R> for RumCell<'_, R> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        self.operands.each(f);
        f(self.setting);
    }
}

// SAFETY: members share rows.
unsafe impl<R: Real> Cell<R> for RumCell<'_, R> {
    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.operands.ahead(k, segment, part) }
    }

    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R) {
        let (Setting { gates: of, eta, .. }, operands) = (self.setting, &self.operands);
        let (line, phi, n) = (&of.line, &of.phi, of.n);
        let (gates, e, k) = (of.gates(t, window), of.saved(t, window, E), of.saved(t, window, K));
        let out = window.states.wrapping_add(t * line.stride());
        let memory = self.memory.map_or(std::ptr::null_mut(), |memory| memory.0);
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, window.states, part);
            for (rows, previous) in line.sources(t, window.states).map(|(rows, h)| (part.rows(rows), h)) {
                let map = operands.of_gates(t, window);
                if previous.is_null() {
                    map.run(rows.clone(), 0..2 * n);
                } else {
                    operands.w.forward(previous, map, On { rows: rows.clone(), part, scratch });
                }
                let (sigma, g) = (sigmoid(2 * n), std::ptr::null());
                let from = Source::Argument;
                Pass { phi: sigma, y: gates, g, from, out: gates, rows: rows.clone(), columns: 0..n }.call();
                operands.of_candidate(t, e).run(rows.clone(), 0..n);
                Heard { n, rows: rows.clone(), e, gates, previous, memory, out: k, scratch }.call();
                let value = operands.value(k);
                if phi.kind != Nonlinearity::Identity {
                    phi.value(k, value, rows.clone(), 0..n);
                }
                let area = Area { n, rows: rows.clone(), columns: 0..n };
                Blend { gates, z: 0, previous, c: value, out, area }.call();
                if let Some(eta) = *eta {
                    Sphere { n, rows, eta, x: out, out }.call();
                }
            }
        }
    }
}
