//! Chunks of time: the steps of a backward pass whose gradients are gathered together, and where their rows stand.
//!
//! A chunk has some hundred rows (t, b). Cells keep two buffers of rows and use them in turn, so that the steps of the next chunk
//! may begin while others still gather this one.

use super::halves::Half;
use super::schedule::Schedule;
use crate::transition::{Extent, Part};
use std::ops::Range;

/// Rows of a chunk, if a step has fewer. Tests have many chunks.
const ROWS: usize = if cfg!(test) { 16 } else { 512 };

/// Steps of a chunk.
pub fn span(batch: usize) -> usize {
    (ROWS / batch).max(1)
}

/// Most rows that a chunk can have.
pub fn chunk_rows(schedule: &Schedule) -> usize {
    span(schedule.batch).min(schedule.steps) * schedule.batch
}

/// The rows that a step has memory for.
pub fn extent(schedule: &Schedule) -> Extent {
    Extent { batch: schedule.batch, chunk: chunk_rows(schedule) }
}

/// Where row 0 of a step lies, or would lie, in the buffers of the chunks.
#[derive(Clone, Copy)]
pub struct Place {
    /// Which of the two.
    pub turn: usize,
    /// Row of the buffer.
    pub row: usize,
}

/// One member's way through a chunk of a half of the batch.
pub struct Chunk<'a> {
    pub schedule: &'a Schedule,
    /// In how many halves gradients are summed: 2 or 1.
    pub halves: usize,
    /// How many chunks were done before.
    pub index: usize,
    /// Its steps.
    pub steps: &'a Range<usize>,
    /// Whether other arrays are copied to have their rows where the buffer has them ([`copied`]).
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

    /// Where the rows of the half begin in the buffer.
    pub fn begin(&self) -> usize {
        self.steps.len() * self.half.rows.start
    }

    /// Where row 0 of step t lies, or would lie.
    pub fn row(&self, t: usize) -> usize {
        if self.halves == 1 {
            return self.schedule.rows(&(self.steps.start..t));
        }
        let rows = &self.half.rows;
        self.begin() + (t - self.steps.start) * rows.len() - rows.start
    }

    /// The same, and in which buffer.
    pub fn place(&self, t: usize) -> Place {
        Place { turn: self.turn(), row: self.row(t) }
    }

    /// Rows of the half in these steps.
    pub fn rows(&self, steps: &Range<usize>) -> usize {
        if self.halves > 1 { steps.len() * self.half.rows.len() } else { self.schedule.rows(steps) }
    }
}

/// Whether rows of other arrays are copied to lie one after the other as in the buffers of these steps: those of a half, and
/// where some sequences end or start within the steps. (Where all have the same length even the first step needs no copies: it is
/// gathered apart.)
pub fn copied(schedule: &Schedule, halves: usize, steps: &Range<usize>) -> bool {
    let together = || schedule.full(&(0..schedule.steps));
    let seamless = || schedule.full(steps) && schedule.seamless(steps);
    halves > 1 || !(together() || seamless())
}
