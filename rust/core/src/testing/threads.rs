//! The same bits on any number of threads.

use crate::parallel;
use std::time::{Duration, Instant};

/// The numbers of threads.
const THREADS: [usize; 5] = [2, 3, 8, 16, 64];
/// Calls with each of them, until threads are seen to share one.
const TRIES: usize = 3;

/// A call with any number of threads returns what it returns with one, and more than one thread is seen to share it: a call that
/// finds the team busy runs alone, and proves nothing.
#[track_caller]
pub fn same_bits<R: PartialEq>(what: &str, call: impl Fn(usize) -> R) {
    let (own, start, mut shared) = (call(1), Instant::now(), false);
    parallel::members();
    while !shared {
        for threads in THREADS {
            for _ in 0..TRIES {
                assert!(call(threads) == own, "{what}: {threads} threads differ");
                if parallel::members() > 1 {
                    shared = true;
                    break;
                }
                std::thread::yield_now();
            }
        }
        assert!(shared || start.elapsed() < Duration::from_secs(60), "{what}: threads never share it");
    }
}
