//! The gradient of c = W x, backward through the blocks. For a block with input rows Y and output cotangent G (Theorem
//! 2):
//!
//! ```text
//! c = G conj(U) conj(T^-1),  M = (h^T conj(c)) * B^T,
//! U_bar = U (M + M^H) - G^T conj(h) - Y^T conj(c),   G <- G - c U^T.
//! ```
//!
//! The adjoint map is the same bilinear form: Re <ct, W^H x> = Re <W ct, x>, so its gradient is the forward one with x and
//! ct exchanged, and x_bar = W ct.

use super::Householder;
use super::blocks::{Blocks, Factors};
use super::gradients::Wants;
use super::hand::{Hand, over};
use super::trail::{Trail, VJP_ROWS};
use crate::error::Result;
use crate::kernels::{tiles, wy};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::side::Side;
use crate::sizes::work;

/// The working arrays of one matrix; empty where not needed.
struct Arrays<T> {
    /// The [`Trail`], if none was kept.
    trail: Frame,
    q: Region<T>,
    c: Region<T>,
    g: [Region<T>; 2],
    /// h^T conj(c) of each block.
    l: Region<T>,
}

/// Some rows of a matrix, in terms of the forward map.
struct Chunk<T> {
    x: *const T,
    ct: *const T,
    rows: usize,
    /// Whether these are the first rows of the sums.
    first: bool,
    /// Offset of the rows in x_bar.
    start: usize,
}

/// The gradient of one matrix.
struct Pull<'a, T: Scalar> {
    factors: Factors<'a, T>,
    trail: Trail<T>,
    arrays: &'a Arrays<T>,
    wants: &'a Wants<T>,
}

impl<T: Scalar> Householder<'_, T> {
    /// By blocks, in terms of the forward map; `kept` is the trail of the forward pass.
    pub(super) fn apply_vjp_blocks(
        &self,
        kept: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        wants: &Wants<T>,
        threads: usize,
    ) -> Result<()> {
        let n = self.n;
        let cut = Blocks::new(n, self.m, rows);
        let tall = rows.min(VJP_ROWS);
        let trail = |arena: &mut Arena| Trail::<T>::carve(arena, cut, tall, n, self.has_last());
        let carve = |arena: &mut Arena| {
            let ping = usize::from(cut.count > 1 || wants.cotangent());
            let pong = usize::from(cut.count > 1);
            let arrays = Arrays {
                trail: arena.frame(|arena| kept.is_none().then(|| trail(arena))),
                q: arena.take(&[tall, cut.width]),
                c: arena.take(&[tall, cut.width]),
                g: [ping, pong].map(|wanted| arena.take(&[wanted, tall, n])),
                l: arena.take(&cut.sizes()),
            };
            (self.places(arena, cut), arrays)
        };
        // only read if given
        let kept = kept.map(|kept| (Shared(kept.as_ptr().cast_mut()), kept.len() / self.batch));
        let split = self.split(self.cost_vjp(cut, rows), threads);
        let product = (n.max(self.m).max(tall), n.max(cut.width).max(tall));
        over(split, product, carve, |hand, b, (at, arrays)| {
            let frame = kept.map_or(arrays.trail, |(kept, len)| Frame::over(kept.at(b * len), len));
            let trail = trail(&mut frame.arena());
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let factors = Factors::new(hand, self, b, cut, at, (trail.ti, kept.is_some()));
                let pull = Pull { factors, trail, arrays, wants };
                for (row, height) in tiles(rows, VJP_ROWS) {
                    let start = (b * rows + row) * n;
                    let (x, ct) = (x[start..].as_ptr(), ct[start..].as_ptr());
                    if kept.is_none() {
                        let out = wants.x_bar(Side::Adjoint, start);
                        pull.factors.trace(hand, &pull.trail, arrays.q.ptr(), (x, height), out);
                    }
                    pull.rows(hand, &Chunk { x, ct, rows: height, first: row == 0, start });
                    hand.barrier();
                }
                pull.finish(hand);
            }
        })
    }

    /// Multiply-adds of the gradient.
    fn cost_vjp(&self, cut: Blocks, rows: usize) -> usize {
        let all = [
            self.cost_inverses(cut),
            work(&[5, rows, self.m, self.n]),
            work(&[2, rows, self.m, cut.width]),
            work(&[2, self.n, self.m, cut.width]),
        ];
        all.into_iter().fold(0, usize::saturating_add)
    }
}

impl<T: Scalar> Pull<'_, T> {
    /// L of a block.
    fn l(&self, block: usize) -> *mut T {
        self.factors.cut.of(self.arrays.l, block)
    }

    /// Row `top` of U_bar in the columns of a block, with the row stride.
    fn u_bar(&self, vectors: Shared<T>, block: usize, top: usize) -> (*mut T, usize) {
        let Factors { of: Householder { n, m, .. }, b, cut, .. } = self.factors;
        (vectors.at((b * n + top) * m + block * cut.width), *m)
    }

    /// The contribution of some rows, from their trail.
    ///
    /// # Safety
    /// The arrays have their sizes; the trail and E are complete; all members call this.
    unsafe fn rows(&self, hand: &Hand<'_, T>, chunk: &Chunk<T>) {
        let Pull { factors, trail, arrays, wants } = self;
        let (of, Blocks { width, count }, rows) = (factors.of, factors.cut, chunk.rows);
        let (n, q, c) = (of.n, arrays.q.ptr(), arrays.c.ptr());
        let x_bar = wants.x_bar(Side::Forward, chunk.start);
        // SAFETY: the contract above; barriers separate writes from reads by other members.
        unsafe {
            let mut g = chunk.ct;
            for i in 0..count {
                let block = factors.block(i);
                hand.over_rows(rows, |hand, own| {
                    let (at, areas) = (own.start * n, [q, c].map(|area| area.add(own.start * width)));
                    block.coefficients(hand, Side::Adjoint, g.add(at), own.len(), areas);
                });
                if let Some(vectors) = wants.vectors {
                    let y = factors.input(trail, i, (chunk.x, rows));
                    let h = factors.h(trail, i, rows).cast_const();
                    let (l, u_bar) = (self.l(i), self.u_bar(vectors, i, 0));
                    block.gather(hand, [y, g], [h, c], (rows, chunk.first), l, u_bar);
                }
                if i + 1 == count && !wants.cotangent() {
                    hand.barrier();
                    break;
                }
                let next = x_bar.filter(|_| i + 1 == count).unwrap_or(arrays.g[i % 2].ptr());
                hand.over_rows(rows, |hand, own| {
                    let (at, c) = (own.start * n, c.add(own.start * width));
                    block.subtract(hand, g.add(at), c, own.len(), next.add(at));
                });
                g = next;
            }
            of.pull_last(hand.member, (factors.b, factors.e), [chunk.x, g], rows, wants.last, x_bar);
        }
    }

    /// U_bar += U (M + M^H), after all rows.
    ///
    /// # Safety
    /// As [`Pull::rows`]; a barrier has followed the last rows.
    unsafe fn finish(&self, hand: &Hand<'_, T>) {
        let Some(vectors) = self.wants.vectors else { return };
        let Blocks { width, count } = self.factors.cut;
        // SAFETY: the contract above; a barrier separates the two loops.
        unsafe {
            for i in 0..count {
                wy::symmetrize(hand.member, self.l(i), width, self.factors.block(i).columns.m);
            }
            hand.barrier();
            for i in 0..count {
                let block = self.factors.block(i);
                block.mix(hand, self.l(i), self.u_bar(vectors, i, block.columns.top));
            }
        }
    }
}
