//! Threads: one process-local team, entered once per call, whose members work on disjoint parts.
//!
//! * [`run`] executes `f(member)` on the calling thread (member 0) and on up to `threads - 1` others, with barriers between
//!   dependent parts. Members of a barrier must all be running, so a call starts with those that come within a moment.
//! * [`each`] deals the parts of a batch, which need no barrier; those that come late take what is left.
//!
//! rayon supplies the threads (`team`): jobs on a pool of this process join the call (`gate`). Nothing inside a call enters the
//! pool. Where torch keeps an OpenMP team its threads are the members instead ([`crate::openmp`]).
//!
//! * A second thread that calls while the team is busy runs alone, so does a call from inside another, and so does every call
//!   where no thread can be had. Results are the same for every number of members.
//! * Nothing starts before the first call, and a forked child has a team of its own.
//! * Denormal numbers are flushed in every member for the length of the call, and the caller's mode is restored.

mod call;
mod denormals;
mod each;
mod gate;
mod member;
mod shared;
mod spin;
mod team;
#[cfg(test)]
mod tests;

pub(crate) use call::{Call, Task};
pub use each::{Cut, cut, each, grain};
pub use member::Member;
pub use shared::Shared;

use crate::openmp;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs `f` on up to `threads` members; returns when all are through. Panics of any member come out here.
pub fn run(threads: usize, f: &(dyn Fn(&Member<'_>) + Sync)) {
    enter(threads, true, f);
}

/// [`run`]; without barriers members come and go, all of them as one of one (only the caller's id is 0).
fn enter(threads: usize, barriers: bool, f: Task<'_>) {
    // More members than cores would wait for each other at every barrier. (Unit tests want every split.)
    let threads = if cfg!(test) { threads } else { threads.min(available()) };
    if threads < 2 || !(openmp::run(threads, f, barriers) || team::run(threads, f, barriers)) {
        Member::alone(f);
    }
}

/// How many threads this machine lets this process have (affinity and cgroup quotas included).
pub fn available() -> usize {
    // Asked once or twice: the answer is read from files of the system. No lock, which a fork could leave locked.
    static AVAILABLE: AtomicUsize = AtomicUsize::new(0);
    let known = AVAILABLE.load(Relaxed);
    if known > 0 {
        return known;
    }
    let found = std::thread::available_parallelism().map_or(1, usize::from);
    AVAILABLE.store(found, Relaxed);
    found
}

/// Members worth entering for about `work` multiply-adds: the second thread gains nothing below some 10 us of work.
pub fn worth(threads: usize, work: usize) -> usize {
    threads.min(work / 400_000 + 1).max(1)
}
