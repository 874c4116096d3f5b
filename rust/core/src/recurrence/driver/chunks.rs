//! The states of a chunk where the caller has no array of all of them: obtained again, or copied from among those of other
//! recurrences.

use super::super::beside::Beside;
use super::super::time::Schedule;
use super::replay::{Loaded, Replay};
use super::sharing::Pace;
use super::window::Windows;
use crate::scalar::Real;
use crate::transition::Part;
use std::ops::Range;

/// Where they come from.
pub enum Source<'a, R: Real> {
    Replay(Replay<'a, R>),
    Copies(Copies<'a, R>),
}

impl<R: Real> Source<'_, R> {
    /// As [`Replay::load`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn load(
        &self,
        schedule: &Schedule,
        chunk: (&Range<usize>, bool),
        from: (usize, usize),
        loads: &(usize, Pace),
        part: &Part<'_>,
        scratch: *mut R,
    ) -> Loaded {
        // SAFETY: the contract above.
        unsafe {
            match self {
                Source::Replay(replay) => replay.load(schedule, chunk, from, loads, part, scratch),
                Source::Copies(copies) => {
                    copies.load(schedule, chunk.0, part);
                    Loaded::Ready(from.1)
                }
            }
        }
    }
}

/// States and cotangents that lie beside those of other recurrences; windows have the steps of a chunk.
pub struct Copies<'a, R: Real> {
    pub windows: &'a Windows<'a, *mut R>,
    pub states: Beside<'a, R>,
    /// None where the cotangents have an array of their own.
    pub cts: Option<Beside<'a, R>>,
}

impl<R: Real> Copies<'_, R> {
    /// Copies those of the steps `chunk`, and the states before them. Chunks come in reverse order.
    ///
    /// # Safety
    /// As [`Replay::load`].
    unsafe fn load(&self, schedule: &Schedule, chunk: &Range<usize>, part: &Part<'_>) {
        let Copies { windows, states, cts } = self;
        let window = windows.of(chunk.start);
        // others may still gather from the chunk before
        part.member.barrier();
        for k in if part.leads() { (chunk.start.saturating_sub(1)..chunk.end).rev() } else { (0..0).rev() } {
            let t = schedule.step(k);
            let (before, rows, to) =
                (t * schedule.batch, part.rows(0..schedule.active(t)), windows.state(k, &window));
            // SAFETY: the contract above; a window has a state more than its chunk has steps.
            unsafe {
                if k + 1 == chunk.end && chunk.end < schedule.steps {
                    windows.copy(windows.state(k, &windows.of(chunk.end)), to, rows.clone(), part);
                } else {
                    states.read(before, to, rows.clone());
                }
                if let Some(cts) = cts.filter(|_| k >= chunk.start) {
                    cts.read(before, window.cts.wrapping_add(t * windows.stride()), rows);
                }
            }
        }
        part.sync();
    }
}
