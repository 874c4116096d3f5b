//! Allocated memory. Blocks that are freed are kept for later calls: a small one by its thread, large ones by the process.

use super::allocated::{Allocated, MAPPED};
use super::region::LINE;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that a thread keeps at the most, and bytes of a block that the process keeps.
const KEPT: [usize; 2] = [*MAPPED.start() - 1, *MAPPED.end()];
/// Bytes that the process keeps at the most.
const ALL: usize = 32 << 20;

thread_local! {
    static OWN: Cell<Option<Allocated>> = const { Cell::new(None) };
}

/// Never waited for: a fork may leave a place locked, or another thread have it.
static SHARED: [Mutex<Option<Allocated>>; 16] = [const { Mutex::new(None) }; 16];
/// The bytes of its blocks.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Memory from a cache line on.
pub struct Block(Option<Allocated>);

impl Block {
    /// At least `bytes` uninitialised bytes, from a kept block if one is large enough; None if allocation fails.
    #[inline]
    pub(super) fn new(bytes: usize) -> Option<Self> {
        Self::taken(bytes, false)
    }

    /// At least `bytes` bytes, the first `bytes` of them zero. Only large kept blocks are reused: new ones cost page faults.
    pub fn zeroed(bytes: usize) -> Option<Self> {
        Self::taken(bytes, true)
    }

    #[inline]
    fn taken(bytes: usize, zeroed: bool) -> Option<Self> {
        if bytes == 0 {
            return Some(Block(None));
        }
        let suffices = |kept: &mut Allocated| kept.bytes() >= bytes;
        let kept = if bytes <= KEPT[0] && zeroed {
            None
        } else if bytes <= KEPT[0] {
            let taken = |own: &Cell<Option<Allocated>>| {
                let mut kept = own.take();
                let found = kept.take_if(suffices);
                own.set(kept);
                found
            };
            OWN.try_with(taken).ok().flatten()
        } else {
            let kept = SHARED.iter().find_map(|place| place.try_lock().ok()?.take_if(suffices));
            kept.inspect(|kept| {
                BYTES.fetch_sub(kept.bytes(), Relaxed);
                if zeroed {
                    // SAFETY: the block has as many bytes, and nobody else does.
                    unsafe { kept.start().write_bytes(0, bytes) };
                }
            })
        };
        kept.or_else(|| Allocated::new(bytes, zeroed)).map(|allocated| Block(Some(allocated)))
    }

    /// Where it begins.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.0.as_ref().map_or(std::ptr::without_provenance_mut(LINE), |allocated| allocated.start())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(block) = self.0.take() else { return };
        let size = block.bytes();
        if size <= KEPT[0] {
            // not in a thread that ends
            let _ = OWN.try_with(|own| {
                let kept = own.take().filter(|kept| kept.bytes() > size);
                own.set(kept.or(Some(block)));
            });
        } else if size <= KEPT[1] {
            let room = BYTES.fetch_add(size, Relaxed) + size <= ALL;
            let free = |place: &'static Mutex<Option<Allocated>>| {
                place.try_lock().ok().filter(|kept| kept.is_none())
            };
            match SHARED.iter().filter(|_| room).find_map(free) {
                Some(mut place) => *place = Some(block),
                None => _ = BYTES.fetch_sub(size, Relaxed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(sizes: &[usize]) -> Vec<usize> {
        sizes.iter().map(|&bytes| Block::new(bytes).unwrap().start().addr()).collect()
    }

    #[test]
    fn the_larger_block_is_kept_and_survives_larger_calls() {
        std::thread::spawn(|| {
            let [first, smaller, ..] = starts(&[5000, 300, 5000])[..] else { unreachable!() };
            assert_eq!(first, smaller);
            // two at a time are two, and the larger one is kept
            let (one, two) = (Block::new(400).unwrap(), Block::new(9000).unwrap());
            assert_ne!(one.start(), two.start());
            let larger = two.start().addr();
            drop(two);
            drop(one);
            let others = starts(&[9000, KEPT[0] + 1, KEPT[1] + 1, 0, 9000]);
            assert_eq!((others[0], others[3], others[4]), (larger, LINE, larger));
        })
        .join()
        .unwrap();
    }

    /// Other tests use the places meanwhile.
    #[test]
    fn the_process_keeps_few_large_blocks() {
        let all: Vec<Block> = (1..=99).map(|i| Block::new(KEPT[0] + i).unwrap()).collect();
        drop(all);
        drop(Block::new(KEPT[1] + 1).unwrap());
        let kept = SHARED.iter().filter_map(|place| place.try_lock().ok()?.as_ref().map(|kept| kept.bytes()));
        assert!(kept.clone().count() > 0 && kept.clone().all(|size| size > KEPT[0] && size <= KEPT[1]));
        assert!(kept.sum::<usize>() <= ALL);
    }

    #[test]
    fn zeros_are_zeros_in_kept_blocks_too() {
        for bytes in [100, KEPT[0] + 1000, KEPT[1] + 1].repeat(3) {
            let block = Block::zeroed(bytes).unwrap();
            // SAFETY: the block has these bytes.
            let own = unsafe { std::slice::from_raw_parts_mut(block.start(), bytes) };
            assert!(own.iter().all(|&byte| byte == 0));
            own.fill(1);
        }
    }

    #[test]
    fn memory_that_ends_is_none() {
        assert!(Block::new(usize::MAX).is_none());
        assert!(Block::new(isize::MAX as usize - 64).is_none());
    }
}
