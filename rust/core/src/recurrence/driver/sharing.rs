//! Work sharing within a sequence, and the common stop of all members when the caller cancels.
//!
//! With at least two rows per member each takes rows of the batch, without synchronisation between steps. A smaller
//! batch is shared by output columns, with a barrier per step, if a step is long enough.

use super::super::time::Schedule;
use crate::parallel::{Member, worth};
use crate::scratch::{Arena, Regions, most};
use crate::sizes;
use crate::transition::Part;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Multiply-adds of a step from which members share its columns: some 0.7 us of one core. Tests always share.
const COLUMNS: usize = if cfg!(test) { 1 } else { 40_000 };

/// The number of threads for steps of `work` multiply-adds per row, and whether they share columns instead of rows.
pub fn layout(work: usize, divisible: bool, batch: usize, steps: usize, threads: usize) -> (usize, bool) {
    let all = sizes::work(&[work, batch, steps]);
    let threads = worth(most(threads), all);
    if batch >= 2 * threads {
        (threads, false)
    } else if threads > 1 && divisible && work.saturating_mul(batch) >= COLUMNS {
        (threads, true)
    } else {
        ((batch / 2).clamp(1, threads), false)
    }
}

/// The members of a pass and their scratch.
pub struct Room<R> {
    own: Regions<R>,
    /// Threads to enter with.
    pub threads: usize,
    /// They share columns instead of rows.
    columns: bool,
}

impl<R> Room<R> {
    /// For up to `threads` members and steps of `work` multiply-adds per row, whose columns can be shared if they are `divisible`;
    /// each member has `own` numbers of scratch.
    pub fn carve(
        arena: &mut Arena,
        schedule: &Schedule,
        (work, divisible): (usize, bool),
        own: usize,
        threads: usize,
    ) -> Self {
        let (threads, columns) = layout(work, divisible, schedule.batch, schedule.steps, threads);
        Room { own: arena.regions(threads, &[own]), threads, columns }
    }

    /// The scratch of a member.
    pub fn scratch(&self, member: &Member<'_>) -> *mut R {
        self.own.of(member.id).ptr()
    }

    /// The part of every step that a member does.
    pub fn part<'a>(&self, member: &'a Member<'a>, schedule: &Schedule) -> Part<'a> {
        if self.columns {
            Part::columns_of(member, schedule.batch)
        } else {
            Part::rows_of(member, schedule.share(member.id, member.count))
        }
    }
}

/// Whether sharing columns still pays. On a busy machine members may share a core, and every barrier then costs a time
/// slice: some hundred steps. The caller detects this and continues alone.
pub struct Pace {
    limit: Duration,
    alone: AtomicUsize,
}

impl Pace {
    /// Steps between two readings of the clock.
    const WINDOW: usize = 4;

    /// For steps of `work` multiply-adds; the limit is a fourth of one core's speed.
    pub fn new(work: usize) -> Self {
        let alone = Duration::from_nanos((work / 20) as u64);
        let limit = alone * (4 * Self::WINDOW as u32) + Duration::from_micros(200);
        #[cfg(test)]
        let limit = tests::limit(limit);
        Pace { limit, alone: AtomicUsize::new(usize::MAX) }
    }

    /// Whether member 0 is to continue alone from here; called by every member after the barrier of every step, so that all learn
    /// it at the same step: it takes effect one step later.
    pub fn alone(&self, part: &Part<'_>, place: usize) -> bool {
        if !part.columns {
            return false;
        }
        let alone = self.alone.load(Relaxed) <= place;
        let look = part.member.id == 0 && !alone && place % Self::WINDOW == Self::WINDOW - 1;
        if look && part.lap() > self.limit {
            self.alone.store(place + 1, Relaxed);
        }
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third pass of the other tests stops sharing at the first reading.
    pub fn limit(real: Duration) -> Duration {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if COUNT.fetch_add(1, Relaxed).is_multiple_of(3) { Duration::ZERO } else { real }
    }

    #[test]
    fn small_batches_share_columns_and_large_ones_rows() {
        assert_eq!(layout(1 << 16, true, 50, 100, 2), (2, false));
        assert_eq!(layout(1 << 16, true, 1, 100, 2), (2, true));
        assert_eq!(layout(1 << 16, false, 1, 100, 2), (1, false));
        assert_eq!(layout(1 << 16, false, 5, 100, 4), (2, false));
        assert_eq!(layout(1 << 16, true, 1, 100, 1), (1, false));
    }
}
