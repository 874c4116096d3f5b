//! The batch in two halves with separate gradient sums: members that work on different halves then never read data
//! written by another core (at n = 190, B = 20 such reads took half the time of two cores). The split depends on the
//! sizes alone, so the order of every sum does too.

use super::schedule::Schedule;
use crate::parallel::Member;
use crate::transition::Part;
use std::ops::Range;

/// Fewest rows of a batch that is halved, so that a half fills a register tile. Tests halve every batch they can.
const ROWS: usize = if cfg!(test) { 4 } else { 16 };

/// The number of halves in which gradients are summed: 2 where all sequences of a large enough batch have the same length,
/// else 1.
pub fn halves(schedule: &Schedule) -> usize {
    if schedule.batch >= ROWS && schedule.full(&(0..schedule.steps)) { 2 } else { 1 }
}

/// One half (or the whole batch), and this member's share of the work on it.
pub struct Half<'a> {
    /// Its index.
    pub index: usize,
    /// Its rows of the batch.
    pub rows: Range<usize>,
    /// This member's rows among them.
    pub part: Part<'a>,
    /// This member among those that gather the half's gradients; with two halves it must not wait at barriers.
    pub gatherer: Member<'a>,
}

impl<'a> Half<'a> {
    /// This member's share of each half; None where it has none.
    pub fn all(schedule: &Schedule, halves: usize, part: &Part<'a>) -> [Option<Half<'a>>; 2] {
        let (batch, member) = (schedule.batch, part.member);
        if halves == 1 {
            let gatherer = member.among(member.id, member.count);
            return [
                Some(Half { index: 0, rows: 0..batch, part: part.of(part.rows.clone()), gatherer }),
                None,
            ];
        }
        let cut = |index: usize| batch * index / 2;
        [0, 1].map(|index| {
            let rows = cut(index)..cut(index + 1);
            let own = part.rows(rows.clone());
            let touches = |id: usize| {
                let theirs = if part.columns { 0..batch } else { schedule.share(id, member.count) };
                theirs.start.max(rows.start) < theirs.end.min(rows.end)
            };
            let first = (0..member.count).find(|&id| touches(id)).unwrap_or(0);
            let count = (first..member.count).take_while(|&id| touches(id)).count();
            let gatherer = || member.among(member.id - first, count);
            (!own.is_empty()).then(|| Half { index, rows, part: part.of(own), gatherer: gatherer() })
        })
    }
}
