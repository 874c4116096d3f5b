//! Allocated memory, of which every thread keeps one block when it is freed.

use super::region::LINE;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;

/// Bytes that a thread keeps at the most.
const KEPT: usize = 8 << 20;

thread_local! {
    static LAST: Cell<Option<Allocated>> = const { Cell::new(None) };
}

/// Uninitialised memory, from a cache line on.
pub(super) struct Block(Option<Allocated>);

impl Block {
    /// At least so many bytes, those that this thread has kept if they suffice; None if memory ends.
    #[inline]
    pub(super) fn new(bytes: usize) -> Option<Self> {
        if bytes == 0 {
            return Some(Block(None));
        }
        // What is too small makes way for what will be kept in its place.
        let kept = LAST.try_with(Cell::take).ok().flatten().filter(|kept| kept.layout.size() >= bytes);
        kept.or_else(|| Allocated::new(bytes)).map(|allocated| Block(Some(allocated)))
    }

    /// Where it begins.
    #[inline]
    pub(super) fn start(&self) -> *mut u8 {
        self.0.as_ref().map_or(std::ptr::without_provenance_mut(LINE), |allocated| allocated.start)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(allocated) = self.0.take().filter(|allocated| allocated.layout.size() <= KEPT) {
            // none in a thread that ends
            let _ = LAST.try_with(|last| {
                let other = last.take();
                let larger = |other: &Allocated| other.layout.size() > allocated.layout.size();
                last.set(other.filter(larger).or(Some(allocated)));
            });
        }
    }
}

struct Allocated {
    start: *mut u8,
    layout: Layout,
}
// SAFETY: the memory is owned.
unsafe impl Send for Allocated {}
// SAFETY: shared references give no access to the memory.
unsafe impl Sync for Allocated {}

impl Allocated {
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, LINE).ok()?;
        // SAFETY: the layout has a positive size.
        let start = unsafe { alloc(layout) };
        (!start.is_null()).then_some(Allocated { start, layout })
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(sizes: &[usize]) -> Vec<usize> {
        sizes.iter().map(|&bytes| Block::new(bytes).unwrap().start().addr()).collect()
    }

    #[test]
    fn one_block_is_kept() {
        std::thread::spawn(|| {
            let [first, smaller, ..] = starts(&[5000, 300, 5000])[..] else { unreachable!() };
            assert_eq!(first, smaller);
            // two at a time are two, and the larger one is kept
            let (one, two) = (Block::new(400).unwrap(), Block::new(9000).unwrap());
            assert_ne!(one.start(), two.start());
            let larger = two.start().addr();
            drop(two);
            drop(one);
            assert_eq!(starts(&[9000]), [larger]);
            // what is too large is not kept, nor is nothing
            drop(Block::new(KEPT + 1).unwrap());
            assert!(LAST.take().is_none());
            assert_eq!(starts(&[0]), [LINE]);
            assert!(LAST.take().is_none());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn memory_that_ends_is_none() {
        assert!(Block::new(usize::MAX).is_none());
        assert!(Block::new(isize::MAX as usize - 64).is_none());
    }
}
