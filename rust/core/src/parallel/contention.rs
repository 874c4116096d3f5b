//! Fewer threads while other processes use the cores.
//!
//! A call ends with its last member. If other processes compete for the cores, some member is always preempted, for time
//! slices of some milliseconds. Results do not depend on the number of members, so the team then uses fewer threads: half
//! as many if over [`WINDOW`] of long calls the most delayed member was preempted for a third of the time. After a pause,
//! the next calls try twice as many again. The pause doubles with every trial that fails.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Only calls at least this long are measured: reading a thread's processor time is a system call.
const LONG: Duration = Duration::from_millis(1);
/// Calls after a long one whose members read it.
const WATCHED: u64 = 16;
/// The time of measured calls on which a decision rests: several time slices, so that a single interruption changes nothing.
const WINDOW: Duration = Duration::from_millis(30);
/// Milliseconds until more threads are tried, at first and at most.
const PAUSES: (u64, u64) = (100, 3200);

/// The contention for cores, as measured. Concurrent callers may overwrite each other's values; later calls correct them.
pub(super) struct Contention {
    /// Calls left to measure.
    watch: AtomicU64,
    /// Total time of the calls measured since the last decision, and the time preempted, in nanoseconds.
    elapsed: AtomicU64,
    lost: AtomicU64,
    /// Threads are divided by two to this power.
    level: AtomicU64,
    /// When more threads are tried, and the pause before it, in milliseconds.
    until: AtomicU64,
    pause: AtomicU64,
}

/// That of this process with all others.
pub(super) static CONTENTION: Contention = Contention::new();

impl Contention {
    pub const fn new() -> Self {
        Contention {
            watch: AtomicU64::new(0),
            elapsed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            level: AtomicU64::new(0),
            until: AtomicU64::new(0),
            pause: AtomicU64::new(PAUSES.0),
        }
    }

    /// The number of threads, of those requested, that a call at this time (in milliseconds) should use; at least 1.
    pub fn limit(&self, threads: usize, now: impl FnOnce() -> u64) -> usize {
        if self.level.load(Relaxed) == 0 {
            return threads;
        }
        threads.checked_shr(self.level_at(now()).try_into().unwrap_or(u32::MAX)).unwrap_or(0).max(1)
    }

    /// The level at this time: one lower once the pause is over, and one lower again with every longest pause without a
    /// decision, since calls of few threads are not measured once they are limited to one.
    fn level_at(&self, now: u64) -> u64 {
        let (level, until) = (self.level.load(Relaxed), self.until.load(Relaxed));
        let left = until.saturating_sub(now);
        if left > 0 && left <= PAUSES.1 {
            return level;
        }
        // also if the clock was set back
        level.saturating_sub(1 + now.saturating_sub(until) / PAUSES.1)
    }

    /// Whether the members of the next call are to measure their processor time.
    fn watches(&self) -> bool {
        let left = self.watch.load(Relaxed);
        if left > 0 {
            self.watch.store(left - 1, Relaxed);
        }
        left > 0
    }

    /// Records a call; `lost` is the longest time that a member was preempted, if measured.
    fn record(&self, elapsed: Duration, lost: Option<Duration>, now: impl FnOnce() -> u64) {
        if elapsed < LONG {
            return;
        }
        self.watch.store(WATCHED, Relaxed);
        let Some(lost) = lost else { return };
        let add = |sum: &AtomicU64, time| sum.fetch_add(nanoseconds(time), Relaxed) + nanoseconds(time);
        let (lost, elapsed) = (add(&self.lost, lost), add(&self.elapsed, elapsed));
        if elapsed >= nanoseconds(WINDOW) {
            self.lost.store(0, Relaxed);
            self.elapsed.store(0, Relaxed);
            self.decide(lost > elapsed / 3, now());
        }
    }

    fn decide(&self, contended: bool, now: u64) {
        let (before, level) = (self.level.load(Relaxed), self.level_at(now));
        let trial = level < before;
        if contended {
            self.level.store(level + 1, Relaxed);
            self.rest(if trial { (2 * self.pause.load(Relaxed)).min(PAUSES.1) } else { PAUSES.0 }, now);
        } else if trial {
            self.level.store(level, Relaxed);
            self.rest(PAUSES.0, now);
        }
    }

    fn rest(&self, pause: u64, now: u64) {
        self.pause.store(pause, Relaxed);
        self.until.store(now + pause, Relaxed);
    }
}

/// The times of one call.
pub(super) struct Watch {
    start: Instant,
    watched: bool,
    /// The longest time that a member was preempted, in nanoseconds.
    lost: AtomicU64,
}

