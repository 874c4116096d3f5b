//! A step of a rotational unit forward.

use super::super::cell::Cell;
use super::super::frame::Frame;
use super::super::padded::or_null;
use super::{Rum, Setting};
use crate::activation::{Nonlinearity, Source, sigmoid};
use crate::kernels::Operand;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Packed, Packs, Part};
use isometry_kernels::activation::Pass;
use isometry_kernels::recurrence::{Affine, Area, Blend, Heard, Sphere};

/// Packed operands of the steps.
pub(super) struct Operands<R: Real> {
    /// W^T
    w: Packed<R>,
    /// U_ut^T and U_e^T
    u: [Packed<R>; 2],
    /// phi of its argument, where the argument is what is saved.
    value: Region<R>,
}

impl<R: Real> Operands<R> {
    pub fn carve(arena: &mut Arena, setting: &Setting<'_, R>) -> Self {
        let Rum { batch, features, n, .. } = setting.rum;
        let apart = usize::from(!setting.phi.readable());
        let packs = &mut Packs(setting.rum.packs);
        Operands {
            w: Packed::next(packs, arena, 2 * n, n),
            u: [2 * n, n].map(|n| Packed::next(packs, arena, n, features)),
            value: arena.take(&[apart, batch, n]),
        }
    }
}

/// The places of u and tau, e, and k of the steps.
#[derive(Clone, Copy)]
pub(super) struct Saved<R> {
    frame: Frame<R>,
    /// Numbers of a step of an array (B, n).
    each: usize,
}

impl<R: Real> Saved<R> {
    /// Those of a frame.
    pub fn of(rum: &Rum<'_, R>, frame: &Frame<R>) -> Self {
        Saved { frame: *frame, each: rum.batch * rum.n }
    }

    /// u and tau of step t, rows of 2 n numbers.
    pub fn gates(&self, t: usize) -> *mut R {
        self.frame.saved(t, 0, self.each, 2)
    }
    /// e of step t.
    pub fn e(&self, t: usize) -> *mut R {
        self.frame.saved(t, 2, self.each, 1)
    }
    /// k of step t, or the argument of phi.
    pub fn k(&self, t: usize) -> *mut R {
        self.frame.saved(t, 3, self.each, 1)
    }
}

/// A rotational unit in a forward pass.
pub(super) struct RumCell<'a, R: Real> {
    pub setting: &'a Setting<'a, R>,
    pub operands: &'a Operands<R>,
    /// (B, n, n), or null
    pub memory: *mut R,
}

// SAFETY: members write disjoint rows of the memory.
unsafe impl<R: Real> Sync for RumCell<'_, R> {}

impl<R: Real> Cell<R> for RumCell<'_, R> {
    fn width(&self) -> usize {
        self.setting.rum.n
    }
    fn work(&self) -> usize {
        let [w, u] = self.setting.rum.work();
        w.saturating_add(u)
    }

    unsafe fn prepare(&self, _scratch: *mut R, member: &Member<'_>) {
        let Rum { n, features, w, u, .. } = self.setting.rum;
        // SAFETY: W has 2 n rows and n columns, U 3 n and d; all members pack them, and a barrier follows.
        unsafe {
            self.operands.w.fill(Operand::new(w.as_ptr(), n).t(), member);
            for (packed, rows) in self.operands.u.iter().zip([0, 2 * n]) {
                packed.fill(Operand::new(u[rows * features..].as_ptr(), features).t(), member);
            }
        }
    }

    unsafe fn advance(&self, t: usize, frame: &Frame<R>, part: &Part<'_>, scratch: *mut R) {
        let Setting { line, rum, phi, biases } = self.setting;
        let Rum { n, batch, eta, .. } = *rum;
        let Operands { w, u, value } = self.operands;
        let (states, saved) = (frame.states, Saved::of(rum, frame));
        let (gates, e, k) = (saved.gates(t), saved.e(t), saved.k(t));
        let out = states.wrapping_add(t * line.stride());
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            for (rows, previous) in line.sources(t, states).map(|(rows, h)| (part.rows(rows), h)) {
                let mut map = Affine::new(2 * n, batch, gates);
                map.terms[0] = u[0].times(line.x(t));
                map.bias = or_null(&biases[0]);
                if !previous.is_null() {
                    map.terms[1] = w.times(previous);
                }
                map.run(rows.clone(), 0..2 * n);
                let (sigma, g) = (sigmoid(2 * n), std::ptr::null());
                let from = Source::Argument;
                Pass { phi: sigma, y: gates, g, from, out: gates, rows: rows.clone(), columns: 0..n }.call();
                let mut map = Affine::new(n, batch, e);
                map.terms[0] = u[1].times(line.x(t));
                map.bias = or_null(&biases[1]);
                map.run(rows.clone(), 0..n);
                let memory = self.memory;
                Heard { n, rows: rows.clone(), e, gates, previous, memory, out: k, scratch }.call();
                let value = if phi.readable() { k } else { value.ptr() };
                if phi.kind != Nonlinearity::Identity {
                    phi.value(k, value, rows.clone(), 0..n);
                }
                let area = Area { n, rows: rows.clone(), columns: 0..n };
                Blend { gates, previous, c: value, out, area }.call();
                if let Some(eta) = eta {
                    Sphere { n, rows, eta, x: out, out }.call();
                }
            }
        }
    }
}
