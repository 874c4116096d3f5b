//! Other tests use the team concurrently: a call that finds it busy runs alone; it must be correct but proves nothing.

use super::call::Call;
use super::member::Barrier;
use super::rendezvous::Rendezvous;
use super::*;
use crate::testing::within_work;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Repeats a call until it has exercised the team.
fn until(proven: impl FnMut() -> bool) {
    assert!(within(60, proven), "never seen");
}

/// Whether `proven` holds within so many seconds, in which a busy machine may run other threads.
fn within(seconds: u64, mut proven: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !proven() {
        if start.elapsed() > Duration::from_secs(seconds) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

fn count(threads: usize) -> usize {
    let most = AtomicUsize::new(0);
    run(threads, &|member| {
        most.fetch_max(member.count, Relaxed);
    });
    most.into_inner()
}

/// The number of threads that take parts of a batch; each part leaves the core to others.
fn threads_of_a_batch(threads: usize) -> usize {
    let seen = Mutex::new(HashSet::new());
    each(
        threads,
        0..20,
        || (),
        |(), _, _| {
            seen.lock().unwrap().insert(std::thread::current().id());
            std::thread::sleep(Duration::from_millis(1));
        },
    );
    seen.into_inner().unwrap().len()
}

/// Sums by both entry points; returns the number of members of the first.
fn sums(threads: usize) -> usize {
    let (sum, members) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let add = |i| {
        sum.fetch_add(i, Relaxed);
    };
    run(threads, &|member| {
        members.store(member.count, Relaxed);
        member.share(100, 1).for_each(add);
        member.barrier();
        assert_eq!(sum.load(Relaxed), 4950);
    });
    each(threads, 0..100, || (), |(), i, _| add(i));
    assert_eq!(sum.load(Relaxed), 2 * 4950);
    members.into_inner()
}

#[test]
fn every_member_runs_once_and_barriers_order_them() {
    for threads in [1, 2, 3, 5] {
        until(|| {
            let (first, second) = (AtomicUsize::new(0), AtomicUsize::new(0));
            run(threads, &|member| {
                first.fetch_add(1, Relaxed);
                member.barrier();
                assert_eq!(first.load(Relaxed), member.count);
                second.fetch_add(member.id + 1, Relaxed);
            });
            let n = first.load(Relaxed);
            // A call starts with the jobs that arrived in time.
            assert!((1..=threads).contains(&n));
            assert_eq!(second.load(Relaxed), n * (n + 1) / 2);
            n == threads
        });
    }
}

#[test]
fn shares_cover_everything_once() {
    for (n, quantum, count) in [(0, 4, 3), (10, 4, 3), (33, 16, 2), (5, 1, 8)] {
        let barrier = Barrier::new();
        let mut next = 0;
        for id in 0..count {
            let part = Member { id, count, barrier: &barrier }.share(n, quantum);
            assert_eq!(part.start, next);
            next = part.end;
        }
        assert_eq!(next, n);
    }
}

#[test]
fn a_panic_of_a_member_comes_out_and_the_team_lives_on() {
    for guilty in [0, 1] {
        until(|| {
            let members = AtomicUsize::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                run(2, &|member| {
                    members.fetch_max(member.count, Relaxed);
                    assert!(member.id != guilty, "meant to happen");
                    member.barrier();
                });
            }));
            if members.load(Relaxed) == 2 {
                let panic = outcome.expect_err("the panic of a member was lost");
                assert_eq!(panic.downcast_ref(), Some(&"meant to happen"), "the panic of member {guilty}");
            }
            members.load(Relaxed) == 2
        });
    }
    until(|| count(2) == 2);
}

#[test]
fn callers_at_the_same_time_all_finish() {
    let calls = if within_work(&[8, 200]) { 200 } else { 5 };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..calls {
                    sums(2);
                }
            });
        }
    });
}

#[test]
fn a_call_inside_a_call_runs_alone() {
    until(|| {
        let members = AtomicUsize::new(0);
        run(2, &|member| {
            members.store(member.count, Relaxed);
            let inner = sums(2);
            assert!(member.count == 1 || inner == 1);
        });
        each(2, 0..4, || (), |(), _, _| assert!(sums(2) > 0));
        members.into_inner() == 2
    });
}