impl Watch {
    /// Of a call that begins now.
    pub fn new(contention: &Contention) -> Self {
        Watch { start: Instant::now(), watched: contention.watches(), lost: AtomicU64::new(0) }
    }

    /// Runs a member's work. The time preempted counts from the start of the call, so that a late start is included.
    pub fn member(&self, work: impl FnOnce()) {
        let before = self.watched.then(processor_time).flatten();
        work();
        if let (Some(before), Some(after)) = (before, before.and_then(|_| processor_time())) {
            let lost = self.start.elapsed().saturating_sub(after.saturating_sub(before));
            self.lost.fetch_max(nanoseconds(lost), Relaxed);
        }
    }

    /// Records the call, which ends now.
    pub fn end(self, contention: &Contention) {
        let lost = self.watched.then(|| Duration::from_nanos(self.lost.into_inner()));
        contention.record(self.start.elapsed(), lost, milliseconds);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// The system's time in milliseconds. (A monotonic clock has no origin but one behind a lock, which a fork could leave
/// locked.)
pub(super) fn milliseconds() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |time| time.as_millis() as u64)
}

/// The time for which this thread has had a core. None on systems that do not report it to the microsecond.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", target_os = "freebsd"))]
fn processor_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", target_os = "freebsd")))]
fn processor_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(900);
    const CALL: Duration = Duration::from_millis(15); // two fill the window

    #[test]
    fn contended_calls_halve_the_threads_and_pauses_double() {
        let contention = Contention::new();
        let limit = |now| [16, 2, 1].map(|threads| contention.limit(threads, || now));
        let two = |lost: [u64; 2], now| {
            for lost in lost {
                contention.record(CALL, Some(Duration::from_millis(lost)), || now);
            }
        };
        let (fine, contended) = ([8, 1], [3, 8]);
        assert_eq!(limit(0), [16, 2, 1]);
        two(fine, 0);
        assert_eq!(limit(0), [16, 2, 1]);
        two(contended, 0);
        assert_eq!((limit(0), limit(99)), ([8, 1, 1], [8, 1, 1]));
        two(fine, 20);
        assert_eq!(limit(99), [8, 1, 1], "not before the pause is over");
        two(contended, 20);
        assert_eq!((limit(119), limit(120)), ([4, 1, 1], [8, 1, 1]), "a trial after the pause");
        let mut start = 120;
        for pause in [200, 400, 800, 1600, 3200, 3200] {
            two(contended, start);
            assert_eq!((limit(start + pause - 1), limit(start + pause)), ([4, 1, 1], [8, 1, 1]));
            start += pause;
        }
        two(fine, start);
        assert_eq!((limit(start + 99), limit(start + 100)), ([8, 1, 1], [16, 2, 1]));
        two(fine, start + 100);
        assert_eq!(limit(start + 100), [16, 2, 1]);
        two(contended, 20_000);
        assert_eq!((limit(20_050), limit(10_000)), ([8, 1, 1], [16, 2, 1]), "a clock that was set back");
    }

    #[test]
    fn calls_of_few_threads_return_to_all_of_them_from_a_level_of_larger_calls() {
        let contention = Contention::new();
        for _ in 0..6 {
            contention.record(CALL, Some(CALL), || 0);
        }
        let limit = |now| [16, 2].map(|threads| contention.limit(threads, || now));
        assert_eq!((limit(99), limit(100)), ([2, 1], [4, 1]));
        assert_eq!((limit(3299), limit(3300), limit(6500)), ([4, 1], [8, 1], [16, 2]));
    }

    #[test]
    fn only_calls_after_a_long_one_are_measured() {
        let contention = Contention::new();
        contention.record(SHORT, None, || 0);
        assert!(!contention.watches());
        contention.record(CALL, None, || 0);
        assert_eq!((0..100).filter(|_| contention.watches()).count(), WATCHED as usize);
        for _ in 0..99 {
            contention.record(SHORT, Some(SHORT), || 0);
            contention.record(CALL, None, || 0);
        }
        assert_eq!(contention.limit(2, || 0), 2);
    }

    /// A sleeping thread has no core, like a preempted one.
    #[test]
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn a_preempted_member_is_recorded() {
        let contention = Contention::new();
        let call = || {
            let watch = Watch::new(&contention);
            watch.member(|| std::thread::sleep(Duration::from_millis(4)));
            watch.end(&contention);
        };
        call();
        assert_eq!(contention.elapsed.load(Relaxed), 0, "the first long call is not measured");
        call();
        let lost = contention.lost.load(Relaxed);
        assert!((3_000_000..=contention.elapsed.load(Relaxed)).contains(&lost), "{lost} ns");
        (0..8).for_each(|_| call());
        assert_eq!(contention.level.load(Relaxed), 1);
    }
}
