//! The traits of a cell: a step forward, a step backward, and the gradients gathered from many steps.
//!
//! A cell owns all arrays but the states: packed operands, what it saves per step, the two chunk buffers of a backward pass, sums
//! of gradients. The driver assigns the rows of each step to members, and places the barriers.

use super::super::time::{Chunk, ChunkRow};
use super::window::Window;
use crate::scalar::Real;
use crate::transition::{Component, Needs, Part};
use std::ops::Range;

/// A step of a recurrence from the states before it to the states after it.
///
/// # Safety
/// Of its methods: pointers have the rows that the arguments name; members write disjoint parts. Each member has scratch of its
/// own.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Cell<R: Real>: Component<R> {
    /// Computes what this part of the k-th step and of some that follow it in a segment does not need the states for. It is
    /// called before each `advance`.
    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>);
    /// Writes this part of the states of step t; those of the step before are complete.
    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R);
}

/// Where a member is on its way back.
#[derive(Clone, Copy)]
pub struct Back<'a, R> {
    /// The step.
    pub t: usize,
    pub window: &'a Window<*const R>,
    /// The cotangents of the step after it, complete for the rows that have a step after t.
    pub above: Option<ChunkRow>,
    pub chunk: &'a Chunk<'a>,
    pub scratch: *mut R,
}

/// A step backward. All members call `gather` together, with barriers of the driver before and after it.
///
/// # Safety
/// As [`Cell`]; `halves` is 1 or that of the schedule, and under a checkpoint `again` is the cell of the forward pass.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Pull<R: Real>: Component<R> {
    /// The number of halves of the batch in which gradients are summed, 2 or 1. With two, `gather` has no
    /// barrier.
    fn halves(&self) -> usize;
    /// The steps of replayed segments.
    fn again(&self) -> Option<&dyn Cell<R>>;
    /// How steps are undone, instead of replayed.
    fn undo(&self) -> Option<&dyn Undo<R>> {
        None
    }

    /// Writes this part of the cotangents of step t into the buffer of its chunk.
    unsafe fn pull(&self, at: Back<'_, R>);
    /// Adds the rows of a chunk to the gradients.
    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R);
}

/// The cell of the forward pass as a part of a step backward, where segments are replayed.
pub struct Again<C>(pub Option<C>);

impl<C> Again<C> {
    /// The cell.
    pub fn cell<R: Real>(&self) -> Option<&dyn Cell<R>>
    where
        C: Cell<R>,
    {
        self.0.as_ref().map(|cell| cell as &dyn Cell<R>)
    }
}

// SAFETY: the scratch is that of the cell.
unsafe impl<R: Real, C: Cell<R>> Component<R> for Again<C> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        if let Some(cell) = &self.0 {
            f(cell);
        }
    }
    /// None of the step backward.
    fn needs(&self, rows: usize) -> Needs {
        Needs { work: [0; 2], ..self.together(rows) }
    }
}

/// A step undone: the states before it from those after it. Barriers before and after are the driver's.
///
/// # Safety
/// As [`Cell`].
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Undo<R: Real>: Sync {
    /// Whether steps must be recorded before they can be undone.
    fn records(&self) -> bool;
    /// [`Cell::advance`], and what `undo` needs to know of it.
    unsafe fn record(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R);
    /// Writes this part of the states of the step before t, which is in the window; those of step t are complete.
    unsafe fn undo(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R);
}