#[test]
fn a_worker_of_another_pool_may_call() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    until(|| pool.join(|| count(2), || count(2)) != (1, 1));
}

#[test]
fn denormals_are_flushed_inside_only() {
    let tiny = std::hint::black_box(f64::MIN_POSITIVE);
    let positive = || std::hint::black_box(std::hint::black_box(tiny) / 4.0 > 0.0);
    until(|| {
        run(2, &|_| {
            assert!(!positive());
        });
        each(2, 0..4, || (), |(), _, _| assert!(!positive()));
        assert!(positive());
        count(2) == 2
    });
}

#[test]
fn code_of_the_caller_sees_denormals_inside_a_call() {
    let tiny = std::hint::black_box(f64::MIN_POSITIVE);
    let positive = || std::hint::black_box(std::hint::black_box(tiny) / 4.0 > 0.0);
    assert!(in_callers_mode(positive), "outside of a call");
    run(2, &|_| {
        assert!(in_callers_mode(positive) && !positive());
        // a call of the caller's code flushes, too, and so does what follows a panic in it
        in_callers_mode(|| {
            Member::alone(|_| assert!(!positive() && in_callers_mode(positive)));
            assert!(positive());
        });
        assert!(!positive());
        assert!(catch_unwind(|| in_callers_mode(|| panic!("of the caller"))).is_err());
        assert!(!positive());
    });
    assert!(positive());
}

#[test]
fn each_does_every_part_once_on_so_many_threads_at_most() {
    for threads in [1, 2, 3] {
        until(|| {
            let (mut squares, mut roots) = (vec![0; 1000], vec![0; 100]);
            let (states, seen) = (AtomicUsize::new(0), Mutex::new(HashSet::new()));
            let parts = squares.chunks_mut(10).zip(&mut roots);
            each(
                threads,
                parts,
                || states.fetch_add(1, Relaxed),
                |_, i, (squares, root)| {
                    seen.lock().unwrap().insert(std::thread::current().id());
                    *root += i;
                    squares.iter_mut().enumerate().for_each(|(j, x)| *x += (10 * i + j).pow(2));
                    std::thread::sleep(Duration::from_micros(20));
                },
            );
            assert!(squares.into_iter().eq((0..1000).map(|i| i * i)));
            assert!(roots.into_iter().eq(0..100));
            let seen = seen.into_inner().unwrap().len();
            assert!(seen <= threads && states.into_inner() >= seen);
            seen == threads
        });
    }
    each(2, [0; 0].iter_mut(), || panic!("no part, no state"), |(), _, _| ());
}

#[test]
fn arrays_are_cut_from_both_ends_or_are_not_there() {
    let mut array = [0, 1, 2, 3, 4, 5, 6];
    let mut parts = cut(Some(&mut array), 2, 3);
    assert_eq!(parts.len(), 3);
    assert_eq!(parts.next_back(), Some(Some(&mut [4, 5][..])));
    assert_eq!(parts.next(), Some(Some(&mut [0, 1][..])));
    assert_eq!(parts.next_back(), Some(Some(&mut [2, 3][..])));
    assert!(parts.next().is_none() && parts.next_back().is_none());
    assert!(cut(Some(&mut array), 0, 2).eq([Some(&mut [][..]), Some(&mut [])]));
    assert!(cut::<u8>(None, 5, 2).rev().eq([None, None]));
    for (len, count) in [(2, 4), (usize::MAX, 2)] {
        assert!(catch_unwind(move || cut(Some(&mut [0; 7]), len, count).len()).is_err());
    }
}

