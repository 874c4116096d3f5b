//! Threads: one process-local team, entered once per call, whose members run the same function on disjoint parts.
//!
//! A call `run(threads, f)` executes `f(member)` on the calling thread (member 0) and on `threads - 1` workers, with
//! barriers between dependent parts. A pool of tasks cannot serve here: members of a barrier must all be running, and
//! entering a pool costs 12-50 us where a spinning team costs 0.1-0.3 us (ARCHITECTURE.md, section on speed).
//!
//! * The team belongs to a process: after `fork` the child finds another process id and makes its own; the parent's is
//!   leaked, never joined.
//! * A second thread that calls while the team is busy runs alone. So does a child forked at an unlucky moment, when the
//!   lock can never be free again. Results are the same for every number of members.
//! * Denormal numbers are flushed in every member for the length of the call, and the caller's mode is restored.

use crate::openmp;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::Thread;

/// Turns (about 11 ns each) that a member waits at a barrier before it yields: an early yield lets a busy machine
/// take the core away for a whole time slice.
const SPIN_BARRIER: u32 = 4_000;
/// Turns, about 60 us, that a caller waits for workers to come: a sleeping one needs 20 to 30 us.
const PATIENCE: u32 = 5_000;
/// Turns that an idle worker waits for the next call before it sleeps.
const SPIN_IDLE: u32 = 5_000;

/// One of the threads of a call.
pub struct Member<'a> {
    /// 0 is the caller.
    pub id: usize,
    /// Threads of this call.
    pub count: usize,
    barrier: &'a Barrier,
}

