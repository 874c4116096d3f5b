//! Memory behind regions that nobody may write, while tests want it.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Every byte of guarded memory before it is written: a NaN in every real type.
pub(super) const FRESH: u8 = 0xff;

/// Whether at least a line behind every region is guarded, and who remembers where.
#[derive(Clone, Copy)]
pub(super) enum Guard {
    Off,
    Measured,
    On(&'static Watch),
}

/// What is guarded of a memory; nothing any more once it was given back.
pub(super) struct Watch(Mutex<Option<Vec<Range<*mut u8>>>>);
// SAFETY: what is listed lies in memory that exists, and is touched under the lock alone.
unsafe impl Send for Watch {}
// SAFETY: as above.
unsafe impl Sync for Watch {}

impl Watch {
    /// One that stays, little as it is: whoever cuts memory that is gone is to find it.
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Watch(Mutex::new(Some(Vec::new())))))
    }

    /// A region from `start` to the guarded bytes `behind` takes the place of what stood there. Every member that cuts a frame
    /// comes here with the same regions.
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
        // SAFETY: these bytes of the memory stand behind a region that was cut within it.
        unsafe { behind.start.write_bytes(FRESH, behind.end.addr() - behind.start.addr()) };
        guarded.push(behind);
    }

    /// Before the memory is given back: whether all guarded bytes are what they were.
    pub(super) fn close(&self) -> bool {
        let guarded = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        guarded.iter().flatten().all(is_fresh)
    }
}

/// Whether guarded bytes are what they were at first.
fn is_fresh(bytes: &Range<*mut u8>) -> bool {
    let len = bytes.end.addr() - bytes.start.addr();
    // SAFETY: bytes of memory that is still allocated, all of which have been written.
    (0..len).all(|at| unsafe { bytes.start.add(at).read() } == FRESH)
}
