//! A product of reflections cut into blocks of columns, W = B_0 B_1 ... B_{p-1} E, and the way of rows through them.

use super::Householder;
use super::block::{Block, Columns};
use super::hand::Hand;
use crate::kernels::{Triangle, invert_work};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::side::Side;
use crate::sizes::work;

/// The largest number of columns of a block, in units of n. The condition of T grows with it: e(W) of a
/// single block exceeds 20 at about ten.
const CROWD: usize = 4;

/// Up to this many rows, reflections are applied one at a time.
const FEW_ROWS: usize = 8;

/// The partition of the columns.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub width: usize,
    pub count: usize,
}

impl Blocks {
    /// One block if rows >= m, else several, whose T costs n width m instead of n m^2. No block has more than
    /// 4 n columns.
    pub fn new(n: usize, m: usize, rows: usize) -> Self {
        let most = match rows {
            _ if rows >= m => m,
            64.. => 64,
            _ => 32,
        };
        let width = m.min(most).min(crowd(n)).max(1);
        Blocks { width, count: m.div_ceil(width) }
    }

    /// Sizes of a matrix per block: T^-1, L.
    pub fn sizes(self) -> [usize; 3] {
        [self.count, self.width, self.width]
    }

    /// The matrix of a block, with row stride `width`.
    pub fn of<T>(self, all: Region<T>, block: usize) -> *mut T {
        all.at(block * self.width * self.width)
    }
}

/// The largest number of columns of one T in n dimensions.
pub fn crowd(n: usize) -> usize {
    n.saturating_mul(CROWD)
}

/// Whether applying reflections one at a time is cheaper than T for this many rows.
pub(super) fn few(rows: usize) -> bool {
    rows <= FEW_ROWS
}

/// E of a matrix, and the workspace of its T^-1.
pub(super) struct Places<T> {
    /// Empty for I.
    pub e: Region<T>,
    work: Frame,
}

/// W of one matrix: E, and U and T^-1 of its blocks.
pub(super) struct Factors<'a, T: Scalar> {
    pub of: &'a Householder<'a, T>,
    /// Which matrix it is.
    pub b: usize,
    pub cut: Blocks,
    pub e: *const T,
    pub ti: Region<T>,
}

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn columns(&self, b: usize) -> Columns<T> {
        let (n, m) = (self.n, self.m);
        let shape = if self.trapezoid { Triangle::Lower } else { Triangle::Full };
        Columns { u: self.vectors[b * n * m..].as_ptr(), stride: m, n, m, top: 0, shape }
    }

    pub(super) fn places(&self, arena: &mut Arena, cut: Blocks) -> Places<T> {
        Places {
            e: arena.take(&[if self.has_last() { self.n } else { 0 }]),
            work: invert_work::<T>(arena, cut.width),
        }
    }

    /// Multiply-adds of the triangular matrices of all blocks.
    pub(super) fn cost_inverses(&self, cut: Blocks) -> usize {
        work(&[self.m, cut.width, self.n / 2 + cut.width / 6])
    }
}

impl<'a, T: Scalar> Factors<'a, T> {
    /// Computes E, and T^-1 into `ti` unless it is `known`. Ends with a barrier.
    ///
    /// # Safety
    /// The places are those of this partition, ti has its sizes; all members call this.
    pub unsafe fn new(
        hand: &Hand<'_, T>,
        of: &'a Householder<'a, T>,
        b: usize,
        cut: Blocks,
        at: &Places<T>,
        (ti, known): (Region<T>, bool),
    ) -> Self {
        let factors = Factors { of, b, cut, e: at.e.ptr(), ti };
        // SAFETY: E has n elements, each block of ti room for its T^-1; neither is read before the barriers inside.
        unsafe {
            of.diagonal(hand.member, b, at.e.ptr());
            for i in if known { 0..0 } else { 0..cut.count } {
                let Block { columns, ti, width, .. } = factors.block(i);
                columns.inverse(hand, ti, width, at.work);
            }
        }
        factors
    }

    pub fn block(&self, i: usize) -> Block<T> {
        let Factors { of, cut, ti, .. } = *self;
        let columns = of.columns(self.b).from(i * cut.width, cut.width);
        Block { columns, ti: cut.of(ti, i), width: cut.width, n: of.n }
    }

    /// Takes rows x through W or W^H. `stop(k)` is the array of the rows after k blocks, and of those after
    /// E, first or last; without an array after the last block only its h is formed. h of block i goes to
    /// `h(i)`.
    ///
    /// # Safety
    /// x and all stops have `rows` rows of n, and are equal or disjoint; q and all h have `rows` rows with the stride of
    /// the blocks; E and T^-1 are complete; all members of the hand call this.
    pub unsafe fn through(
        &self,
        hand: &Hand<'_, T>,
        side: Side,
        (x, rows): (*const T, usize),
        q: *mut T,
        h: impl Fn(usize) -> *mut T,
        stop: impl Fn(usize) -> Option<*mut T>,
    ) {
        let (of, e, count) = (self.of, self.e, self.cut.count);
        let mut source = x;
        // SAFETY: the contract above; barriers separate writes from reads by other members.
        unsafe {
            if (side == Side::Forward && of.has_last() || count == 0)
                && let Some(to) = stop(0)
            {
                of.scaled(hand.member, e, side, x, rows, to);
                hand.barrier();
                source = to;
            }
            for step in 0..count {
                let i = if side == Side::Forward { count - 1 - step } else { step };
                let block = self.block(i);
                block.coefficients(hand, side, source, rows, [q, h(i)]);
                let Some(to) = stop(step + 1) else { return };
                block.subtract(hand, source, h(i), rows, to);
                hand.barrier();
                source = to;
            }
            if side == Side::Adjoint && of.has_last() && count > 0 {
                of.scaled(hand.member, e, side, source, rows, source.cast_mut());
            }
        }
    }
}
