//! A product cut into blocks of columns, W = B_0 B_1 ... B_{p-1} E with B = I - U T^-1 U^H each, and their application:
//! B maps a block of rows Y by
//!
//! ```text
//! q = Y conj(U),  h = q (T^-1)^T,  Y <- Y - h U^T        (B^H: h = q conj(T^-1)).
//! ```

use super::Householder;
use super::cpu::{Columns, Hand};
use crate::error::{Error, Result};
use crate::kernels::{Operand, Product, Triangle, invert_work};
use crate::side::Side;
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::{MOST, work};
use isometry_kernels::householder::Sizes;
use std::ops::Range;

/// Up to this many rows, reflections are applied one at a time.
const FEW_ROWS: usize = 8;
/// Rows per thread from which each thread takes its own rows instead of sharing every product.
pub(super) const APART_ROWS: usize = 16;
/// Rows per pass of the gradient.
pub(super) const VJP_ROWS: usize = 1024;
/// Columns of a block per dimension, at most. T is the worse conditioned the more columns share n dimensions: e(W) of a single
/// block passes 20 at some ten of them.
const CROWD: usize = 4;
/// Most blocks whose inputs are kept for the gradient: beyond, memory costs more than recomputing them.
const KEPT_BLOCKS: usize = 8;

pub(super) const FULL: Triangle = Triangle::Full;

/// The partition of the columns.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) width: usize,
    pub(super) count: usize,
}

impl Blocks {
    /// One block if rows >= m, else several, whose T costs n width m instead of n m^2; more than 4 n columns are never one.
    pub(super) fn new(n: usize, m: usize, rows: usize) -> Self {
        let most = match rows {
            _ if rows >= m => m,
            64.. => 64,
            _ => 32,
        };
        let width = m.min(most).min(crowd(n)).max(1);
        Blocks { width, count: m.div_ceil(width) }
    }

    /// Sizes of all T^-1.
    pub(super) fn sizes(self) -> [usize; 3] {
        [self.count, self.width, self.width]
    }

    /// T^-1 of a block, with row stride `width`.
    pub(super) fn inverse<T>(self, ti: Region<T>, block: usize) -> *mut T {
        ti.at(block * self.width * self.width)
    }
}

/// Most columns in n dimensions that one T serves.
pub fn crowd(n: usize) -> usize {
    n.saturating_mul(CROWD)
}

/// The working arrays of one matrix; empty where not needed.
pub(super) struct Places<T> {
    pub(super) e: Region<T>,
    pub(super) ti: Region<T>,
    pub(super) work: Frame,
}

/// Saved for backward: T^-1, and per block h and its input rows.
#[derive(Clone, Copy)]
pub(super) struct Trail<T> {
    pub(super) ti: Region<T>,
    pub(super) h: Region<T>,
    pub(super) y: Region<T>,
}

impl<T> Trail<T> {
    /// For up to `tall` rows at a time. The input of the last block is x if there is no last factor. Each array is whole
    /// cache lines of the smallest type, so that the number of elements is the same for all types.
    pub(super) fn carve(arena: &mut Arena, cut: Blocks, tall: usize, n: usize, last: bool) -> Self {
        let slots = cut.count.max(1) - usize::from(!last);
        let mut array = |sizes: &[usize]| arena.take(&[work(sizes).div_ceil(16), 16]);
        Trail {
            ti: array(&cut.sizes()),
            h: array(&[cut.count, tall, cut.width]),
            y: array(&[slots, tall, n]),
        }
    }
}

/// The arrays of the map from x to the result, and of its gradient.
pub(super) struct Way<T> {
    pub(super) cut: Blocks,
    pub(super) trail: Trail<T>,
    pub(super) e: *const T,
    /// Workspace of rows x width.
    pub(super) q: *mut T,
}

impl<T> Way<T> {
    pub(super) fn inverse(&self, block: usize) -> *mut T {
        self.cut.inverse(self.trail.ti, block)
    }

    /// h of a block, for chunks of `rows` rows.
    pub(super) fn h(&self, block: usize, rows: usize) -> *mut T {
        self.trail.h.at(block * rows * self.cut.width)
    }
}

