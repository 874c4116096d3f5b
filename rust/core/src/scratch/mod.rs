//! Scratch memory: one allocation per call, carved into regions by a function that is written once and runs twice, first
//! to measure, then on memory of exactly that size. So reserved and used sizes agree, and a region that does not fit is
//! detected in release builds too.
//!
//! ```text
//! let scratch = Scratch::new(|arena| Places { e: arena.take(&[n]), own: arena.regions(threads, &[k, m]) })?;
//! ```
//!
//! Memory that is freed is kept for later calls, since the allocator takes microseconds for some, and may return it to the system,
//! which clears every page again: of blocks of up to 128 KiB the largest of each thread, and of those of up to 8 MiB as many of the
//! process as are 32 MiB together.
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

mod allocated;
mod arena;
mod block;
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
pub(crate) use block::Block;
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
        let places = carve(&mut measured.again(memory.block.start(), guard));
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
    block: Block,
    watch: Option<&'static Watch>,
}

impl Memory {
    #[inline]
    fn new(bytes: usize, guarded: bool) -> Result<Self> {
        let block = Block::new(bytes).ok_or(Error::OutOfMemory { bytes })?;
        if guarded {
            // SAFETY: the block has so many bytes.
            unsafe { block.start().write_bytes(FRESH, bytes) };
        }
        Ok(Memory { block, watch: guarded.then(Watch::new) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let intact = self.watch.is_none_or(Watch::close);
        assert!(
            intact || std::thread::panicking(),
            "something was written behind a region of scratch memory"
        );
    }
}
