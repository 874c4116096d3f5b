//! Guard lines after regions, for tests.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Every byte of guarded memory before it is written: NaN in every real type.
pub(super) const FRESH: u8 = 0xff;

/// Whether at least one line after every region is guarded, and the record of these lines.
#[derive(Clone, Copy)]
pub(super) enum Guard {
    Off,
    Measured,
    On(&'static Watch),
}

/// The guarded ranges of a memory; None once it was freed.
pub(super) struct Watch(Mutex<Option<Vec<Range<*mut u8>>>>);
// SAFETY: listed ranges lie in live memory, and are accessed under the lock only.
unsafe impl Send for Watch {}
// SAFETY: listed ranges are accessed under the lock only.
unsafe impl Sync for Watch {}

impl Watch {
    /// Leaked (it is small), so that carving freed memory is detected.
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Watch(Mutex::new(Some(Vec::new())))))
    }

    /// Records a region from `start` to the guard bytes `behind`, replacing records it overlaps. Every member that
    /// carves a frame calls this with the same regions.
    pub(super) fn enter(&self, start: *mut u8, behind: Range<*mut u8>) {
        let mut guarded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let guarded = guarded.as_mut().expect("scratch memory that is in use");
        guarded.retain(|old| {
            let over = *old != behind && start < old.end && old.start < behind.end;
            assert!(!over || is_fresh(old), "something was written behind a region of scratch memory");
            !over
        });
        if guarded.contains(&behind) {
            return;
        }
        // SAFETY: these bytes of the memory follow a region that was carved within it.
        unsafe { behind.start.write_bytes(FRESH, behind.end.addr() - behind.start.addr()) };
        guarded.push(behind);
    }

    /// Called before the memory is freed: whether all guard bytes are intact.
    pub(super) fn close(&self) -> bool {
        let guarded = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        guarded.iter().flatten().all(is_fresh)
    }
}

/// Whether guard bytes are intact.
fn is_fresh(bytes: &Range<*mut u8>) -> bool {
    let len = bytes.end.addr() - bytes.start.addr();
    // SAFETY: the bytes are allocated and initialised.
    (0..len).all(|at| unsafe { bytes.start.add(at).read() } == FRESH)
}
