//! The threads that a call may use, and its cancellation.

use crate::error::Result;
use crate::parallel::stoppable;

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
    /// Asked by long recurrences and delta rules between pieces of a fraction of a millisecond, on the thread of the call and in the
    /// floating-point mode of the caller: true ends the call with [`crate::Error::Interrupted`].
    pub cancel: &'a (dyn Fn() -> bool + Sync),
}

/// The answer of a call without cancellation, known by its address.
static NEVER: fn() -> bool = || false;

impl Budget<'static> {
    /// This many threads, without cancellation.
    pub fn of(threads: usize) -> Self {
        Budget { threads, cancel: &NEVER }
    }
}

impl Budget<'_> {
    /// Runs a call that the caller may cancel; one without cancellation is part of the call around it.
    pub(crate) fn stoppable(&self, f: impl FnOnce() -> Result<()>) -> Result<()> {
        if std::ptr::addr_eq(self.cancel, &raw const NEVER) { f() } else { stoppable(self.cancel, f) }
    }
}