#[test]
fn a_panic_in_each_comes_out_once() {
    let me = std::thread::current().id();
    for ours in [false, true] {
        let guilty = || (std::thread::current().id() == me) == ours;
        // a panic in a part, then in the iterator, which poisons the lock
        until(|| {
            let doing = |(): &mut (), _, _| {
                assert!(!guilty(), "meant to happen");
                std::thread::sleep(Duration::from_micros(100));
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| each(2, 0..20, || (), doing)));
            outcome.is_err_and(|panic| panic.downcast_ref() == Some(&"meant to happen"))
        });
        until(|| {
            let parts = (0..20).map(|_| assert!(!guilty(), "meant to happen"));
            let doing = |(): &mut (), _, ()| std::thread::sleep(Duration::from_micros(100));
            let outcome = catch_unwind(AssertUnwindSafe(|| each(2, parts, || (), doing)));
            outcome.is_err_and(|panic| panic.downcast_ref() == Some(&"meant to happen"))
        });
    }
    until(|| count(2) == 2);
}

#[test]
fn a_late_job_returns_and_finds_nothing_of_the_call() {
    let rendezvous = Rendezvous::new();
    for barriers in [true, false] {
        let (sent, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let send = || {
            sent.fetch_add(1, Relaxed);
        };
        // no job arrives in time
        let task = |member: &Member<'_>| {
            assert_eq!((member.id, member.count), (0, 1));
            ran.fetch_add(1, Relaxed);
        };
        assert!(rendezvous.run(&Call::new(&task), 2, barriers, send));
        assert_eq!((ran.into_inner(), sent.into_inner()), (1, 2));
        // the two jobs arrive after the call has ended
        rendezvous.serve();
        rendezvous.serve();
    }
}

#[test]
fn a_job_that_lingers_joins_the_next_call() {
    let rendezvous = Rendezvous::new();
    let sent = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        until(|| {
            let members = AtomicUsize::new(0);
            let task = |member: &Member<'_>| {
                members.fetch_max(member.count, Relaxed);
            };
            let send = || {
                sent.fetch_add(1, Relaxed);
                scope.spawn(|| rendezvous.serve());
            };
            let before = sent.load(Relaxed);
            assert!(rendezvous.run(&Call::new(&task), 1, true, send));
            members.into_inner() == 2 && sent.load(Relaxed) == before
        });
    });
}

#[test]
fn a_gate_has_one_caller() {
    let rendezvous = Rendezvous::new();
    let second = Call::new(&|_| unreachable!());
    let refused = |_: &Member<'_>| assert!(!rendezvous.run(&second, 1, true, || unreachable!()));
    for barriers in [true, false] {
        let first = Call::new(&refused);
        assert!(rendezvous.run(&first, 0, barriers, || unreachable!()));
        first.finish();
    }
}

/// Runs `child` in a forked process, which must return true within a minute.
#[cfg(target_os = "linux")]
fn in_a_child(child: impl Fn() -> bool) {
    // SAFETY: the child runs `child` on its copy of the memory and exits without returning.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(child)).map_or(4, |fine| if fine { 0 } else { 3 });
        // SAFETY: `_exit` may be called after a fork.
        unsafe { libc::_exit(code) };
    }
    let (start, mut status) = (Instant::now(), -1);
    // SAFETY: `pid` is a child of this process, `status` is writable.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(60) {
            // SAFETY: `pid` is a child that has not been reaped.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child hung (9), returned false (3 << 8) or panicked (4 << 8)");
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_forked_while_others_are_inside_has_a_team_of_its_own() {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    sums(3);
                }
            });
        }
        let outcome = catch_unwind(|| {
            for _ in 0..20 {
                in_a_child(|| sums(2) > 0 && within(30, || threads_of_a_batch(2) == 2));
            }
        });
        over.store(true, Relaxed);
        outcome.unwrap();
    });
    until(|| count(2) == 2);
}

#[test]
#[cfg(target_os = "linux")]
fn where_no_threads_are_to_be_had_the_caller_works_alone() {
    in_a_child(|| {
        let held = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = held.split(' ').next().unwrap().parse().unwrap();
        // SAFETY: `sysconf` has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        // room for less than the stack of one thread, and for the signal stacks of those that take the stacks of the parent's threads
        let limit = libc::rlimit { rlim_cur: pages * page + (15 << 17), rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the struct is initialised; the limit applies to this child process only.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        // glibc reuses the stacks of ended threads
        while std::thread::Builder::new()
            .spawn(|| {
                loop {
                    std::thread::park()
                }
            })
            .is_ok()
        {}
        (0..3).all(|_| sums(2) == 1)
    });
}
