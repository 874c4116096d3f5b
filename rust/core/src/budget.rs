//! The threads that a call may use, and its cancellation.

/// The threads of a call, and the flag that ends a long one.
///
/// ```
/// use isometry_core::Budget;
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
///
/// let stop = AtomicBool::new(false);
/// let budget = Budget { cancel: &|| stop.load(Relaxed), ..Budget::of(2) };
/// stop.store(true, Relaxed); // by another thread: the call returns `Error::Interrupted`
/// assert!((budget.cancel)());
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// At most this many threads, the caller included.
    pub threads: usize,
    /// Asked every few milliseconds by long recurrences and delta rules, in the floating-point mode of the caller: true ends the
    /// call with [`crate::Error::Interrupted`].
    pub cancel: &'a (dyn Fn() -> bool + Sync),
}

impl Budget<'static> {
    /// This many threads, without cancellation.
    pub fn of(threads: usize) -> Self {
        Budget { threads, cancel: &|| false }
    }
}
