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

use super::blocks::{Blocks, Chunk, FULL, Trail, VJP_ROWS, Way, over_rows, few};
use super::cpu::{Hand, over};
use super::{Gradients, Householder, Last};
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle, tiles, wy};
use crate::side::Side;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;
use isometry_kernels::householder::Pull;
use num_traits::Zero;

/// The arrays of the gradient; empty where not needed.
struct Saved<T> {
    /// The [`Trail`], if none was kept.
    trail: Frame,
    q: Region<T>,
    c: Region<T>,
    g: [Region<T>; 2],
    l: Region<T>,
}

/// Which gradients are requested.
struct Wants<T: Scalar> {
    side: Side,
    vectors: Option<Shared<T>>,
    last: Option<Shared<T::Real>>,
    x_bar: Option<Shared<T>>,
}

impl<T: Scalar> Wants<T> {
    /// Whether the cotangent of y = E x is needed.
    fn cotangent(&self) -> bool {
        self.last.is_some() || (self.side == Side::Forward && self.x_bar.is_some())
    }
}

impl<T: Scalar> Householder<'_, T> {
    #[allow(clippy::too_many_arguments, reason = "the call of the seam, one to one")]
    pub(super) fn apply_vjp_cpu(
        &self,
        kept: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        gradients: Gradients<'_, T>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        let Gradients { mut vectors, mut last } = gradients;
        // sums over rows start from zero, also over no rows at all
        if let Some(last) = &mut last {
            last.fill(T::Real::zero());
        }
        if rows == 0 {
            if let Some(vectors) = &mut vectors {
                vectors.fill(T::zero());
            }
            return Ok(());
        }
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let n = self.n;
        let wants = Wants {
            side,
            vectors: vectors.map(|x| Shared(x.as_mut_ptr())),
            last: last.map(|x| Shared(x.as_mut_ptr())),
            x_bar: x_bar.map(|x| Shared(x.as_mut_ptr())),
        };
        if few(rows) {
            return self.pull_few(x, ct, rows, &wants, threads);
        }
        let cut = Blocks::new(self.n, self.m, rows);
        let (width, blocks) = (cut.width, cut.count);
        let tall = rows.min(VJP_ROWS);
        let trail = |arena: &mut Arena| Trail::<T>::carve(arena, cut, tall, n, self.has_last());
        let carve = |arena: &mut Arena| {
            let ping = usize::from(blocks > 1 || wants.cotangent());
            let pong = usize::from(blocks > 1);
            let saved = Saved {
                trail: arena.frame(|arena| kept.is_none().then(|| trail(arena))),
                q: arena.take(&[tall, width]),
                c: arena.take(&[tall, width]),
                g: [ping, pong].map(|wanted| arena.take(&[wanted, tall, n])),
                l: arena.take(&cut.sizes()),
            };
            (self.apply_places(arena, cut, true), saved)
        };
        // only read if given
        let kept = kept.map(|kept| (Shared(kept.as_ptr().cast_mut()), kept.len() / self.batch));
        let all = [
            self.cost_inverses(cut),
            work(&[5, rows, self.m, n]),
            work(&[2, rows, self.m, width]),
            work(&[2, n, self.m, width]),
        ];
        let cost = all.into_iter().fold(0, usize::saturating_add);
        let split = self.split(cost, threads);
        let product = (n.max(self.m).max(tall), n.max(width).max(tall));
        over(split, product, carve, |hand, b, (at, saved)| {
            let frame = kept.map_or(saved.trail, |(kept, len)| Frame::over(kept.at(b * len), len));
            let way = Way { cut, trail: trail(&mut frame.arena()), e: at.e.ptr(), q: saved.q.ptr() };
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                match kept {
                    None => self.inverses(hand, b, cut, at, way.trail.ti),
                    Some(_) if self.has_last() => self.diagonal(hand, b, at.e.ptr()),
                    Some(_) => {}
                }
                for (row, height) in tiles(rows, VJP_ROWS) {
                    let start = (b * rows + row) * n;
                    let (x, ct) = (x[start..].as_ptr(), ct[start..].as_ptr());
                    let chunk = Chunk { b, x, ct, rows: height, first: row == 0, start };
                    if kept.is_none() {
                        let adjoint = wants.side == Side::Adjoint;
                        let x_bar = wants.x_bar.filter(|_| adjoint).map(|x_bar| x_bar.at(start));
                        self.trace(hand, &way, &chunk, x_bar);
                    }
                    self.pull(hand, &way, saved, &wants, &chunk);
                    hand.barrier();
                }
                let Some(vectors) = wants.vectors else { return };
                for block in 0..blocks {
                    let (l, m) = (cut.inverse(saved.l, block), self.m);
                    wy::symmetrize(hand.member, l, width, width.min(m - block * width));
                }
                hand.barrier();
                for block in 0..blocks {
                    let l = Operand::new(cut.inverse(saved.l, block), width);
                    let columns = self.columns(b).block(block * width, width);
                    let ubar = vectors.at((b * n + columns.top) * self.m + block * width);
                    let sizes = (columns.n, columns.m, columns.m);
                    let product = Product::new(sizes, columns.operand(), l, ubar, self.m).add();
                    hand.mul(product.shapes(columns.shape, FULL, FULL));
                }
            }
        })
    }

    /// The whole gradient for few rows, in terms of the forward map.
    fn pull_few(&self, x: &[T], ct: &[T], rows: usize, wants: &Wants<T>, threads: usize) -> Result<()> {
        let n = self.n;
        let carve = |arena: &mut Arena| {
            let last = usize::from(self.has_last());
            [[last, n, 1], [last, rows, n], [1, rows, n], [1, 1, self.sizes(0, rows).work(2, 2)]]
                .map(|sizes| arena.take(&sizes))
        };
        let split = self.whole(work(&[6, rows, n, self.m]), threads);
        split.run(|_| (), carve, |member, b, (), &[e, y, g, room]: &[Region<T>; 4]| {
            let hand = &Hand::without_products(member);
            let start = b * rows * n;
            let (x, e) = (x[start..].as_ptr(), e.ptr());
            let (mut g, mut y) = (g.ptr(), y.ptr().cast_const());
            let null = std::ptr::null_mut();
            let mut c = null;
            if let Some(x_bar) = wants.x_bar {
                *(if wants.side == Side::Forward { &mut g } else { &mut c }) = x_bar.at(start);
            }
            let u_bar = wants.vectors.map_or(null, |all| all.at(b * n * self.m));
            // SAFETY: the arrays' sizes were checked; matrix b belongs to this member only.
            unsafe {
                if self.has_last() {
                    self.diagonal(hand, b, e);
                    self.scaled(hand, x, rows, e, false, y.cast_mut());
                } else {
                    y = x;
                }
                std::ptr::copy_nonoverlapping(ct[start..].as_ptr(), g, rows * n);
                Pull { sizes: self.sizes(b, rows), y, g, c, u_bar, work: room.ptr() }.call();
                let chunk = Chunk { b, x, ct: ct[start..].as_ptr(), rows, first: true, start };
                self.through_last(hand, wants, &chunk, e, g, y);
            }
        })
    }

    /// The contribution of some rows to the gradient, after [`Householder::trace`].
    ///
    /// # Safety
    /// The arrays have their sizes; the trail and E are complete; all members call this.
    unsafe fn pull(
        &self,
        hand: &Hand<'_, T>,
        way: &Way<T>,
        saved: &Saved<T>,
        wants: &Wants<T>,
        chunk: &Chunk<T>,
    ) {
        let (n, Blocks { width, count }, rows) = (self.n, way.cut, chunk.rows);
        let top = count.max(1) - 1;
        let x_bar = wants.x_bar.map(|x_bar| x_bar.at(chunk.start));
        let c = saved.c.ptr();
        // SAFETY: the contract above; barriers separate writes from reads by other members.
        unsafe {
            let mut g = chunk.ct;
            for block in 0..count {
                let columns = self.columns(chunk.b).block(block * width, width);
                over_rows(hand, rows, |hand, own| {
                    let at = own.start * width;
                    let (q, c, g) = (way.q.add(at), c.add(at), g.add(own.start * n));
                    self.coefficients(
                        hand,
                        columns,
                        way.inverse(block),
                        width,
                        Side::Adjoint,
                        g,
                        own.len(),
                        q,
                        c,
                    );
                });
                if let Some(vectors) = wants.vectors {
                    let m = columns.m;
                    let (h, c) = (Operand::new(way.h(block, rows), width), Operand::new(c, width));
                    let l = way.cut.inverse(saved.l, block);
                    let ubar = vectors.at(chunk.b * n * self.m + block * width);
                    let add = |product: Product<T>| if chunk.first { product } else { product.add() };
                    let l = Product::new((m, m, rows), h.t(), c.conj(), l, width);
                    hand.mul(add(l.shapes(FULL, FULL, Triangle::Lower)));
                    let y = Operand::new(self.input(way, chunk, block), n).t();
                    let outer = |a, b| Product::new((n, m, rows), a, b, ubar, self.m).alpha(-1.0);
                    hand.mul(add(outer(Operand::new(g, n).t(), h.conj())));
                    hand.mul(outer(y, c.conj()).add());
                }
                if block < top || wants.cotangent() {
                    let straight = x_bar.filter(|_| block == top && wants.side == Side::Forward);
                    let next = straight.unwrap_or(saved.g[block % 2].ptr());
                    over_rows(hand, rows, |hand, own| {
                        let (at, c) = (own.start * n, c.add(own.start * width));
                        self.subtract(hand, columns, g.add(at), c, width, own.len(), next.add(at));
                    });
                    g = next;
                } else {
                    hand.barrier();
                }
            }
            self.through_last(hand, wants, chunk, way.e, g, self.input(way, chunk, top));
        }
    }

    /// From the cotangent g of y = E x: the gradient of E, and x_bar = conj(E) g of the forward map.
    ///
    /// # Safety
    /// The arrays have their sizes; g is complete.
    unsafe fn through_last(
        &self,
        hand: &Hand<'_, T>,
        wants: &Wants<T>,
        chunk: &Chunk<T>,
        e: *const T,
        g: *const T,
        y: *const T,
    ) {
        let n = self.n;
        let mine = hand.member.share(n, 16);
        // SAFETY: the columns belong to this member only.
        unsafe {
            if let Some(last) = wants.last {
                for i in 0..chunk.rows {
                    for j in mine.clone() {
                        let at = i * n + j;
                        match self.last {
                            Last::Phases(_) => {
                                *last.at(chunk.b * n + j) += (*g.add(at) * (*y.add(at)).conj()).im()
                            }
                            Last::Sign(_) if j + 1 == n => {
                                *last.at(chunk.b) += (*g.add(at) * (*chunk.x.add(at)).conj()).re()
                            }
                            _ => {}
                        }
                    }
                }
            }
            let Some(x_bar) = wants.x_bar.filter(|_| wants.side == Side::Forward) else { return };
            let x_bar = x_bar.at(chunk.start);
            if std::ptr::eq(x_bar, g) && !self.has_last() {
                return;
            }
            for i in 0..chunk.rows {
                for j in mine.clone() {
                    let by = if self.has_last() { (*e.add(j)).conj() } else { T::one() };
                    *x_bar.add(i * n + j) = *g.add(i * n + j) * by;
                }
            }
        }
    }
}
