//! What a forward pass saves for backward: T^-1, and for each block h and its input rows.

use super::blocks::{Blocks, Factors, few};
use super::hand::Hand;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::side::Side;
use crate::sizes::{MOST, work};

/// Rows per pass of the gradient.
pub(super) const VJP_ROWS: usize = 1024;
/// The largest number of blocks whose inputs are saved: beyond, memory costs more than recomputing them.
const KEPT_BLOCKS: usize = 8;

/// The arrays, for up to some rows at a time.
pub(super) struct Trail<T> {
    pub ti: Region<T>,
    h: Region<T>,
    y: Region<T>,
}

impl<T> Trail<T> {
    /// For up to `tall` rows at a time. The input of the last block is x if there is no last factor. Each array is whole
    /// cache lines of the smallest type, so that the number of elements is the same for all types.
    pub fn carve(arena: &mut Arena, cut: Blocks, tall: usize, n: usize, last: bool) -> Self {
        let slots = cut.count.saturating_sub(usize::from(!last));
        let mut array = |sizes: &[usize]| arena.take(&[work(sizes).div_ceil(16), 16]);
        Trail {
            ti: array(&cut.sizes()),
            h: array(&[cut.count, tall, cut.width]),
            y: array(&[slots, tall, n]),
        }
    }
}

/// Elements per matrix that a forward pass keeps for `rows` rows of m reflections of n entries, with or without a last
/// factor; 0 where keeping does not pay.
pub(crate) fn apply_keep_len(n: usize, m: usize, rows: usize, last: bool) -> Result<usize> {
    let cut = Blocks::new(n, m, rows);
    let pays = !few(rows) && rows <= VJP_ROWS && cut.count <= KEPT_BLOCKS;
    if !pays {
        return Ok(0);
    }
    let len = Arena::elements::<f32, _>(|arena| Trail::<f32>::carve(arena, cut, rows, n, last));
    if len <= MOST {
        return Ok(len);
    }
    let got = format!("{m} reflections of {n} entries for {rows} rows");
    Err(Error::shape("saved", "sizes whose product fits in memory", got))
}

impl<T: Scalar> Factors<'_, T> {
    /// h of a block, for `rows` rows.
    pub fn h(&self, trail: &Trail<T>, block: usize, rows: usize) -> *mut T {
        trail.h.at(block * rows * self.cut.width)
    }

    /// The input rows of a block.
    pub fn input(&self, trail: &Trail<T>, block: usize, (x, rows): (*const T, usize)) -> *const T {
        let first = block + 1 == self.cut.count && !self.of.has_last();
        if first { x } else { trail.y.at(block * rows * self.of.n) }
    }

    /// Takes rows through W, leaving a trail; the result is formed if requested. q has the rows. Ends with a barrier.
    ///
    /// # Safety
    /// The arrays have their sizes; all members call this.
    pub unsafe fn trace(
        &self,
        hand: &Hand<'_, T>,
        trail: &Trail<T>,
        q: *mut T,
        (x, rows): (*const T, usize),
        out: Option<*mut T>,
    ) {
        let (n, Blocks { width, count }) = (self.of.n, self.cut);
        hand.over_rows(rows, |hand, own| {
            let (at, h_at) = (own.start * n, own.start * width);
            let h = |block: usize| self.h(trail, block, rows).wrapping_add(h_at);
            let stop = |k: usize| {
                let to = if k == count { out } else { Some(trail.y.at((count - 1 - k) * rows * n)) };
                to.map(|to| to.wrapping_add(at))
            };
            let x = (x.wrapping_add(at), own.len());
            // SAFETY: the arrays have the rows, of which each call takes its own.
            unsafe { self.through(hand, Side::Forward, x, q.wrapping_add(h_at), h, stop) }
        });
    }
}
