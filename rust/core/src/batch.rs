//! How the matrices of a batch are distributed over threads.
//!
//! Either every thread computes whole matrices, or all threads compute one matrix after another together. In multiply-adds, the
//! slowest thread takes
//!
//! ```text
//! whole matrices:    ceil(count / threads) cost,
//! one together:      count (cost / threads + barriers BARRIER),
//! ```
//!
//! and the faster way is taken, with as many threads as the work is worth. Small matrices are computed in groups, one matrix
//! in each lane of a vector; a group is then treated like a whole matrix.

use crate::error::Result;
use crate::parallel::{self, Member};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Scratch, most};
use crate::sizes::work;
use isometry_kernels::lanes;
use isometry_kernels::stop::{BETWEEN, poll};
use std::ops::Range;

/// The cost of a barrier in multiply-adds: some 5 us, including the wait for the slowest member.
const BARRIER: usize = 200_000;
/// Largest n for one matrix per lane.
const LANES_MOST: usize = 32;

/// Whether n x n matrices are computed one per lane: empty lanes cost as much as full ones.
pub fn by_lanes<T: Scalar>(count: usize, n: usize) -> bool {
    n <= LANES_MOST && count.saturating_mul(2) > lanes::<T::Real>()
}

/// Matrices of the same cost.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    count: usize,
    cost: usize,
    barriers: usize,
}

impl Batch {
    /// `count` matrices of `cost` multiply-adds of T each; members that share one meet at about this many
    /// barriers.
    pub fn new<T: Scalar>(count: usize, cost: usize, barriers: usize) -> Self {
        // a complex multiply-add is four real ones; in double precision one takes the time of two
        let single = size_of::<T::Real>() / size_of::<f32>();
        Batch { count, cost: work(&[cost, T::PARTS, T::PARTS, single]), barriers }
    }

    /// The same, for a kernel that computes a matrix on one thread only.
    pub fn whole<T: Scalar>(count: usize, cost: usize) -> Self {
        Self::new::<T>(count, cost, usize::MAX)
    }

    /// The faster way. Unit tests use all threads, so that small shapes cover every split.
    pub fn split(self, threads: usize) -> Split {
        let Batch { count, cost, barriers } = self;
        let barrier = if cfg!(test) { 0 } else { BARRIER };
        let worth = |work: usize| parallel::worth(most(threads), work);
        let apart = worth(work(&[count, cost])).min(count.max(1));
        let shared = if barriers == usize::MAX { 1 } else { worth(cost / barriers.max(1)) };
        let whole = work(&[count.div_ceil(apart), cost]);
        let met = if shared > 1 { work(&[barriers, barrier]) } else { 0 };
        let together = work(&[count, (cost / shared).saturating_add(met)]);
        let (threads, apart) = if whole <= together { (apart, true) } else { (shared, false) };
        Split { count, threads, apart, cost }
    }

    /// Runs `f(first, matrices, own)` for groups of matrices, one per lane; each thread has memory of its own.
    pub fn in_groups<T: Scalar, O>(
        self,
        threads: usize,
        own: impl Fn(&mut Arena) -> O + Sync,
        f: impl Fn(usize, usize, &O) + Sync,
    ) -> Result<()> {
        let width = lanes::<T::Real>();
        let groups = Batch {
            count: self.count.div_ceil(width),
            cost: work(&[width, self.cost]),
            barriers: usize::MAX,
        };
        groups.split(threads).run(
            |_| (),
            own,
            |_, group, (), own| {
                let first = group * width;
                f(first, (self.count - first).min(width), own);
            },
        )
    }
}

/// A batch with the members that compute it.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    count: usize,
    threads: usize,
    apart: bool,
    cost: usize,
}

impl Split {
    /// Members that compute one matrix together.
    pub fn each(self) -> usize {
        if self.apart { 1 } else { self.threads }
    }

    /// All members.
    pub fn threads(self) -> usize {
        self.threads
    }

    /// Calls `f` for these matrices; between some of them the call may be stopped.
    fn through(self, matrices: Range<usize>, f: impl Fn(usize)) {
        let many = BETWEEN / self.cost.clamp(1, BETWEEN);
        for first in matrices.clone().step_by(many) {
            (first..matrices.end.min(first + many)).for_each(&f);
            poll(BETWEEN);
        }
    }

    /// Calls `f(member, b, shared, own)` for every matrix b, on each of the members that compute it: `shared` is the same memory
    /// for all of them, `own` differs. A matrix computed by several members ends with a barrier.
    pub fn run<S, O>(
        self,
        shared: impl Fn(&mut Arena) -> S + Sync,
        own: impl Fn(&mut Arena) -> O + Sync,
        f: impl Fn(&Member<'_>, usize, &S, &O) + Sync,
    ) -> Result<()> {
        let Split { count, threads, apart, .. } = self;
        if count == 0 {
            return Ok(());
        }
        let room = Scratch::new(|arena| {
            let spaces = arena.frames(if apart { threads } else { 1 }, &shared);
            (spaces, arena.frames(threads, &own))
        })?;
        // one copy of the code of f, which is called in two places
        let f: &(dyn Fn(&Member<'_>, usize, &S, &O) + Sync) = &f;
        parallel::run(threads, &|member| {
            let (spaces, owns) = *room;
            let shared = shared(&mut spaces.of(if apart { member.id } else { 0 }).arena());
            let own = own(&mut owns.of(member.id).arena());
            if apart {
                Member::alone(|solo| self.through(member.share(count, 1), |b| f(solo, b, &shared, &own)));
            } else {
                self.through(0..count, |b| {
                    f(member, b, &shared, &own);
                    member.barrier();
                });
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (members of one matrix, threads) if barriers cost nothing, as in unit tests.
    fn ways(count: usize, threads: usize) -> (usize, usize) {
        let split = Batch::new::<f32>(count, 1000, 3).split(threads);
        (split.each(), split.threads)
    }

    #[test]
    fn no_member_idles_for_long() {
        assert_eq!(ways(1, 4), (4, 4));
        assert_eq!(ways(4, 4), (1, 4));
        assert_eq!(ways(5, 4), (4, 4));
        assert_eq!(ways(8, 4), (1, 4));
        assert_eq!(ways(7, 1), (1, 1));
        assert_eq!(Batch::whole::<f32>(3, 1000).split(4).threads, 3);
    }
}
