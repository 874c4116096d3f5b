//! A team of threads that belongs to somebody else in this process, such as torch's.
//!
//! After a parallel region the threads of such a team spin for some milliseconds. A team of our own would find their cores busy
//! after every parallel operation of torch, and each barrier would cost a time slice (a product of 32 reflections at n =
//! 256: 2.2 ms instead of 0.1). If a call enters the same team from the same thread, the spinning threads are its members.

use super::call::{Call, Task};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// A team of threads.
///
/// # Safety
/// In a region every thread names the same number of threads, and, if that is more than 1, each place below it comes to one thread
/// and no other: the member at a place writes what belongs to it, and what the members are to write is read when all have left.
pub unsafe trait Team: Send + Sync {
    /// Calls `enter` with the place of a thread (0: the caller's) and the number of threads, which is meant to be `threads`, and
    /// returns after all have left it.
    fn region(&self, threads: usize, enter: &(dyn Fn(usize, usize) + Sync));
}

/// A team, and the id of the process that found it: a forked child has no team to share.
struct Adopted {
    team: Box<dyn Team>,
    process: u32,
}

/// Null, or the first team found, which is never freed. (Not a lock, which a fork could leave locked.)
static ADOPTED: AtomicPtr<Adopted> = AtomicPtr::new(null_mut());

/// The team of this process or of one it was forked from.
fn known() -> Option<&'static Adopted> {
    // SAFETY: null, or leaked by `adopt`.
    unsafe { ADOPTED.load(Acquire).as_ref() }
}

/// Adopts the team that `find` finds, unless this process or one it was forked from had one; from then on calls run on it. Returns
/// [`adopted`].
pub fn adopt(find: impl FnOnce() -> Option<Box<dyn Team>>) -> bool {
    if known().is_none()
        && let Some(team) = find()
    {
        let found = Box::leak(Box::new(Adopted { team, process: std::process::id() }));
        // Concurrent calls find the same team; the first store is kept, and what the others found is leaked.
        let _ = ADOPTED.compare_exchange(null_mut(), found, AcqRel, Relaxed);
    }
    adopted()
}

/// Whether calls of this process run on an adopted team.
pub fn adopted() -> bool {
    own().is_some()
}

fn own() -> Option<&'static Adopted> {
    known().filter(|adopted| adopted.process == std::process::id())
}

/// Runs the task on up to `threads` members of the adopted team, with or without barriers. Returns false without effect
/// if there is none, or no thread of it takes part.
pub(super) fn run(threads: usize, task: Task<'_>, barriers: bool) -> bool {
    own().is_some_and(|adopted| on(&*adopted.team, threads, task, barriers))
}

/// The team may provide fewer threads than requested (one, in a nested region), or, with some settings, more; surplus threads
/// do not take part, and no barrier waits for them, even if they all say that they are alone.
fn on(team: &dyn Team, threads: usize, task: Task<'_>, barriers: bool) -> bool {
    let (call, members) = (Call::new(task), AtomicUsize::new(0));
    team.region(threads, &|id, count| {
        let count = count.min(threads);
        if id < count && members.fetch_add(1, Relaxed) < count {
            call.join(id, if barriers { count } else { 1 });
            if call.is_broken() && own().is_none() && known().is_some() {
                // forked in this region, which returns after all its threads have left it: this process has one of them
                eprintln!(
                    "isometry: a process forked in a signal handler cannot leave the call on torch's threads"
                );
                std::process::abort();
            }
        }
    });
    call.finish();
    members.into_inner() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// The places of the threads, for so many that were asked for.
    struct Places(fn(usize) -> Vec<(usize, usize)>);

    // SAFETY: the places below are those that a team may give.
    unsafe impl Team for Places {
        fn region(&self, threads: usize, enter: &(dyn Fn(usize, usize) + Sync)) {
            std::thread::scope(|scope| {
                for (id, count) in (self.0)(threads) {
                    scope.spawn(move || enter(id, count));
                }
            });
        }
    }

    #[test]
    fn as_many_members_as_the_team_gives_and_no_more_than_were_asked_for() {
        let teams: [(Places, usize); 6] = [
            (Places(|threads| (0..threads).map(|id| (id, threads)).collect()), 4),
            (Places(|_| vec![(0, 1)]), 1),
            (Places(|_| vec![(0, 2), (1, 2)]), 2),
            (Places(|_| (0..7).map(|id| (6 - id, 7)).collect()), 4),
            (Places(|threads| vec![(0, 1); threads]), 1),
            (Places(|threads| vec![(usize::MAX, 0); threads]), 0),
        ];
        for (team, expected) in teams {
            let (members, ids) = (AtomicUsize::new(0), [const { AtomicBool::new(false) }; 4]);
            let together = |member: &crate::parallel::Member<'_>| {
                assert_eq!(member.count, expected);
                assert!(!ids[member.id].swap(true, Relaxed), "two have one place");
                members.fetch_add(1, Relaxed);
                member.barrier();
                assert_eq!(members.load(Relaxed), expected);
            };
            assert_eq!(on(&team, 4, &together, true), expected > 0);
            assert_eq!(members.load(Relaxed), expected);
            let loose = AtomicUsize::new(0);
            let apart = |member: &crate::parallel::Member<'_>| {
                assert_eq!(member.count, 1);
                loose.fetch_add(1, Relaxed);
            };
            assert_eq!(on(&team, 4, &apart, false), expected > 0);
            assert_eq!(loose.into_inner(), expected);
        }
    }
}
