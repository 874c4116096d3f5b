//! The threads of one call, and the barrier between them.

use super::denormals::FlushDenormals;
use super::spin::Spin;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// One of the threads of a call.
pub struct Member<'a> {
    /// 0 is the caller.
    pub id: usize,
    /// Threads of this call.
    pub count: usize,
    pub(super) barrier: &'a Barrier,
}

impl Member<'_> {
    /// A member that works alone.
    pub fn alone<R>(f: impl FnOnce(&Member<'_>) -> R) -> R {
        let _mode = FlushDenormals::new();
        f(&Member { id: 0, count: 1, barrier: &Barrier::new() })
    }

    /// Waits for all members; what any of them wrote before is visible to all after.
    #[inline]
    pub fn barrier(&self) {
        self.barrier.wait();
    }

    /// This member in another role: for work that is shared without barriers, which it must not wait at.
    pub fn among(&self, id: usize, count: usize) -> Self {
        Member { id, count, barrier: self.barrier }
    }

    /// This member's part of `0..n`, cut at multiples of `quantum`.
    pub fn share(&self, n: usize, quantum: usize) -> Range<usize> {
        let blocks = n.div_ceil(quantum);
        let cut = |id: usize| (blocks * id / self.count * quantum).min(n);
        cut(self.id)..cut(self.id + 1)
    }
}

/// What a member unwinds with that waits for one that panicked.
pub(super) struct Broken;

/// A place where all members of a call wait for each other.
pub(super) struct Barrier {
    count: AtomicUsize,
    waiting: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    /// For one member.
    pub fn new() -> Self {
        Barrier {
            count: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// For so many; said by each of them before it waits.
    pub fn expect(&self, count: usize) {
        self.count.store(count, Relaxed);
    }

    /// Lets everybody go who waits or comes: a member will not come.
    pub fn break_up(&self) {
        self.broken.store(true, Relaxed);
    }

    /// Whether a member did not come.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    #[inline]
    fn wait(&self) {
        let count = self.count.load(Relaxed);
        if count == 1 {
            return;
        }
        let round = self.round.load(Relaxed);
        if self.waiting.fetch_add(1, AcqRel) + 1 == count {
            self.waiting.store(0, Relaxed);
            self.round.store(round + 1, Release);
            return;
        }
        let mut spin = Spin::new();
        while self.round.load(Acquire) == round {
            if self.is_broken() {
                // no panic of its own: nothing is to be reported twice
                resume_unwind(Box::new(Broken));
            }
            spin.turn_or_yield();
        }
    }
}