/// Some rows of matrix b, in terms of the forward map.
pub(super) struct Chunk<T> {
    pub(super) b: usize,
    pub(super) x: *const T,
    pub(super) ct: *const T,
    pub(super) rows: usize,
    /// Whether these are the first rows of the sums.
    pub(super) first: bool,
    /// Offset of the rows in x_bar.
    pub(super) start: usize,
}

/// Whether applying reflections one at a time is cheaper than T for this many rows.
pub(super) fn few(rows: usize) -> bool {
    rows <= FEW_ROWS
}

/// Elements per matrix that [`Householder::apply_keeping`] keeps for `rows` rows of m reflections of n entries, with or
/// without a last factor; 0 where keeping does not pay.
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

/// Runs `f` on all rows: each member on its own, or, for few rows, all members together. Ends with a barrier.
pub(super) fn over_rows<T: Scalar>(hand: &Hand<'_, T>, rows: usize, f: impl Fn(&Hand<'_, T>, Range<usize>)) {
    if rows >= APART_ROWS * hand.member.count {
        let own = hand.member.share(rows, 8);
        Member::alone(|member| f(&Hand { member, scratch: hand.scratch }, own));
    } else {
        f(hand, 0..rows);
    }
    hand.barrier();
}

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn sizes(&self, b: usize, rows: usize) -> Sizes<T> {
        Sizes { u: self.columns(b).u, n: self.n, m: self.m, rows }
    }

    pub(super) fn apply_places(&self, arena: &mut Arena, cut: Blocks, kept: bool) -> Places<T> {
        Places {
            e: arena.take(&[if self.has_last() { self.n } else { 0 }]),
            ti: if kept { arena.take(&[0]) } else { arena.take(&cut.sizes()) },
            work: invert_work::<T>(arena, cut.width),
        }
    }

    /// Multiply-adds of the triangular matrices of all blocks.
    pub(super) fn cost_inverses(&self, cut: Blocks) -> usize {
        work(&[self.m, cut.width, self.n / 2 + cut.width / 6])
    }

    /// E and T^-1 of every block. Ends with a barrier.
    ///
    /// # Safety
    /// The arrays are those of this partition, ti has its sizes; all members call this.
    pub(super) unsafe fn inverses(
        &self,
        hand: &Hand<'_, T>,
        b: usize,
        cut: Blocks,
        at: &Places<T>,
        ti: Region<T>,
    ) {
        // SAFETY: E has n elements, each block of ti room for its T^-1; neither is read before the barriers inside.
        unsafe {
            if self.has_last() {
                self.diagonal(hand, b, at.e.ptr());
            }
            for block in 0..cut.count {
                let columns = self.columns(b).block(block * cut.width, cut.width);
                columns.inverse(hand, cut.inverse(ti, block), cut.width, at.work);
            }
        }
    }

    /// out = E x or conj(E) x; a copy if there is no E. No barrier.
    ///
    /// # Safety
    /// x and out have `rows` rows of n, e has n elements if there is an E; out is x or does not overlap it.
    pub(super) unsafe fn scaled(
        &self,
        hand: &Hand<'_, T>,
        x: *const T,
        rows: usize,
        e: *const T,
        conj: bool,
        out: *mut T,
    ) {
        let n = self.n;
        for i in hand.member.share(rows, 1) {
            for j in 0..n {
                // SAFETY: the row belongs to this member; `e` is read only if there is an E.
                unsafe {
                    let value = *x.add(i * n + j);
                    let by = if self.has_last() { *e.add(j) } else { T::one() };
                    *out.add(i * n + j) = value * if conj { by.conj() } else { by };
                }
            }
        }
    }

    /// h = Y conj(U) (T^-1)^T, or Y conj(U) conj(T^-1). Ends with a barrier.
    ///
    /// # Safety
    /// y has `rows` rows of n, ti those of the block, q and h `rows` rows, all with row stride `width`; the arrays are
    /// complete and do not overlap; all members of the hand call this.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one step")]
    pub(super) unsafe fn coefficients(
        &self,
        hand: &Hand<'_, T>,
        columns: Columns<T>,
        ti: *const T,
        width: usize,
        side: Side,
        y: *const T,
        rows: usize,
        q: *mut T,
        h: *mut T,
    ) {
        let m = columns.m;
        let (y, ti) = (Operand::new(y.wrapping_add(columns.top), self.n), Operand::new(ti, width));
        let (ti, shape) =
            if side == Side::Forward { (ti.t(), Triangle::Lower) } else { (ti.conj(), Triangle::Upper) };
        // SAFETY: the contract above; barriers separate the products.
        unsafe {
            let product = Product::new((rows, m, columns.n), y, columns.operand().conj(), q, width);
            hand.mul(product.shapes(FULL, columns.shape, FULL));
            hand.barrier();
            let product = Product::new((rows, m, m), Operand::new(q, width), ti, h, width);
            hand.mul(product.shapes(FULL, shape, FULL));
        }
        hand.barrier();
    }

    /// out = Y - h U^T. No barrier.
    ///
    /// # Safety
    /// y and out have `rows` rows of n, and are equal or disjoint; h has `rows` rows, stride `width`, and is complete.
    pub(super) unsafe fn subtract(
        &self,
        hand: &Hand<'_, T>,
        columns: Columns<T>,
        y: *const T,
        h: *const T,
        width: usize,
        rows: usize,
        out: *mut T,
    ) {
        let (n, top) = (self.n, columns.top);
        let (h, u) = (Operand::new(h, width), columns.operand().t());
        let product = Product::new((rows, columns.n, columns.m), h, u, out.wrapping_add(top), n).alpha(-1.0);
        let product = product.onto(y.wrapping_add(top), n).shapes(FULL, columns.shape.t(), FULL);
        // SAFETY: the contract above; the columns before `top` are not changed.
        unsafe {
            hand.mul(product);
            if !std::ptr::eq(y, out) && top > 0 {
                for i in hand.member.share(rows, 1) {
                    std::ptr::copy_nonoverlapping(y.add(i * n), out.add(i * n), top);
                }
            }
        }
    }

    /// The input rows of a block.
    pub(super) fn input(&self, way: &Way<T>, chunk: &Chunk<T>, block: usize) -> *mut T {
        if block + 1 >= way.cut.count && !self.has_last() {
            return chunk.x.cast_mut();
        }
        way.trail.y.at(block * chunk.rows * self.n)
    }

    /// Applies all blocks to the rows, saving h and the input of each; the result is formed if requested. Ends with a
    /// barrier.
    ///
    /// # Safety
    /// The arrays have their sizes; T^-1 and E are complete; all members call this.
    pub(super) unsafe fn trace(
        &self,
        hand: &Hand<'_, T>,
        way: &Way<T>,
        chunk: &Chunk<T>,
        out: Option<*mut T>,
    ) {
        let (n, Blocks { width, count }) = (self.n, way.cut);
        over_rows(hand, chunk.rows, |hand, own| {
            let (from, rows) = (own.start, own.len());
            let y = |block: usize| self.input(way, chunk, block).wrapping_add(from * n);
            let out = out.map(|out| out.wrapping_add(from * n));
            let x = chunk.x.wrapping_add(from * n);
            // SAFETY: the arrays have the rows of the chunk, of which each call takes its own; barriers separate writes
            // from reads by other members.
            unsafe {
                if self.has_last() {
                    self.scaled(hand, x, rows, way.e, false, y(count.max(1) - 1));
                    hand.barrier();
                }
                for block in (0..count).rev() {
                    let columns = self.columns(chunk.b).block(block * width, width);
                    let h = way.h(block, chunk.rows).add(from * width);
                    let (ti, q) = (way.inverse(block), way.q.add(from * width));
                    self.coefficients(hand, columns, ti, width, Side::Forward, y(block), rows, q, h);
                    let below = if block > 0 { Some(y(block - 1)) } else { out };
                    if let Some(below) = below {
                        self.subtract(hand, columns, y(block), h, width, rows, below);
                        hand.barrier();
                    }
                }
                if let (0, Some(out)) = (count, out) {
                    self.scaled(hand, x, rows, way.e, false, out);
                }
            }
        });
    }
}
