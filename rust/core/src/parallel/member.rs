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

    /// Waits for all members; writes of any member before it are visible to all members after it.
    #[inline]
    pub fn barrier(&self) {
        self.barrier.wait();
    }

    /// This member with another id and count: for work that is shared without barriers, at which it must not wait.
    pub fn among(&self, id: usize, count: usize) -> Self {
        Member { id, count, barrier: self.barrier }
    }

    /// This member's part of `0..n`, split at multiples of `quantum`.
    pub fn share(&self, n: usize, quantum: usize) -> Range<usize> {
        let blocks = n.div_ceil(quantum);
        let cut = |id: usize| (blocks * id / self.count * quantum).min(n);
        cut(self.id)..cut(self.id + 1)
    }
}

/// The panic payload of a member whose barrier was broken by the panic of another.
pub(super) struct Broken;

/// The barrier of the members of a call.
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

    /// Sets the number of members; called by each of them before it waits.
    pub fn expect(&self, count: usize) {
        self.count.store(count, Relaxed);
    }

    /// Releases all present and future waiters, because a member will not arrive.
    pub fn break_up(&self) {
        self.broken.store(true, Relaxed);
    }

    /// Whether the barrier was broken.
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
                // not a panic of its own, so it is not reported again
                resume_unwind(Box::new(Broken));
            }
            spin.turn_or_yield();
        }
    }
}