impl Member<'_> {
    /// A member that works alone.
    pub fn alone<R>(f: impl FnOnce(&Member<'_>) -> R) -> R {
        let _mode = FlushDenormals::new();
        f(&Member { id: 0, count: 1, barrier: &Barrier::new(1) })
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
struct Broken;

struct Barrier {
    count: AtomicUsize,
    waiting: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    fn new(count: usize) -> Self {
        Barrier {
            count: AtomicUsize::new(count),
            waiting: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
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
        let mut turns = 0u32;
        while self.round.load(Acquire) == round {
            if self.broken.load(Relaxed) {
                // no panic of its own: nothing is to be reported twice
                resume_unwind(Box::new(Broken));
            }
            turns = turns.saturating_add(1);
            if turns < SPIN_BARRIER { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// What every member runs.
pub(crate) type Task<'a> = &'a (dyn Fn(&Member<'_>) + Sync);

/// What the caller shows the other members for the length of one call.
pub(crate) struct Call<'a> {
    task: Task<'a>,
    barrier: Barrier,
    /// Members of the call once the caller has seen who came; until then 0, and those who came wait.
    count: AtomicUsize,
    /// The panic that came first.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(task: Task<'a>) -> Self {
        Call { task, barrier: Barrier::new(1), count: AtomicUsize::new(0), panic: Mutex::new(None) }
    }

    /// Runs member `id` of `count`; a panic breaks the barrier so that nobody waits for it.
    pub(crate) fn join(&self, id: usize, count: usize) {
        // All members store the same number.
        self.barrier.count.store(count, Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _mode = FlushDenormals::new();
            (self.task)(&Member { id, count, barrier: &self.barrier });
        }));
        if let Err(panic) = outcome {
            if !panic.is::<Broken>()
                && let Ok(mut first) = self.panic.lock()
            {
                first.get_or_insert(panic);
            }
            self.barrier.broken.store(true, Relaxed);
        }
    }

    /// Lets a panic of any member out, once all are through.
    pub(crate) fn finish(self) {
        if let Some(panic) = self.panic.into_inner().ok().flatten() {
            resume_unwind(panic);
        }
        assert!(!self.barrier.broken.load(Relaxed), "another member of this call panicked");
    }
}

/// A worker is idle, has been offered a call, or has taken it.
const IDLE: usize = 0;
const OFFERED: usize = 1;
const TAKEN: usize = 2;

struct Slot {
    state: AtomicUsize,
    /// The place in the call, known once the caller has seen who came.
    id: AtomicUsize,
    call: UnsafeCell<*const Call<'static>>,
}
// SAFETY: `call` is written by the holder of the team's lock while the slot is idle, and read by the worker that took the
// offer, whose exchange of `state` orders the two.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

struct Worker {
    slot: Arc<Slot>,
    thread: Thread,
}

fn serve(slot: &Slot) {
    loop {
        let mut turns = 0;
        while slot.state.compare_exchange(OFFERED, TAKEN, AcqRel, Relaxed).is_err() {
            turns += 1;
            if turns < SPIN_IDLE { std::hint::spin_loop() } else { std::thread::park() }
        }
        // SAFETY: the caller keeps the call alive until every worker that took it is idle again.
        let call = unsafe { &**slot.call.get() };
        let mut turns = 0u32;
        while call.count.load(Acquire) == 0 {
            turns = turns.saturating_add(1);
            if turns < SPIN_BARRIER { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        call.join(slot.id.load(Relaxed), call.count.load(Relaxed));
        slot.state.store(IDLE, Release);
    }
}

struct Team {
    process: u32,
    workers: Vec<Worker>,
}

static TEAM: Mutex<Option<Team>> = Mutex::new(None);

/// Runs `f` on up to `threads` members; returns when all are through. Panics of any member come out here.
pub fn run(threads: usize, f: impl Fn(&Member<'_>) + Sync) {
    // More members than cores would wait for each other at every barrier. (Unit tests want every split.)
    let threads = if cfg!(test) { threads } else { threads.min(available()) };
    if threads > 1 && openmp::run(threads, &f) {
        return;
    }
    if threads > 1 {
        // Busy, or left locked by a fork: alone. A panic in an earlier call left the team itself intact.
        let team = match TEAM.try_lock() {
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            other => other.ok(),
        };
        if let Some(mut team) = team {
            let workers = hire(&mut team, threads - 1);
            if !workers.is_empty() {
                return together(workers, &f);
            }
        }
    }
    Member::alone(|member| f(member));
}

fn hire(team: &mut Option<Team>, wanted: usize) -> &[Worker] {
    let process = std::process::id();
    if let Some(old) = team.take_if(|team| team.process != process) {
        // The threads exist only in the parent: nothing to join, nothing to wake.
        std::mem::forget(old);
    }
    let team = team.get_or_insert_with(|| Team { process, workers: Vec::new() });
    while team.workers.len() < wanted {
        let call = UnsafeCell::new(std::ptr::null());
        let slot = Arc::new(Slot { state: AtomicUsize::new(IDLE), id: AtomicUsize::new(0), call });
        let (own, name) = (slot.clone(), format!("isometry-{}", team.workers.len() + 1));
        match std::thread::Builder::new().name(name).spawn(move || serve(&own)) {
            Ok(handle) => team.workers.push(Worker { slot, thread: handle.thread().clone() }),
            Err(_) => break, // no more threads to be had: fewer members give the same result
        }
    }
    &team.workers[..wanted.min(team.workers.len())]
}

/// Offers the call, waits a moment for those who are awake or wake up, and starts with those who came. A worker that a busy
/// machine does not let run would otherwise hold up every barrier for a time slice.
fn together(workers: &[Worker], task: Task<'_>) {
    let call = Call::new(task);
    let shown = (&raw const call).cast::<Call<'static>>();
    for worker in workers {
        // SAFETY: the worker is idle and this thread holds the team's lock.
        unsafe { *worker.slot.call.get() = shown };
        worker.slot.state.store(OFFERED, Release);
        worker.thread.unpark();
    }
    let came = |worker: &&Worker| worker.slot.state.load(Acquire) == TAKEN;
    for _ in 0..PATIENCE {
        if workers.iter().all(|worker| came(&worker)) {
            break;
        }
        std::hint::spin_loop();
    }
    let take_back =
        |worker: &&Worker| worker.slot.state.compare_exchange(OFFERED, IDLE, AcqRel, Acquire).is_err();
    let present: Vec<&Worker> = workers.iter().filter(take_back).collect();
    for (place, worker) in present.iter().enumerate() {
        worker.slot.id.store(place + 1, Relaxed);
    }
    call.count.store(present.len() + 1, Release);
    call.join(0, present.len() + 1);
    for worker in present {
        let mut turns = 0u32;
        while worker.slot.state.load(Acquire) != IDLE {
            turns = turns.saturating_add(1);
            if turns < SPIN_BARRIER { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
    call.finish();
}

/// How many threads this machine lets this process have (affinity and cgroup quotas included).
pub fn available() -> usize {
    // Asked once: the answer is read from files of the system.
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Members worth entering for about `work` multiply-adds: the second thread gains nothing below some 10 us of work.
pub fn worth(threads: usize, work: usize) -> usize {
    threads.min(work / 400_000 + 1).max(1)
}

/// A raw pointer that members may share; each writes its own part.
pub struct Shared<T>(pub *mut T);
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}
// SAFETY: whoever dereferences it vouches for disjoint parts.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    /// The pointer `offset` elements on.
    #[inline(always)]
    pub fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

/// Runs `f` with the denormal numbers that the members of a call do without: for libraries whose arithmetic needs them.
pub fn with_denormals<R>(f: impl FnOnce() -> R) -> R {
    let _mode = FlushDenormals::set(false);
    f()
}

/// Flushes denormal operands and results to zero while it lives (or not), then restores the mode it found.
///
/// The compiler knows nothing of the mode and might move arithmetic across its change: what computes is kept behind calls
/// that it does not see through (a task by its pointer, a kernel by its `target_feature`), and a test looks at the result.
struct FlushDenormals(u64);

impl FlushDenormals {
    fn new() -> Self {
        Self::set(true)
    }
}

#[cfg(target_arch = "x86_64")]
impl FlushDenormals {
    fn set(flush: bool) -> Self {
        let mut mode = 0u32;
        // SAFETY: stores and loads the control register of vector arithmetic; only the bits FTZ and DAZ change.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack)) };
        let flushed = if flush { mode | 0x8040 } else { mode & !0x8040 };
        // SAFETY: as above.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const flushed, options(nostack)) };
        FlushDenormals(mode.into())
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for FlushDenormals {
    fn drop(&mut self) {
        let mode = self.0 as u32;
        // SAFETY: restores the register that `new` found.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
impl FlushDenormals {
    fn set(flush: bool) -> Self {
        let mode: u64;
        // SAFETY: reads and writes the control register of vector arithmetic; only the bit FZ changes.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack));
            let flushed = if flush { mode | 1 << 24 } else { mode & !(1 << 24) };
            std::arch::asm!("msr fpcr, {}", in(reg) flushed, options(nomem, nostack));
        }
        FlushDenormals(mode)
    }
}

#[cfg(target_arch = "aarch64")]
impl Drop for FlushDenormals {
    fn drop(&mut self) {
        // SAFETY: restores the register that `new` found.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) self.0, options(nomem, nostack)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl FlushDenormals {
    fn set(_flush: bool) -> Self {
        FlushDenormals(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_runs_once_and_barriers_order_them() {
        for threads in [1, 2, 3, 5] {
            let (first, second) = (AtomicUsize::new(0), AtomicUsize::new(0));
            run(threads, |member| {
                first.fetch_add(1, Relaxed);
                member.barrier();
                assert_eq!(first.load(Relaxed), member.count);
                second.fetch_add(member.id + 1, Relaxed);
            });
            let n = first.load(Relaxed);
            // A call starts with the workers that came in time.
            assert!((1..=threads).contains(&n));
            assert_eq!(second.load(Relaxed), n * (n + 1) / 2);
        }
    }

    #[test]
    fn shares_cover_everything_once() {
        for (n, quantum, count) in [(0, 4, 3), (10, 4, 3), (33, 16, 2), (5, 1, 8)] {
            let barrier = Barrier::new(1);
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
        // Other tests use the team too: a call that found it busy ran alone and proves nothing.
        let mut proven = [false; 2];
        for round in 0..100_000 {
            let guilty = round % 2;
            let members = AtomicUsize::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                run(2, |member| {
                    members.fetch_max(member.count, Relaxed);
                    assert!(member.id != guilty, "meant to happen");
                    member.barrier();
                });
            }));
            if members.load(Relaxed) == 2 {
                let panic = outcome.expect_err("the panic of a member was lost");
                assert_eq!(panic.downcast_ref(), Some(&"meant to happen"), "the panic of member {guilty}");
                proven[guilty] = true;
            }
            if proven == [true; 2] {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(proven, [true; 2]);
        let ran = AtomicUsize::new(0);
        run(2, |_| {
            ran.fetch_add(1, Relaxed);
        });
        assert!(ran.load(Relaxed) >= 1);
    }

    #[test]
    fn callers_at_the_same_time_all_finish() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let sum = AtomicUsize::new(0);
                        run(2, |member| {
                            for i in member.share(100, 1) {
                                sum.fetch_add(i, Relaxed);
                            }
                            member.barrier();
                        });
                        assert_eq!(sum.load(Relaxed), 4950);
                    }
                });
            }
        });
    }

    #[test]
    fn denormals_are_flushed_inside_only() {
        let tiny = std::hint::black_box(f64::MIN_POSITIVE);
        run(1, |_| {
            assert_eq!(std::hint::black_box(tiny) / 4.0, 0.0);
            let positive = || std::hint::black_box(std::hint::black_box(tiny) / 4.0 > 0.0);
            assert!(with_denormals(positive));
            assert_eq!(std::hint::black_box(tiny) / 4.0, 0.0);
        });
        assert!(std::hint::black_box(tiny) / 4.0 > 0.0);
    }
}
