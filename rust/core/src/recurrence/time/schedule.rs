//! The rows of a batch of sequences that take part in each step.
//!
//! Lengths do not increase, so the rows of step t are the first `active(t)`. Backwards in time each sequence starts at
//! its own end: a step then has rows that continue, followed by rows that start from h0.

use super::starts::reset_rows;
use crate::error::{Error, Result};
use crate::kernels::{collected, reserved};
use crate::sizes::check_len;
use crate::transition::Extent;
use std::ops::Range;

/// Rows of a chunk, if a step has fewer. Tests have many chunks.
pub const ROWS: usize = if cfg!(test) { 16 } else { 512 };

/// Steps of a chunk of some `rows`.
pub fn span(rows: usize, batch: usize) -> usize {
    (rows / batch).max(1)
}

/// The rows of each step.
pub struct Schedule {
    /// T
    pub steps: usize,
    /// B
    pub batch: usize,
    /// Whether time runs backwards.
    pub reverse: bool,
    /// Steps of a chunk of a backward pass.
    pub span: usize,
    /// Number of rows of each step.
    active: Vec<usize>,
    /// Prefix sums of `active`.
    before: Vec<usize>,
    /// Number of steps of each sequence.
    lengths: Vec<usize>,
    /// Whether rows are reset before each step; empty without marks.
    marked: Vec<bool>,
}

impl Schedule {
    /// The rows that a step multiplies by a matrix, and the steps.
    pub fn products(&self) -> [usize; 2] {
        [self.batch, self.steps]
    }

    /// Refuses lengths above T, or that increase.
    pub fn check(steps: usize, batch: usize, lengths: Option<&[usize]>) -> Result<()> {
        let Some(lengths) = lengths else { return Ok(()) };
        check_len("lengths", lengths.len(), &[batch])?;
        if let Some(&wrong) = lengths.iter().find(|&&length| length > steps) {
            return Err(Error::value("lengths", format!("must lie in 0..{steps}, got {wrong}")));
        }
        if let Some(pair) = lengths.windows(2).find(|pair| pair[0] < pair[1]) {
            let reason = format!("must not increase, got {} before {}", pair[0], pair[1]);
            return Err(Error::value("lengths", reason));
        }
        Ok(())
    }

    /// For lengths that have passed their check, all T if absent, and chunks of some `rows`.
    pub fn new(
        [steps, batch]: [usize; 2],
        given: Option<&[usize]>,
        reverse: bool,
        rows: usize,
    ) -> Result<Self> {
        let lengths = collected((0..batch).map(|row| given.map_or(steps, |given| given[row])))?;
        let active = collected((0..steps).map(|t| lengths.partition_point(|&length| length > t)))?;
        let mut before = reserved(steps + 1)?;
        before.push(0);
        before.extend(active.iter().scan(0, |sum, rows| {
            *sum += rows;
            Some(*sum)
        }));
        Ok(Schedule {
            steps,
            batch,
            reverse,
            span: span(rows, batch),
            active,
            before,
            lengths,
            marked: Vec::new(),
        })
    }

    /// The same, for marks (T, B).
    pub fn mark(mut self, marks: &[bool]) -> Result<Self> {
        let reset = |t| reset_rows(marks, &self, t, 0..self.batch).next().is_some();
        self.marked = collected((0..self.steps).map(reset))?;
        Ok(self)
    }

    /// Whether rows are reset before one of these steps.
    pub fn marked(&self, steps: &Range<usize>) -> bool {
        !self.marked.is_empty() && self.marked[steps.clone()].contains(&true)
    }

    /// The largest number of rows of a chunk.
    pub fn chunk_rows(&self) -> usize {
        self.span.min(self.steps) * self.batch
    }

    /// The rows that a transition's step has memory for.
    pub fn extent(&self) -> Extent {
        Extent { batch: self.batch, chunk: self.chunk_rows() }
    }

    /// Rows of step t.
    pub fn active(&self, t: usize) -> usize {
        self.active[t]
    }

    /// Rows of the steps `steps`.
    pub fn rows(&self, steps: &Range<usize>) -> usize {
        self.before[steps.end] - self.before[steps.start]
    }

    /// The step after t in the direction of the recurrence.
    pub fn next(&self, t: usize) -> Option<usize> {
        if self.reverse { t.checked_sub(1) } else { Some(t + 1).filter(|&t| t < self.steps) }
    }

    /// The step before t in the direction of the recurrence.
    pub fn previous(&self, t: usize) -> Option<usize> {
        if self.reverse { Some(t + 1).filter(|&t| t < self.steps) } else { t.checked_sub(1) }
    }

    /// The k-th step in the direction of the recurrence; its own inverse.
    pub fn step(&self, k: usize) -> usize {
        if self.reverse { self.steps - 1 - k } else { k }
    }

    /// Rows of step t that continue; the others, up to `active(t)`, start from h0.
    pub fn continuing(&self, t: usize) -> usize {
        self.previous(t).map_or(0, |s| self.active[s].min(self.active[t]))
    }

    /// Rows of step t that have a next step.
    pub fn continued(&self, t: usize) -> usize {
        self.next(t).map_or(0, |s| self.active[s].min(self.active[t]))
    }

    /// Whether all rows take part in all these steps.
    pub fn full(&self, steps: &Range<usize>) -> bool {
        self.rows(steps) == steps.len() * self.batch
    }

    /// Whether no row starts in these steps.
    pub fn seamless(&self, steps: &Range<usize>) -> bool {
        steps.clone().all(|t| self.continuing(t) == self.active[t])
    }

    /// The rows of member `id` of `count`, balanced by their number of steps.
    pub fn share(&self, id: usize, count: usize) -> Range<usize> {
        let total = self.before[self.steps];
        let cut = |id: usize| {
            let mut sum = 0;
            // A row goes to the side that contains its middle.
            self.lengths
                .iter()
                .take_while(|&&length| {
                    sum += length;
                    (2 * sum - length) * count < 2 * total * id
                })
                .count()
        };
        cut(id)..if id + 1 == count { self.batch } else { cut(id + 1) }
    }
}
