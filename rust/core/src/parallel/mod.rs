//! Threads: one team per process; the members of a call work on disjoint parts.
//!
//! * [`run`] executes `f(member)` on the calling thread (member 0) and on up to `threads - 1` others, with barriers between
//!   dependent parts. All members of a barrier must be running, so a call starts with the threads that arrive in time.
//! * [`each`] distributes the parts of a batch, without barriers; threads that arrive late take parts that are left.
//!
//! rayon supplies the threads (`team`): jobs on a pool of this process join the call (`rendezvous`). Nothing inside a call uses
//! the pool. A team that is adopted, such as torch's, has the members instead (`adopted`).
//!
//! * A call made while the team is busy, from inside another call, or when no thread can be created runs on its own thread
//!   alone. Results are the same for every number of members.
//! * The team takes fewer threads while other processes use the cores (`contention`). An adopted team does not:
//!   its threads would sleep meanwhile, and torch's own operations would wait for them.
//! * No thread starts before the first call, and a forked child creates its own team.
//! * Denormal numbers are flushed in every member for the duration of the call; then the caller's mode is restored, as it is while
//!   code of the caller runs inside the call ([`in_callers_mode`]).

pub(crate) mod adopted;
mod call;
mod contention;
mod denormals;
mod each;
mod member;
mod rendezvous;
mod shared;
mod spin;
mod team;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use call::Task;
pub use denormals::in_callers_mode;
pub use each::{Cut, cut};
pub(crate) use each::{each, grain};
use isometry_kernels::stop;
pub(crate) use member::Member;
pub use shared::Shared;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs a call that `cancel` may stop, which is asked on this thread, in the floating-point mode of the caller: all members
/// unwind, and the result is [`Error::Interrupted`].
///
/// # Errors
/// That, and those of `f`.
pub fn stoppable<R>(cancel: &dyn Fn() -> bool, f: impl FnOnce() -> Result<R>) -> Result<R> {
    stop::stoppable(&|| in_callers_mode(cancel), f).unwrap_or(Err(Error::Interrupted))
}

/// Runs `f` on up to `threads` members and returns when all have finished. Panics of members are propagated.
pub fn run(threads: usize, f: &(dyn Fn(&Member<'_>) + Sync)) {
    enter(threads, true, f);
}

/// [`run`]; without barriers each member runs as the only one of its call (only the caller has id 0).
fn enter(threads: usize, barriers: bool, f: Task<'_>) {
    // More members than cores would delay each other at every barrier. (Unit tests cover every split.)
    let threads = if cfg!(test) { threads } else { threads.min(available()) };
    #[cfg(test)]
    let joined = AtomicUsize::new(0);
    #[cfg(test)]
    let f: Task<'_> = &|member| {
        joined.fetch_add(1, Relaxed);
        f(member);
    };
    if threads < 2 || !(adopted::run(threads, f, barriers) || team::run(threads, f, barriers)) {
        Member::alone(f);
    }
    #[cfg(test)]
    MEMBERS.set(MEMBERS.get().max(joined.into_inner()));
}

#[cfg(test)]
thread_local! {
    static MEMBERS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The most threads that shared a call of this thread since the last question.
#[cfg(test)]
pub fn members() -> usize {
    MEMBERS.take()
}

/// The number of threads available to this process (affinity and cgroup quotas included).
pub fn available() -> usize {
    // Computed once or twice, as it reads system files. Not a lock, which a fork could leave locked.
    static AVAILABLE: AtomicUsize = AtomicUsize::new(0);
    let known = AVAILABLE.load(Relaxed);
    if known > 0 {
        return known;
    }
    let found = std::thread::available_parallelism().map_or(1, usize::from);
    AVAILABLE.store(found, Relaxed);
    found
}

/// Members worth using for about `work` multiply-adds: a second thread gains nothing below some 10 us of work. (Unit tests use
/// all, so that small shapes cover every split.)
pub fn worth(threads: usize, work: usize) -> usize {
    if cfg!(test) {
        return threads.max(1);
    }
    threads.min(work / 400_000 + 1).max(1)
}
