//! Chunks of time: the steps of a backward pass whose gradients are gathered together, and the positions
//! of their rows.
//!
//! A chunk has some hundred rows (t, b). Cells keep two buffers of rows and use them in turn, so that the steps of the next chunk
//! may begin while others still gather this one.

use super::halves::Half;
use super::schedule::Schedule;
use crate::transition::Part;
use std::ops::Range;

/// Row 0 of a step in the buffers of the chunks, whether or not the row exists.
#[derive(Clone, Copy)]
pub struct ChunkRow {
    /// Which of the two buffers.
    pub turn: usize,
    /// Row of the buffer.
    pub row: usize,
}

/// One member's way through a chunk of a half of the batch.
pub struct Chunk<'a> {
    pub schedule: &'a Schedule,
    /// The number of halves in which gradients are summed: 2 or 1.
    pub halves: usize,
    /// How many chunks were done before.
    pub index: usize,
    /// Its steps.
    pub steps: &'a Range<usize>,
    /// Whether rows of other arrays are copied to the positions they have in the buffer ([`copied`]).
    pub copied: bool,
    pub half: &'a Half<'a>,
}

impl<'a> Chunk<'a> {
    /// Which of two buffers it has.
    pub fn turn(&self) -> usize {
        self.index % 2
    }

    /// This member's rows of the half.
    pub fn part(&self) -> &Part<'a> {
        &self.half.part
    }

    /// The first row of the half in the buffer.
    pub fn begin(&self) -> usize {
        self.steps.len() * self.half.rows.start
    }

    /// Row 0 of step t, whether or not the row exists.
    pub fn row(&self, t: usize) -> usize {
        if self.halves == 1 {
            return self.schedule.rows(&(self.steps.start..t));
        }
        let rows = &self.half.rows;
        self.begin() + (t - self.steps.start) * rows.len() - rows.start
    }

    /// The same, with the buffer.
    pub fn place(&self, t: usize) -> ChunkRow {
        ChunkRow { turn: self.turn(), row: self.row(t) }
    }

    /// Rows of the half in these steps.
    pub fn rows(&self, steps: &Range<usize>) -> usize {
        if self.halves > 1 { steps.len() * self.half.rows.len() } else { self.schedule.rows(steps) }
    }
}

/// Whether rows of other arrays are copied to be contiguous, as in the buffers of these steps: the rows of a
/// half, and those of steps within which sequences end, start or are reset. (If all have the same length even the first
/// step needs no copies: it is gathered apart.)
pub fn copied(schedule: &Schedule, halves: usize, steps: &Range<usize>) -> bool {
    let together = || schedule.full(&(0..schedule.steps));
    let seamless = || schedule.full(steps) && schedule.seamless(steps);
    halves > 1 || schedule.marked(steps) || !(together() || seamless())
}
