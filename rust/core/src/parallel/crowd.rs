//! Fewer threads while other processes use the cores.
//!
//! A call ends with its last member. On a busy machine one of the members always waits for a core, for time slices of some
//! milliseconds, so that a call on two threads can take ten times as long as on one. Results do not depend on the number
//! of members, so calls then take fewer threads: half as many if over [`WINDOW`] of long calls some member was without a
//! core for a third of the time, and after a pause twice as many again on trial. The pause doubles with every trial that
//! fails.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Only calls at least this long are measured: reading a thread's processor time is a system call.
const LONG: Duration = Duration::from_millis(1);
/// Calls after a long one whose members read it.
const WATCHED: u64 = 16;
/// The time of measured calls that is judged at once: several time slices, so that a single interruption is not a crowd.
const WINDOW: Duration = Duration::from_millis(30);
/// Milliseconds until more threads are tried, at first and at most.
const PAUSES: (u64, u64) = (100, 3200);

/// What is known of the other users of the cores. Concurrent callers may overwrite each other's findings, which the next
/// long calls correct.
pub(super) struct Crowd {
    /// Calls left to measure.
    watch: AtomicU64,
    /// Nanoseconds of the measured calls since the last judgement, and of these without a core.
    elapsed: AtomicU64,
    lost: AtomicU64,
    /// Threads are divided by two to this power.
    level: AtomicU64,
    /// When more threads are tried, and the pause before it, in milliseconds.
    until: AtomicU64,
    pause: AtomicU64,
}

/// The crowd around this process.
pub(super) static CROWD: Crowd = Crowd::new();

impl Crowd {
    pub const fn new() -> Self {
        Crowd {
            watch: AtomicU64::new(0),
            elapsed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            level: AtomicU64::new(0),
            until: AtomicU64::new(0),
            pause: AtomicU64::new(PAUSES.0),
        }
    }

    /// The number of threads, of so many, that a call at this time (in milliseconds) should use; at least 1.
    pub fn limit(&self, threads: usize, now: impl FnOnce() -> u64) -> usize {
        let level = self.level.load(Relaxed);
        if level == 0 {
            return threads;
        }
        let level = level - u64::from(self.rested(now()));
        threads.checked_shr(level.try_into().unwrap_or(u32::MAX)).unwrap_or(0).max(1)
    }

    /// Whether the members of the next call are to measure their processor time.
    fn watches(&self) -> bool {
        let left = self.watch.load(Relaxed);
        if left > 0 {
            self.watch.store(left - 1, Relaxed);
        }
        left > 0
    }

    /// Takes note of a call that took so long; `lost` is the longest time that a member was without a core, if measured.
    fn note(&self, elapsed: Duration, lost: Option<Duration>, now: impl FnOnce() -> u64) {
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
            self.judge(lost > elapsed / 3, now());
        }
    }

    fn judge(&self, crowded: bool, now: u64) {
        let level = self.level.load(Relaxed);
        let trial = level > 0 && self.rested(now);
        if crowded {
            self.level.store(if trial { level } else { level + 1 }, Relaxed);
            self.rest(if trial { (2 * self.pause.load(Relaxed)).min(PAUSES.1) } else { PAUSES.0 }, now);
        } else if trial {
            self.level.store(level - 1, Relaxed);
            self.rest(PAUSES.0, now);
        }
    }

    /// Whether the pause is over, also if the clock was set back meanwhile.
    fn rested(&self, now: u64) -> bool {
        let left = self.until.load(Relaxed).saturating_sub(now);
        left == 0 || left > PAUSES.1
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
    /// Nanoseconds that a member was without a core, the most of all.
    lost: AtomicU64,
}

impl Watch {
    /// Of a call that begins now.
    pub fn new(crowd: &Crowd) -> Self {
        Watch { start: Instant::now(), watched: crowd.watches(), lost: AtomicU64::new(0) }
    }

