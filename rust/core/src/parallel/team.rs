//! The threads of this process: one rayon pool, on which jobs are spawned that serve a [`Rendezvous`].
//!
//! The pool belongs to a process: after `fork` the child finds a different process id and creates its own. The parent's
//! pool, whose threads do not exist in the child, is leaked in whatever state it is. There is no lock that a fork could
//! leave locked.

use super::available;
use super::call::{Call, Task};
use super::contention::{CONTENTION, Watch, milliseconds};
use super::member::Member;
use super::rendezvous::Rendezvous;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

struct Team {
    pool: ThreadPool,
    rendezvous: Rendezvous,
}

/// The team of this process, or of one it was forked from. Teams are never freed.
static TEAM: AtomicPtr<Team> = AtomicPtr::new(null_mut());

/// Runs the task on up to `threads` members, with or without barriers. Returns false without effect if another caller
/// has the team, or one thread is left to use.
pub(super) fn run(threads: usize, task: Task<'_>, barriers: bool) -> bool {
    let threads = if cfg!(test) { threads } else { CONTENTION.limit(threads, milliseconds) };
    let Some(team) = team().filter(|_| threads > 1) else { return false };
    let watch = Watch::new(&CONTENTION);
    let watched = |member: &Member<'_>| watch.member(|| task(member));
    let call = Call::new(&watched);
    let most = (threads - 1).min(team.pool.current_num_threads());
    let ran = team.rendezvous.run(&call, most, barriers, || team.pool.spawn(|| team.rendezvous.serve()));
    call.finish();
    if ran {
        watch.end(&CONTENTION);
    }
    ran
}

fn team() -> Option<&'static Team> {
    let process = std::process::id();
    let known = TEAM.load(Acquire);
    // SAFETY: null, or a leaked team, which is never freed.
    if let Some(team) = unsafe { known.as_ref() }
        && team.rendezvous.process == process
    {
        return Some(team);
    }
    let made = Box::into_raw(Box::new(Team { pool: pool()?, rendezvous: Rendezvous::new() }));
    match TEAM.compare_exchange(known, made, AcqRel, Acquire) {
        // SAFETY: the team was leaked here, so it is never freed.
        Ok(_) => Some(unsafe { &*made }),
        Err(other) => {
            // SAFETY: the pointer was not published, so this is its only owner; dropping the pool ends its idle threads.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: another thread published this team, which is never freed.
            Some(unsafe { &*other })
        }
    }
}

/// A pool of as many threads as can be created, up to one less than the machine has: the caller is a member too.
fn pool() -> Option<ThreadPool> {
    // Miri runs one thread at a time.
    let most = if cfg!(miri) {
        3
    } else if cfg!(test) {
        63
    } else {
        available() - 1
    };
    let build = |count| {
        ThreadPoolBuilder::new().num_threads(count).thread_name(|i| format!("isometry-{}", i + 1)).build()
    };
    std::iter::successors(Some(most), |count| Some(count / 2))
        .take_while(|&count| count > 0)
        .find_map(|count| build(count).ok())
}
