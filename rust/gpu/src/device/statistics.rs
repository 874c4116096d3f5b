//! What this process has asked of the GPU: counts of its calls, and bytes.

use super::current;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A count per [`What`].
#[derive(Debug, Default)]
pub(super) struct Counts([AtomicU64; WHAT.len()]);

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Dispatches,
    /// Between arrays of the device.
    Copies,
    Submissions,
    /// Of the host for the device.
    Waits,
    /// Bytes.
    Uploaded,
    /// Bytes.
    Downloaded,
}

const WHAT: [(What, &str); 6] = [
    (What::Dispatches, "dispatches"),
    (What::Copies, "copies"),
    (What::Submissions, "submissions"),
    (What::Waits, "waits"),
    (What::Uploaded, "uploaded"),
    (What::Downloaded, "downloaded"),
];

impl Counts {
    pub fn add(&self, what: What, count: usize) {
        self.0[what as usize].fetch_add(count as u64, Relaxed);
    }
}

/// The counts of this process so far, by name: dispatches, copies between arrays of the device, submissions, waits, and the bytes
/// uploaded and downloaded. A forked child begins at 0.
pub fn statistics() -> [(&'static str, u64); WHAT.len()] {
    let counts = current::counts();
    WHAT.map(|(what, name)| (name, counts.0[what as usize].load(Relaxed)))
}
