//! A step of a GRU forward.

use super::super::cell::Cell;
use super::super::frame::Frame;
use super::super::padded::or_null;
use super::own::Own;
use super::{Gru, Reset, Setting};
use crate::activation::{Nonlinearity, sigmoid};
use crate::kernels::Operand;
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Packed, Packs, Part};
use isometry_kernels::recurrence::{self as passes, Affine, Area, Finish};
use std::ops::Range;

/// Packed operands of the steps, and r * h.
pub(super) struct Operands<'a, R: Real> {
    /// W_zr^T
    w: Packed<R>,
    /// W_h
    pub own: Own<'a, R>,
    /// U_zr^T and U_h^T
    u: [Packed<R>; 2],
    /// r * h of one step.
    reset: Region<R>,
    /// phi of its argument, where the argument is what is saved.
    value: Region<R>,
}

impl<'a, R: Real> Operands<'a, R> {
    pub fn carve(arena: &mut Arena, setting: &Setting<'a, R>) -> Self {
        let Gru { batch, features, n, reset, .. } = setting.gru;
        let (before, apart) = (usize::from(reset == Reset::Before), usize::from(!setting.phi.readable()));
        let packs = &mut Packs(setting.gru.packs);
        Operands {
            w: Packed::next(packs, arena, 2 * n, n),
            own: Own::forward(arena, setting, packs),
            u: [2 * n, n].map(|n| Packed::next(packs, arena, n, features)),
            reset: arena.take(&[before, batch, n]),
            value: arena.take(&[apart, batch, n]),
        }
    }

    /// Multiply-adds of a step per row.
    pub fn work(&self, setting: &Setting<'_, R>) -> usize {
        let [gates, inputs] = setting.gru.work();
        gates.saturating_add(inputs).saturating_add(self.own.step().work())
    }
}

/// The places of z, r, c and W_h h + c_h of the steps.
#[derive(Clone, Copy)]
pub(super) struct Saved<R> {
    frame: Frame<R>,
    /// Numbers of a step of an array (B, n).
    each: usize,
}

impl<R: Real> Saved<R> {
    /// Those of a frame.
    pub fn of(gru: &Gru<'_, R>, frame: &Frame<R>) -> Self {
        Saved { frame: *frame, each: gru.batch * gru.n }
    }

    /// z and r of step t, rows of 2 n numbers.
    pub fn gates(&self, t: usize) -> *mut R {
        self.frame.saved(t, 0, self.each, 2)
    }
    /// c of step t, or the argument of phi.
    pub fn c(&self, t: usize) -> *mut R {
        self.frame.saved(t, 2, self.each, 1)
    }
    /// W_h h + c_h of step t.
    pub fn product(&self, t: usize) -> *mut R {
        self.frame.saved(t, 3, self.each, 1)
    }
}

/// A GRU in a forward pass.
pub(super) struct GruCell<'a, R: Real> {
    pub setting: &'a Setting<'a, R>,
    pub operands: &'a Operands<'a, R>,
}

impl<R: Real> GruCell<'_, R> {
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
        let Setting { line, gru, phi, biases, .. } = self.setting;
        let mut map = Affine::new(gru.n, gru.batch, c);
        map.terms[0] = self.operands.u[1].times(line.x(t));
        map.bias = or_null(&biases[1]);
        if gru.reset == Reset::After {
            map.add = c;
        }
        if phi.readable() && phi.kind != Nonlinearity::Identity {
            map.finish = Finish::Value(phi.kernel());
        }
        // SAFETY: the contract above; the packed operands have n columns.
        unsafe {
            if gru.reset == Reset::After || zero {
                map.run(rows, part.columns::<R>(gru.n));
            } else {
                self.operands.own.step().forward(self.operands.reset.ptr(), map, rows, part, scratch);
            }
        }
    }

    /// phi, where it is not an epilogue of the product.
    ///
    /// # Safety
    /// The rows of step t exist, and only this part writes its columns of them.
    unsafe fn activate(&self, a: *const R, rows: Range<usize>, part: &Part<'_>, columns: &Range<usize>) {
        let phi = &self.setting.phi;
        if phi.readable() {
            return;
        }
        let value = self.operands.value.ptr();
        // SAFETY: the contract above; a kind that needs whole rows waits for the columns of the others.
        unsafe {
            if !phi.kind.by_rows() {
                phi.value(a, value, rows, columns.clone());
                return;
            }
            part.sync();
            if part.leads() {
                phi.value(a, value, rows, 0..phi.width);
            }
            part.sync();
        }
    }
}

impl<R: Real> Cell<R> for GruCell<'_, R> {
    fn width(&self) -> usize {
        self.setting.gru.n
    }
    fn work(&self) -> usize {
        self.operands.work(self.setting)
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        let Gru { n, features, w, u, .. } = self.setting.gru;
        // SAFETY: W_zr has 2 n rows and n columns, U 3 n and d; all members pack them, and a barrier follows.
        unsafe {
            self.operands.w.fill(Operand::new(w.as_ptr(), n).t(), member);
            self.operands.own.step().prepare(scratch, member);
            for (packed, rows) in self.operands.u.iter().zip([0, 2 * n]) {
                packed.fill(Operand::new(u[rows * features..].as_ptr(), features).t(), member);
            }
        }
    }

    unsafe fn advance(&self, t: usize, frame: &Frame<R>, part: &Part<'_>, scratch: *mut R) {
        let Setting { line, gru, phi, biases, .. } = self.setting;
        let Gru { n, batch, reset, .. } = *gru;
        let Operands { w, own, u, reset: product, value } = self.operands;
        let saved = Saved::of(gru, frame);
        let (states, gates, c) = (frame.states, saved.gates(t), saved.c(t));
        let columns = part.columns::<R>(n);
        let sources = line.sources(t, states).map(|(rows, previous)| (part.rows(rows), previous));
        let area = |rows: &Range<usize>| Area { n, rows: rows.clone(), columns: columns.clone() };
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            for (rows, previous) in &sources {
                let mut map = Affine::new(2 * n, batch, gates);
                map.terms[0] = u[0].times(line.x(t));
                map.bias = or_null(&biases[0]);
                map.finish = Finish::Value(sigmoid(2 * n));
                if !previous.is_null() {
                    map.terms[1] = w.times(*previous);
                }
                map.run(rows.clone(), part.columns::<R>(2 * n));
                if reset == Reset::Before || rows.is_empty() {
                    continue;
                }
                let mut map = Affine::new(n, batch, saved.product(t));
                map.bias = or_null(&biases[2]);
                if previous.is_null() {
                    map.run(rows.clone(), columns.clone());
                } else {
                    own.step().forward(*previous, map, rows.clone(), part, scratch);
                }
            }
            part.sync();
            for (rows, previous) in &sources {
                let (y, out) = match reset {
                    Reset::Before => (*previous, product.ptr()),
                    Reset::After => (saved.product(t).cast_const(), c),
                };
                passes::Reset { gates, y, out, area: area(rows) }.call();
            }
            if reset == Reset::Before {
                part.sync();
            }
            for (rows, previous) in &sources {
                if !rows.is_empty() {
                    self.candidate(t, c, rows.clone(), part, previous.is_null(), scratch);
                }
            }
            self.activate(c, part.rows(0..line.schedule.active(t)), part, &columns);
            let c = if phi.readable() { c } else { value.ptr() };
            let out = states.add(t * line.stride());
            for (rows, previous) in &sources {
                passes::Blend { gates, previous: *previous, c, out, area: area(rows) }.call();
            }
        }
    }
}
