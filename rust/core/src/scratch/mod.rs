//! Scratch memory: one allocation per call, carved into regions by a function that is written once and runs twice, first
//! to measure, then on memory of exactly that size. So reserved and used sizes agree, and a region that does not fit is
//! detected in release builds too.
//!
//! ```text
//! let scratch = Scratch::new(|arena| Places { e: arena.take(&[n]), own: arena.regions(threads, &[k, m]) })?;
//! ```
//!
//! Memory is allocated before threads start, so that a failed allocation is [`Error::OutOfMemory`] and
//! nothing has to unwind. Regions are uninitialised: raw pointers and lengths, never `&[T]`. Each starts at a
//! cache line, so regions of members and consecutive arrays share no line.
//!
//! A part that is carved later (in a recursion; one slab per member present) is reserved as a [`Frame`], measured by the
//! function that carves it.
//!
//! While [`guard`] is on, as in unit tests, memory starts as NaN patterns, and each region is followed by a guard line
//! that is checked when the memory is freed.

mod arena;
mod region;
#[cfg(test)]
mod tests;
mod watch;

pub use arena::Arena;
pub(crate) use arena::{Frame, Frames};
use isometry_kernels::scalar::Plain;
pub(crate) use region::{Region, Regions};

use crate::error::{Error, Result};
use crate::parallel;
use region::LINE;
use std::alloc::{Layout, alloc, dealloc};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use watch::{FRESH, Guard, Watch};

static GUARDED: AtomicBool = AtomicBool::new(cfg!(any(test, debug_assertions)));

/// Switches guarding on or off for the scratch of later calls.
pub fn guard(on: bool) {
    GUARDED.store(on, Relaxed);
}

/// Members that memory is reserved for: at most as many as the machine runs at a time. (Unit tests cover every split.)
#[inline]
pub fn most(threads: usize) -> usize {
    if cfg!(test) { threads } else { threads.min(parallel::available()) }.max(1)
}

/// The memory of one call, carved into places.
pub struct Scratch<P> {
    places: P,
    _memory: Memory,
}

impl<P> Scratch<P> {
    /// Measures, allocates, carves.
    ///
    /// # Errors
    /// If memory ends.
    pub fn new(carve: impl Fn(&mut Arena) -> P) -> Result<Self> {
        let guarded = GUARDED.load(Relaxed);
        let measured = Arena::measured(guarded, &carve);
        let memory = Memory::new(measured.bytes(), guarded)?;
        let guard = memory.watch.map_or(Guard::Off, Guard::On);
        let places = carve(&mut measured.again(memory.start, guard));
        Ok(Scratch { places, _memory: memory })
    }
}

impl<P> Deref for Scratch<P> {
    type Target = P;
    fn deref(&self) -> &P {
        &self.places
    }
}

struct Memory {
    start: *mut u8,
    layout: Layout,
    watch: Option<&'static Watch>,
}
// SAFETY: the memory is owned; the watch is behind a lock.
unsafe impl Send for Memory {}
// SAFETY: shared references give no access to the memory.
unsafe impl Sync for Memory {}

impl Memory {
    #[inline]
    fn new(bytes: usize, guarded: bool) -> Result<Self> {
        let lack = Error::OutOfMemory { bytes };
        let Ok(layout) = Layout::from_size_align(bytes, LINE) else { return Err(lack) };
        let watch = guarded.then(Watch::new);
        if bytes == 0 {
            return Ok(Memory { start: std::ptr::without_provenance_mut(LINE), layout, watch });
        }
        // SAFETY: the layout has a positive size.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return Err(lack);
        }
        if guarded {
            // SAFETY: the allocation has `bytes` bytes.
            unsafe { start.write_bytes(FRESH, bytes) };
        }
        Ok(Memory { start, layout, watch })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let intact = self.watch.is_none_or(Watch::close);
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.start, self.layout) };
        }
        assert!(
            intact || std::thread::panicking(),
            "something was written behind a region of scratch memory"
        );
    }
}
