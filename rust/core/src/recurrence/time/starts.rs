//! Marks within the sequences of a batch: before a marked step the state is one that is given.
//!
//! The states that a marked step starts from are gathered in memory of one step, which the step then reads in place of
//! those of the step before.

use super::schedule::Schedule;
use crate::error::Result;
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::sizes::check_len;
use std::ops::Range;

/// Marks, and the state before a marked step.
#[derive(Clone, Copy)]
pub struct Starts<'a, T> {
    /// (T, B): a sequence begins at this step of this column.
    pub marks: &'a [bool],
    /// (T, B, n), of which marked steps are read, or (B, n) for all of them; zeros if absent
    pub state: Option<&'a [T]>,
}

impl<T> Starts<'_, T> {
    /// Refuses arrays of other sizes.
    pub(crate) fn check(&self, [steps, batch, n]: [usize; 3]) -> Result<()> {
        check_len("starts", self.marks.len(), &[steps, batch])?;
        let Some(state) = self.state else { return Ok(()) };
        check_len("start_state", state.len(), &[batch, n])
            .or_else(|_| check_len("start_state", state.len(), &[steps, batch, n]))
    }
}

/// The marks of a call.
pub struct Marked<'a, R: Real> {
    pub starts: Starts<'a, R>,
    /// The states before a marked step (B, width).
    pub before: Shared<R>,
    /// Numbers from the given states of one step to those of the next; 0 where all steps have the same.
    stride: usize,
    _memory: Buffer<R>,
}

impl<'a, R: Real> Marked<'a, R> {
    /// For states of `width` numbers.
    pub fn new(starts: Starts<'a, R>, batch: usize, width: usize) -> Result<Self> {
        let mut memory = Buffer::zeroed(batch * width)?;
        let each = starts.state.is_some_and(|state| state.len() > memory.len());
        let stride = if each { memory.len() } else { 0 };
        Ok(Marked { starts, before: Shared(memory.as_mut_ptr()), stride, _memory: memory })
    }

    /// Where the states before step t begin, in an array of the shape of those that are given.
    pub fn at(&self, schedule: &Schedule, t: usize) -> usize {
        resets(schedule, t).map_or(0, |(step, _)| step * self.stride)
    }
}

/// Where the marks of step t stand, and for how many rows they count: backwards in time a sequence ends before the
/// step that follows it, whose marks say so, and rows that start from h0 are not reset.
pub fn resets(schedule: &Schedule, t: usize) -> Option<(usize, usize)> {
    if schedule.reverse {
        schedule.previous(t).map(|after| (after, schedule.continuing(t)))
    } else {
        Some((t, schedule.active(t)))
    }
}

/// Those of the rows `rows` that are reset before step t.
pub fn reset_rows(
    marks: &[bool],
    schedule: &Schedule,
    t: usize,
    rows: Range<usize>,
) -> impl Iterator<Item = usize> {
    let (step, count) = resets(schedule, t).unwrap_or((0, 0));
    let first = step * schedule.batch;
    (rows.start..rows.end.min(count)).filter(move |row| marks[first + row])
}
