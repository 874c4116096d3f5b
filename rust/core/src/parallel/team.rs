//! The threads of this process: one rayon pool, on which jobs are spawned that serve a [`Gate`].
//!
//! The pool belongs to a process: after `fork` the child finds another process id and makes its own; the parent's, of whose
//! threads the child has none, is leaked as it is, whoever held what of it. No lock stands before it that a fork could leave
//! locked.

use super::available;
use super::call::{Call, Task};
use super::gate::Gate;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

struct Team {
    process: u32,
    pool: ThreadPool,
    gate: Gate,
}

/// The team of this process, or of one that it was forked from. Teams are never freed.
static TEAM: AtomicPtr<Team> = AtomicPtr::new(null_mut());

/// Runs the task on up to `threads` members, with barriers or without; false, and nothing done, if there is nobody to work
/// with: another caller has the team, or there are no threads to be had.
pub(super) fn run(threads: usize, task: Task<'_>, barriers: bool) -> bool {
    let Some(team) = team() else { return false };
    let call = Call::new(task);
    let most = (threads - 1).min(team.pool.current_num_threads());
    let ran = team.gate.run(&call, most, barriers, || team.pool.spawn(|| team.gate.serve()));
    call.finish();
    ran
}

fn team() -> Option<&'static Team> {
    let process = std::process::id();
    let known = TEAM.load(Acquire);
    // SAFETY: null, or a team that was leaked.
    if let Some(team) = unsafe { known.as_ref() }
        && team.process == process
    {
        return Some(team);
    }
    let made = Box::into_raw(Box::new(Team { process, pool: pool()?, gate: Gate::new() }));
    match TEAM.compare_exchange(known, made, AcqRel, Acquire) {
        // SAFETY: leaked by this.
        Ok(_) => Some(unsafe { &*made }),
        Err(other) => {
            // SAFETY: nobody else has seen it; its threads, which have nothing to do, go.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: another thread made and leaked it.
            Some(unsafe { &*other })
        }
    }
}

/// A pool of as many threads as can be had, up to one less than the machine has: the caller is a member too.
fn pool() -> Option<ThreadPool> {
    let most = if cfg!(test) { 7 } else { available() - 1 };
    let build = |count| {
        ThreadPoolBuilder::new().num_threads(count).thread_name(|i| format!("isometry-{}", i + 1)).build()
    };
    std::iter::successors(Some(most), |count| Some(count / 2))
        .take_while(|&count| count > 0)
        .find_map(|count| build(count).ok())
}
