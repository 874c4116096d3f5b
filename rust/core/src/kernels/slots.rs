//! Sums over rows in slots: each block of rows is summed in a slot of its own, and the slots are added in order. Which rows make a
//! block depends on sizes alone, so that the sum does not depend on the threads.

use crate::scalar::Scalar;
use crate::sizes::work;
use std::ops::Range;

/// The largest number of slots of all sums of a call.
const MOST: usize = 16;
/// The same for rows enough for `MOST` blocks of [`ROWS`], where all slots have no more than so many [`NUMBERS`].
const MANY: usize = 64;
const ROWS: usize = if cfg!(test) { 4 } else { 64 };
const NUMBERS: usize = 1 << 20;
/// The rows of a block are a multiple of this, which operators may take at a time. Tests have many blocks.
const BLOCK: usize = if cfg!(test) { 2 } else { 16 };

/// Rows in blocks.
#[derive(Clone, Copy)]
pub struct Slots {
    rows: usize,
    /// Rows of a block.
    pub block: usize,
    /// Blocks; one, without rows, where there are none.
    pub count: usize,
}

impl Slots {
    /// For each of this many sums of `each` numbers over `rows` rows.
    pub fn of(sums: usize, rows: usize, each: usize) -> Self {
        let blocks = |all: usize| rows.div_ceil(all.div_ceil(sums.max(1)));
        let many = rows > MOST * ROWS && work(&[MANY.max(sums), each]) <= NUMBERS;
        let block = if many { blocks(MANY).max(ROWS) } else { blocks(MOST) };
        let block = block.max(1).next_multiple_of(BLOCK);
        Slots { rows, block, count: rows.div_ceil(block).max(1) }
    }

    /// The rows of a slot.
    pub fn rows(&self, slot: usize) -> Range<usize> {
        let first = slot * self.block;
        first..self.rows.min(first + self.block)
    }
}

/// Adds `count` slots of `each` numbers to the first of them, in order; only these of the numbers.
///
/// # Safety
/// The slots exist, one behind the other, and nobody else uses these numbers of theirs.
pub unsafe fn add_slots<T: Scalar>(slots: *mut T, count: usize, each: usize, numbers: Range<usize>) {
    for slot in 1..count {
        for at in numbers.clone() {
            // SAFETY: the contract above.
            unsafe { *slots.add(at) += *slots.add(slot * each + at) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_rows_and_memory_is_bounded() {
        for (sums, rows, each, most) in [
            (1, 0, 9, 1),
            (1, 31, 9, 16),
            (1, 5000, 9, MANY),
            (1, 5000, NUMBERS, MOST),
            (3, 5000, 9, MANY),
            (100, 40, 9, 1),
        ] {
            let slots = Slots::of(sums, rows, each);
            assert!((1..=most).contains(&slots.count), "{sums} {rows}: {}", slots.count);
            let all: Vec<usize> = (0..slots.count).flat_map(|slot| slots.rows(slot)).collect();
            assert!(all.iter().copied().eq(0..rows), "{sums} {rows}");
        }
        assert!(Slots::of(1, 5000, 9).count > MOST && Slots::of(1, 5000, NUMBERS).count == MOST);
    }
}
