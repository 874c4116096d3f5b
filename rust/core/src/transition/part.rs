//! A member's part of the steps of a recurrence: some rows of the batch, or some columns of all rows.

use crate::kernels::lanes;
use crate::parallel::Member;
use crate::scalar::Real;
use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

/// One member's part of every step.
pub struct Part<'a> {
    /// The member.
    pub member: &'a Member<'a>,
    /// Its rows of the batch.
    pub rows: Range<usize>,
    /// Whether all members have all rows and share columns.
    pub columns: bool,
    clock: Cell<Instant>,
}

impl<'a> Part<'a> {
    /// These rows, all columns.
    pub fn rows_of(member: &'a Member<'a>, rows: Range<usize>) -> Self {
        Part { member, rows, columns: false, clock: Cell::new(Instant::now()) }
    }

    /// All rows, shared by columns.
    pub fn columns_of(member: &'a Member<'a>, batch: usize) -> Self {
        Part { columns: member.count > 1, ..Part::rows_of(member, 0..batch) }
    }

    /// The same, restricted to these rows.
    pub fn of(&self, rows: Range<usize>) -> Part<'a> {
        Part { rows, columns: self.columns, ..Part::rows_of(self.member, 0..0) }
    }

    /// Its columns of rows of `width` numbers.
    pub fn columns<R: Real>(&self, width: usize) -> Range<usize> {
        if self.columns { self.member.share(width, 2 * lanes::<R>()) } else { 0..width }
    }

    /// Its rows among `of`.
    pub fn rows(&self, of: Range<usize>) -> Range<usize> {
        let start = self.rows.start.max(of.start);
        start..self.rows.end.min(of.end).max(start)
    }

    /// The time since the last lap; starts the next.
    pub fn lap(&self) -> Duration {
        self.clock.replace(Instant::now()).elapsed()
    }

    /// Whether it does the work that cannot be shared by columns.
    pub fn leads(&self) -> bool {
        !self.columns || self.member.id == 0
    }

    /// Makes the columns of the other members visible.
    pub fn sync(&self) {
        if self.columns {
            self.member.barrier();
        }
    }
}
