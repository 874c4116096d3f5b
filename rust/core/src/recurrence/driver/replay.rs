//! The states of a chunk, obtained again in a backward pass: a segment is computed forward from the border before it, or its
//! steps are undone one by one from the border after it.

use super::super::time::{Schedule, Segments};
use super::cell::{Cell, Undo};
use super::sharing::Pace;
use super::window::Windows;
use crate::scalar::Real;
use crate::transition::Part;
use isometry_kernels::stop::poll;
use std::ops::Range;

/// The states that a forward pass kept, and how the others follow from them.
pub struct Replay<'a, R: Real> {
    pub cell: &'a dyn Cell<R>,
    /// Of segments, or of chunks where steps are undone.
    pub windows: &'a Windows<'a, *mut R>,
    pub segments: Segments,
    /// The states at the borders of segments (K, B, width).
    pub marks: *const R,
    /// How steps are undone, and the last state of each sequence (B, width).
    pub undo: Option<(&'a dyn Undo<R>, *const R)>,
}

// SAFETY: the borders and last states are only read.
unsafe impl<R: Real> Sync for Replay<'_, R> {}

/// How far the states of a chunk are.
pub enum Loaded {
    /// Complete, after so many actions since the start.
    Ready(usize),
    /// Member 0 continues alone after so many actions of this chunk.
    Alone(usize),
}

impl<R: Real> Replay<'_, R> {
    /// Obtains the states of the steps `chunk` (counted in the direction of the recurrence) for all parts; `copied`:
    /// gradients are gathered from copies of states. Some actions are done already; `before` counts those of the
    /// chunks before.
    ///
    /// # Safety
    /// All members load together, each with scratch of its own; nobody uses the windows after the next barrier but to load.
    pub unsafe fn load(
        &self,
        schedule: &Schedule,
        (chunk, copied): (&Range<usize>, bool),
        (done, before): (usize, usize),
        (work, pace): &(usize, Pace),
        part: &Part<'_>,
        scratch: *mut R,
    ) -> Loaded {
        let segment = self.segments.of(chunk.start);
        let top = chunk.end == segment.end;
        let forward = top && self.undo.is_none_or(|(undo, _)| undo.records());
        let actions = if forward {
            segment.len()
        } else if self.undo.is_some() {
            chunk.len()
        } else {
            0
        };
        if actions == 0 {
            return Loaded::Ready(before);
        }
        // others may still gather from the states of the chunk before, unless gathering reads copies only
        if done == 0 && (forward || !copied) {
            part.member.barrier();
        }
        for action in done..actions {
            // SAFETY: the contract above; the steps before were finished for this part's rows, or by all.
            unsafe {
                if forward {
                    self.cell.ahead(segment.start + action, &segment, part);
                    self.forward(segment.start + action, schedule, part, scratch);
                } else {
                    self.backward(chunk.end - 1 - action, top && action == 0, schedule, part, scratch);
                }
            }
            part.sync();
            poll(*work);
            if pace.alone(part, before + action) {
                return Loaded::Alone(action + 1);
            }
        }
        if forward {
            part.member.barrier();
        }
        Loaded::Ready(before + actions)
    }

    /// The states of the border before the k-th step, if it is the first of its segment.
    fn border(&self, k: usize) -> Option<*const R> {
        self.segments.border(k).map(|border| self.marks.wrapping_add(border * self.windows.stride()))
    }

    /// The k-th step of a segment, whose steps come in order.
    ///
    /// # Safety
    /// As [`Replay::load`].
    unsafe fn forward(&self, k: usize, schedule: &Schedule, part: &Part<'_>, scratch: *mut R) {
        let Replay { cell, windows, .. } = *self;
        let (t, window) = (schedule.step(k), windows.of(k));
        // SAFETY: the contract above.
        unsafe {
            if let Some(border) = self.border(k) {
                windows.copy(border, windows.state(k - 1, &window), 0..schedule.batch, part);
                part.sync();
            } else if windows.turns(k) {
                windows.enter(k, part);
            }
            match self.undo {
                Some((undo, _)) => undo.record(t, &window, part, scratch),
                None => cell.advance(t, &window, part, scratch),
            }
        }
    }

    /// The states after and before the k-th step of a chunk, whose steps come in reverse order; `top`: it is the last of its
    /// segment.
    ///
    /// # Safety
    /// As [`Replay::load`].
    unsafe fn backward(&self, k: usize, top: bool, schedule: &Schedule, part: &Part<'_>, scratch: *mut R) {
        let Replay { windows, .. } = *self;
        let Some((undo, last)) = self.undo else { return };
        let (t, window) = (schedule.step(k), windows.of(k));
        let (state, continued) = (windows.state(k, &window), schedule.continued(t));
        // SAFETY: the contract above.
        unsafe {
            if continued > 0 && top {
                if let Some(border) = self.border(k + 1) {
                    windows.copy(border, state, 0..continued, part);
                }
            } else if continued > 0 && windows.turns(k + 1) {
                windows.copy(windows.state(k, &windows.of(k + 1)), state, 0..continued, part);
            }
            windows.copy(last, state, continued..schedule.active(t), part);
            if k == 0 {
                return;
            }
            if let Some(border) = self.border(k) {
                windows.copy(border, windows.state(k - 1, &window), 0..schedule.batch, part);
            } else {
                part.sync();
                undo.undo(t, &window, part, scratch);
            }
        }
    }
}