    /// Runs a member's work. What it was without a core counts from the start of the call: it may have come late.
    pub fn member(&self, work: impl FnOnce()) {
        let before = self.watched.then(processor_time).flatten();
        work();
        if let (Some(before), Some(after)) = (before, before.and_then(|_| processor_time())) {
            let lost = self.start.elapsed().saturating_sub(after.saturating_sub(before));
            self.lost.fetch_max(nanoseconds(lost), Relaxed);
        }
    }

    /// The end of the call.
    pub fn end(self, crowd: &Crowd) {
        let lost = self.watched.then(|| Duration::from_nanos(self.lost.into_inner()));
        crowd.note(self.start.elapsed(), lost, milliseconds);
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

/// The time for which this thread has had a core. None where the system does not say it to the microsecond.
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
    const CALL: Duration = Duration::from_millis(15); // two are judged

    #[test]
    fn crowded_calls_halve_the_threads_and_pauses_double() {
        let crowd = Crowd::new();
        let limit = |now| [16, 2, 1].map(|threads| crowd.limit(threads, || now));
        let two = |lost: [u64; 2], now| {
            for lost in lost {
                crowd.note(CALL, Some(Duration::from_millis(lost)), || now);
            }
        };
        let (fine, crowded) = ([8, 1], [3, 8]);
        assert_eq!(limit(0), [16, 2, 1]);
        two(fine, 0);
        assert_eq!(limit(0), [16, 2, 1]);
        two(crowded, 0);
        assert_eq!((limit(0), limit(99)), ([8, 1, 1], [8, 1, 1]));
        two(fine, 20);
        assert_eq!(limit(99), [8, 1, 1], "not before the pause is over");
        two(crowded, 20);
        assert_eq!((limit(119), limit(120)), ([4, 1, 1], [8, 1, 1]), "a trial after the pause");
        let mut start = 120;
        for pause in [200, 400, 800, 1600, 3200, 3200] {
            two(crowded, start);
            assert_eq!((limit(start + pause - 1), limit(start + pause)), ([4, 1, 1], [8, 1, 1]));
            start += pause;
        }
        two(fine, start);
        assert_eq!((limit(start + 99), limit(start + 100)), ([8, 1, 1], [16, 2, 1]));
        two(fine, start + 100);
        assert_eq!(limit(start + 100), [16, 2, 1]);
        two(crowded, 20_000);
        assert_eq!((limit(20_050), limit(10_000)), ([8, 1, 1], [16, 2, 1]), "a clock that was set back");
    }

    #[test]
    fn only_calls_after_a_long_one_are_measured() {
        let crowd = Crowd::new();
        crowd.note(SHORT, None, || 0);
        assert!(!crowd.watches());
        crowd.note(CALL, None, || 0);
        assert_eq!((0..100).filter(|_| crowd.watches()).count(), WATCHED as usize);
        for _ in 0..99 {
            crowd.note(SHORT, Some(SHORT), || 0);
            crowd.note(CALL, None, || 0);
        }
        assert_eq!(crowd.limit(2, || 0), 2);
    }

    #[test]
    fn one_thread_is_left_however_long_it_is_crowded() {
        let crowd = Crowd::new();
        for _ in 0..300 {
            crowd.note(CALL, Some(CALL), || 0);
        }
        assert_eq!(crowd.limit(1024, || 0), 1);
    }

    /// A thread that sleeps is without a core, like one that others displace.
    #[test]
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn a_member_without_a_core_is_noted() {
        let crowd = Crowd::new();
        let call = || {
            let watch = Watch::new(&crowd);
            watch.member(|| std::thread::sleep(Duration::from_millis(4)));
            watch.end(&crowd);
        };
        call();
        assert_eq!(crowd.elapsed.load(Relaxed), 0, "the first long call is not measured");
        call();
        let lost = crowd.lost.load(Relaxed);
        assert!((3_000_000..=crowd.elapsed.load(Relaxed)).contains(&lost), "{lost} ns");
        (0..8).for_each(|_| call());
        assert_eq!(crowd.level.load(Relaxed), 1);
    }
}
