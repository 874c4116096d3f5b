//! The same bits on any number of threads.

use crate::parallel;
use std::time::{Duration, Instant};

/// The numbers of threads.
const THREADS: [usize; 5] = [2, 3, 8, 16, 64];

/// A call with any number of threads returns what it returns with one, and more than one thread is seen to share it: a call that
/// finds the team busy runs alone, and proves nothing.
#[track_caller]
pub fn same_bits<R: PartialEq>(what: &str, call: impl Fn(usize) -> R) {
    let own = call(1);
    parallel::members();
    for threads in THREADS {
        let start = Instant::now();
        loop {
            assert!(call(threads) == own, "{what}: {threads} threads differ");
            if parallel::members() > 1 {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{what}: {threads} threads never share it");
            std::thread::yield_now();
        }
    }
}
