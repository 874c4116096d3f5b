//! Memory of the system.

use super::region::LINE;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ops::RangeInclusive;

/// Bytes that are pages of their own. glibc keeps what is freed of such a size, once for each of many threads.
pub(super) const MAPPED: RangeInclusive<usize> = (1 << 17) + 1..=8 << 20;

/// Uninitialised or zeroed memory, from a cache line on.
pub struct Allocated {
    start: *mut u8,
    layout: Layout,
}
// SAFETY: the memory is owned.
unsafe impl Send for Allocated {}
// SAFETY: shared references give no access to the memory.
unsafe impl Sync for Allocated {}

impl Allocated {
    /// So many bytes, more than none; None if memory ends.
    pub fn new(bytes: usize, zeroed: bool) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, LINE).ok()?;
        #[cfg(all(target_os = "linux", not(miri)))]
        if MAPPED.contains(&bytes) {
            let (flags, access) =
                (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
            // SAFETY: new pages at any address.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
            return (start != libc::MAP_FAILED).then_some(Allocated { start: start.cast(), layout });
        }
        // SAFETY: the layout has a positive size.
        let start = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        (!start.is_null()).then_some(Allocated { start, layout })
    }

    /// Where it begins.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its size.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        #[cfg(all(target_os = "linux", not(miri)))]
        if MAPPED.contains(&self.layout.size()) {
            // SAFETY: mapped with this size; nobody else has the pages.
            unsafe { libc::munmap(self.start.cast(), self.layout.size()) };
            return;
        }
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}
