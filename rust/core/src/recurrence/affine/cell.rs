//! A step of the affine cell forward.

use super::super::driver::{Cell, Window};
use super::super::parts::{Drive, over};
use super::Setting;
use crate::activation::Nonlinearity;
use crate::scalar::Scalar;
use crate::scratch::Arena;
use crate::transition::{Component, On, Part, TransitionStep, Uses};
use isometry_kernels::recurrence::{Affine, Finish};
use std::ops::Range;

/// What a step writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// h
    State,
    /// The argument z of the activation.
    Argument,
}

/// An affine cell with the memory of its steps.
pub(super) struct AffineCell<'s, T: Scalar> {
    pub setting: &'s Setting<'s, T>,
    /// W
    pub step: TransitionStep<'s, T>,
    /// V x + b
    pub drive: Drive<'s, T>,
}

impl<'s, T: Scalar> AffineCell<'s, T> {
    /// For a forward pass.
    pub fn carve(arena: &mut Arena, setting: &'s Setting<'s, T>) -> Self {
        AffineCell::used(arena, setting, Uses::forward(setting.packs[1], setting.line.schedule.products()))
    }

    /// For these uses of W.
    pub fn used(arena: &mut Arena, setting: &'s Setting<'s, T>, uses: Uses<'_, T::Real>) -> Self {
        let step = setting.w.carve(arena, setting.sequence.run.n, setting.line.schedule.extent(), uses);
        AffineCell { setting, step, drive: setting.drive(arena) }
    }

    /// The activation is an epilogue on the columns of a step; otherwise it is a pass over whole rows.
    pub fn fused(&self) -> bool {
        !self.setting.phi.kind.by_rows()
    }

    /// The map `drive` of V x_t + b, with the activation if it is fused and wanted.
    pub fn activated(&self, mut drive: Affine<T::Real>, wanted: Wanted) -> Affine<T::Real> {
        let phi = &self.setting.phi;
        if wanted == Wanted::State && self.fused() && phi.kind != Nonlinearity::Identity {
            drive.finish = Finish::Value(phi.kernel());
        }
        drive
    }

    /// Computes this part's rows and columns of one step, whose first row is at `out`.
    ///
    /// # Safety
    /// The states of the previous step are complete for these rows; `out` has B rows, and only this part
    /// writes its own.
    pub unsafe fn write(
        &self,
        t: usize,
        states: *const T::Real,
        out: *mut T::Real,
        wanted: Wanted,
        part: &Part<'_>,
        scratch: *mut T::Real,
    ) {
        let Setting { line, on_input, .. } = self.setting;
        let (width, batch) = (line.width, line.schedule.batch);
        let mut map = self.activated(self.drive.of(t, out), wanted);
        let rows = part.rows(0..line.schedule.active(t));
        // SAFETY: the contract above; x_t, h0 and the packed V have the rows and columns of the sequence.
        unsafe {
            if *on_input {
                map.run(rows.clone(), part.columns::<T::Real>(width));
                if wanted == Wanted::Argument {
                    return;
                }
                self.activate(out, rows, part);
                map = Affine::new(width, batch, out);
                map.add = out;
            }
            for (rows, previous) in line.sources(t, states) {
                let rows = part.rows(rows);
                if rows.is_empty() {
                    continue;
                }
                if previous.is_null() {
                    map.run(rows, part.columns::<T::Real>(width));
                } else {
                    self.step.forward(previous, map, On { rows, part, scratch });
                }
            }
            if wanted == Wanted::State && !on_input {
                self.activate(out, part.rows(0..line.schedule.active(t)), part);
            }
        }
    }

    /// The pass of an activation that is not fused, over whole rows.
    ///
    /// # Safety
    /// The rows exist, and this part's rows are written by no other member.
    pub unsafe fn activate(&self, rows_at: *mut T::Real, rows: Range<usize>, part: &Part<'_>) {
        let phi = &self.setting.phi;
        if !self.fused() {
            // SAFETY: the rows exist with the columns of all members, and only this part writes them.
            over(phi, part, |columns| unsafe { phi.value(rows_at, rows_at, rows, columns) });
        }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<T: Scalar> Component<T::Real> for AffineCell<'_, T> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<T::Real>)) {
        f(&*self.step);
        f(&self.drive);
    }
}

// SAFETY: members share rows, or columns with barriers around what needs whole rows.
unsafe impl<T: Scalar> Cell<T::Real> for AffineCell<'_, T> {
    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract of the trait.
        unsafe { self.drive.ahead(k, segment, part) }
    }

    unsafe fn advance(
        &self,
        t: usize,
        window: &Window<*mut T::Real>,
        part: &Part<'_>,
        scratch: *mut T::Real,
    ) {
        let out = window.states.wrapping_add(t * self.setting.line.stride());
        // SAFETY: the contract of the trait.
        unsafe {
            self.setting.line.renew(t, window.states, part);
            self.write(t, window.states, out, Wanted::State, part, scratch);
        }
    }
}
