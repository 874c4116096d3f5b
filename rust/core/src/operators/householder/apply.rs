//! c = W x for rows without forming W, and its gradient. The columns of U are cut into blocks, W = B_0 B_1 ... B_{p-1} E,
//! B = I - U T^-1 U^H each; a row block Y passes B by
//!
//! ```text
//! q = Y conj(U),  h = q (T^-1)^T,  Y <- Y - h U^T        (B^H: h = q conj(T^-1)).
//! ```
//!
//! Gradient of block b with input rows Y, output cotangent G (Theorem 2 for rows):
//!
//! ```text
//! c = G conj(U) conj(T^-1),  M = (h^T conj(c)) * B^T,
//! U_bar = U (M + M^H) - G^T conj(h) - Y^T conj(c),   G <- G - c U^T.
//! ```
//!
//! The adjoint map is the same bilinear form: Re <ct, W^H x> = Re <W ct, x>, so its gradient is the forward one with x and
//! ct exchanged, and x_bar = W ct.

use super::cpu::{Columns, Hand, Layout, each_alone, members, over, symmetrize};
use super::sequential::{Pass, Pull, Sizes};
use super::{Gradients, Householder, Last};
use crate::kernels::{Operand, Product, Triangle, dispatch, invert_work, tiles};
use crate::operator::Side;
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use num_traits::Zero;
use std::ops::Range;

/// Up to so many rows, one reflection after the other.
const FEW_ROWS: usize = 8;
/// Rows per thread from which each takes its own ones, instead of sharing every product.
const APART_ROWS: usize = 16;
/// Rows that one thread takes through all blocks of an apply.
const APPLY_ROWS: usize = 256;
/// Rows of a gradient that are worked on at a time.
const VJP_ROWS: usize = 1024;

const FULL: Triangle = Triangle::Full;

/// Most blocks whose inputs are kept for the gradient: beyond, the memory costs more than forming them again.
const KEPT_BLOCKS: usize = 8;

/// How the columns are cut.
#[derive(Clone, Copy)]
struct Blocks {
    width: usize,
    count: usize,
}

/// Where the arrays of one matrix stand in the working memory.
struct Places {
    e: usize,
    ti: usize,
    work: usize,
    len: usize,
}

/// Where the gradient finds what the forward pass leaves behind: T^-1, and per block h and its input rows.
struct Trail {
    ti: usize,
    h: usize,
    y: usize,
    len: usize,
}

/// Arrays of the gradient.
struct Saved {
    q: usize,
    c: usize,
    g: [usize; 2],
    l: usize,
}

/// Whether rows are so few that one reflection after the other is cheaper than T.
fn few(rows: usize) -> bool {
    rows <= FEW_ROWS
}

/// Elements per matrix that [`Householder::apply_keeping`] keeps for so many rows of m reflections of n entries, with or
/// without a last factor; 0 where keeping does not pay.
pub fn apply_keep_len(n: usize, m: usize, rows: usize, last: bool) -> usize {
    let cut = Blocks::new(m, rows);
    let pays = !few(rows) && rows <= VJP_ROWS && cut.count <= KEPT_BLOCKS;
    if pays { Trail::new(cut, rows, n, last).len } else { 0 }
}

impl<T: Scalar> Householder<'_, T> {
    fn apply_places(&self, cut: Blocks, kept: bool) -> Places {
        let mut all = Layout(0);
        Places {
            e: all.take(if self.has_last() { self.n } else { 0 }),
            ti: all.take(if kept { 0 } else { cut.len() }),
            work: all.take(invert_work(cut.width)),
            len: all.0,
        }
    }

    /// Multiply-adds of the triangular matrices of all blocks.
    fn cost_inverses(&self, cut: Blocks) -> usize {
        self.m * cut.width * (self.n / 2 + cut.width / 6)
    }

    /// E and T^-1 of every block. Ends with a barrier.
    ///
    /// # Safety
    /// `memory` has the length of `at`, ti that of the blocks; all members come here.
    unsafe fn inverses(
        &self,
        hand: &Hand<'_, T>,
        b: usize,
        cut: Blocks,
        at: &Places,
        memory: Shared<T>,
        ti: Shared<T>,
    ) {
        // SAFETY: passed on.
        unsafe {
            if self.has_last() {
                self.diagonal(hand, b, memory.at(at.e));
            }
            for block in 0..cut.count {
                let columns = self.columns(b).block(block * cut.width, cut.width);
                columns.inverse(hand, cut.inverse(ti, block), cut.width, memory.at(at.work));
            }
        }
    }

    pub(super) fn apply_cpu(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) {
        let n = self.n;
        if few(rows) {
            return self.apply_few(x, rows, side, out, threads);
        }
        let cut = Blocks::new(self.m, rows);
        let mut at = self.apply_places(cut, false);
        let cost = self.cost_inverses(cut) + rows * self.m * (2 * n + cut.width / 2);
        let threads = members::<T>(self.batch, cost, threads);
        // whole rows for each thread, or, where rows are few, all threads inside the products
        let apart = rows >= APART_ROWS * threads;
        let tall = if apart { rows.div_ceil(threads).clamp(8, APPLY_ROWS) } else { rows };
        let mut all = Layout(at.len);
        let area = 2 * (tall * cut.width).next_multiple_of(16);
        let areas = all.take(area * if apart { threads } else { 1 });
        at.len = all.0;
        let out = Shared(out.as_mut_ptr());
        let product = (n.max(self.m).max(tall), n.max(cut.width));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory: Shared<T>| {
            let x = &x[b * rows * n..(b + 1) * rows * n];
            let (out, ti, e) = (out.at(b * rows * n), Shared(memory.at(at.ti)), memory.at(at.e).cast_const());
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, cut, &at, memory, ti);
                if !apart {
                    self.pass(hand, b, cut, ti, e, side, x.as_ptr(), rows, out, memory.at(areas));
                    return;
                }
                let own = memory.at(areas + hand.member.id * area);
                Member::alone(|member| {
                    let solo = Hand { member, scratch: hand.scratch };
                    for (i, (row, height)) in tiles(rows, tall).enumerate() {
                        if i % hand.member.count == hand.member.id {
                            let (x, out) = (x.as_ptr().add(row * n), out.add(row * n));
                            self.pass(&solo, b, cut, ti, e, side, x, height, out, own);
                        }
                    }
                });
            }
        });
    }

    /// The forward side, with the trail that the gradient follows back.
    pub(super) fn apply_keeping_cpu(
        &self,
        x: &[T],
        rows: usize,
        out: &mut [T],
        keep: &mut [T],
        threads: usize,
    ) {
        let n = self.n;
        let cut = Blocks::new(self.m, rows);
        let (mut at, trail) = (self.apply_places(cut, true), Trail::new(cut, rows, n, self.has_last()));
        let mut all = Layout(at.len);
        let q = all.take(rows * cut.width);
        at.len = all.0;
        let (out, keep) = (Shared(out.as_mut_ptr()), Shared(keep.as_mut_ptr()));
        let cost = self.cost_inverses(cut) + rows * self.m * (2 * n + cut.width / 2);
        let threads = members::<T>(self.batch, cost, threads);
        let product = (n.max(self.m).max(rows), n.max(cut.width));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory: Shared<T>| {
            let start = b * rows * n;
            let kept = Shared(keep.at(b * trail.len));
            let chunk = Chunk { b, x: x[start..].as_ptr(), ct: std::ptr::null(), rows, first: true, start };
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, cut, &at, memory, Shared(kept.at(trail.ti)));
                let way = Way { cut, trail: &trail, kept, e: memory.at(at.e), q: memory.at(q) };
                self.trace(hand, &way, &chunk, Some(out.at(start)));
            }
        });
    }

    /// Takes rows through W or W^H.
    ///
    /// # Safety
    /// x and out have `rows` rows, `area` room for two arrays of rows x width; T^-1 and E are complete.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one pass")]
    unsafe fn pass(
        &self,
        hand: &Hand<'_, T>,
        b: usize,
        cut: Blocks,
        ti: Shared<T>,
        e: *const T,
        side: Side,
        x: *const T,
        rows: usize,
        out: *mut T,
        area: *mut T,
    ) {
        let (q, h) = (area, area.wrapping_add((rows * cut.width).next_multiple_of(16)));
        // SAFETY: the caller's contract; a barrier stands wherever one member reads what others wrote.
        unsafe {
            let mut source = x;
            if side == Side::Forward && self.has_last() || cut.count == 0 {
                self.scaled(hand, x, rows, e, side == Side::Adjoint, out);
                hand.barrier();
                source = out;
            }
            for step in 0..cut.count {
                let block = if side == Side::Forward { cut.count - 1 - step } else { step };
                let columns = self.columns(b).block(block * cut.width, cut.width);
                let ti = cut.inverse(ti, block);
                self.coefficients(hand, columns, ti, cut.width, side, source, rows, q, h);
                self.subtract(hand, columns, source, h, cut.width, rows, out);
                hand.barrier();
                source = out;
            }
            if side == Side::Adjoint && self.has_last() && cut.count > 0 {
                self.scaled(hand, out, rows, e, true, out);
            }
        }
    }

    /// out = E x or conj(E) x; a copy where there is no E. No barrier.
    unsafe fn scaled(
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
                // SAFETY: the row is this member's; `e` is read only where there is one.
                unsafe {
                    let value = *x.add(i * n + j);
                    let by = if self.has_last() { *e.add(j) } else { T::one() };
                    *out.add(i * n + j) = value * if conj { by.conj() } else { by };
                }
            }
        }
    }

    /// h = Y conj(U) (T^-1)^T, or Y conj(U) conj(T^-1). Ends with a barrier.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one step")]
    unsafe fn coefficients(
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
        // SAFETY: the caller's contract.
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
    unsafe fn subtract(
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
        let product = product.onto(y.wrapping_add(top), n).shapes(FULL, columns.shape_t(), FULL);
        // SAFETY: the caller's contract; the columns before `top` stay what they are.
        unsafe {
            hand.mul(product);
            if !std::ptr::eq(y, out) && top > 0 {
                for i in hand.member.share(rows, 1) {
                    std::ptr::copy_nonoverlapping(y.add(i * n), out.add(i * n), top);
                }
            }
        }
    }

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
    ) {
        let Gradients { mut vectors, sign, phases } = gradients;
        let mut last = sign.or(phases);
        // sums over rows start from zero, also over no rows at all
        if let Some(last) = &mut last {
            last.fill(T::Real::zero());
        }
        if rows == 0 {
            if let Some(vectors) = &mut vectors {
                vectors.fill(T::zero());
            }
            return;
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
        let cut = Blocks::new(self.m, rows);
        let (width, blocks) = (cut.width, cut.count);
        let tall = rows.min(VJP_ROWS);
        let (mut at, trail) = (self.apply_places(cut, true), Trail::new(cut, tall, n, self.has_last()));
        let mut all = Layout(at.len);
        let ping = if blocks > 1 || wants.cotangent() { tall * n } else { 0 };
        let own = all.take(if kept.is_some() { 0 } else { trail.len });
        let saved = Saved {
            q: all.take(tall * width),
            c: all.take(tall * width),
            g: [all.take(ping), all.take(if blocks > 1 { ping } else { 0 })],
            l: all.take(blocks * width * width),
        };
        at.len = all.0;
        // only read where it was given
        let kept = kept.map(|kept| Shared(kept.as_ptr().cast_mut()));
        let cost = self.cost_inverses(cut) + self.m * (5 * rows * n + 3 * rows * width / 2 + 2 * n * width);
        let threads = members::<T>(self.batch, cost, threads);
        let product = (n.max(self.m).max(tall), n.max(width).max(tall));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory: Shared<T>| {
            let trace = Shared(kept.map_or(memory.at(own), |kept| kept.at(b * trail.len)));
            let way = Way { cut, trail: &trail, kept: trace, e: memory.at(at.e), q: memory.at(saved.q) };
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                match kept {
                    None => self.inverses(hand, b, cut, &at, memory, Shared(trace.at(trail.ti))),
                    Some(_) if self.has_last() => self.diagonal(hand, b, memory.at(at.e)),
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
                    self.pull(hand, &way, &saved, &wants, memory, &chunk);
                    hand.barrier();
                }
                let Some(vectors) = wants.vectors else { return };
                for block in 0..blocks {
                    let (l, m) = (memory.at(saved.l + block * width * width), self.m);
                    symmetrize(hand, l, width, width.min(m - block * width));
                }
                hand.barrier();
                for block in 0..blocks {
                    let l = Operand::new(memory.at(saved.l + block * width * width), width);
                    let columns = self.columns(b).block(block * width, width);
                    let ubar = vectors.at((b * n + columns.top) * self.m + block * width);
                    let sizes = (columns.n, columns.m, columns.m);
                    let product = Product::new(sizes, columns.operand(), l, ubar, self.m).add();
                    hand.mul(product.shapes(columns.shape, FULL, FULL));
                }
            }
        });
    }

    fn sizes(&self, b: usize, rows: usize) -> Sizes<T> {
        Sizes { u: self.columns(b).u, n: self.n, m: self.m, rows }
    }

    /// One matrix per thread at a time; alone where there is less than one for each.
    fn members_few(&self, cost: usize, threads: usize) -> usize {
        let threads = members::<T>(self.batch, cost, threads);
        if self.batch < threads { 1 } else { threads }
    }

    fn apply_few(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) {
        let n = self.n;
        let mut all = Layout(0);
        let e = all.take(if self.has_last() { n } else { 0 });
        let work = all.take(self.sizes(0, rows).work(1, 1));
        let out = Shared(out.as_mut_ptr());
        let threads = self.members_few(2 * rows * n * self.m, threads);
        each_alone(self.batch, threads, all.0, |hand: &Hand<'_, T>, b, memory: Shared<T>| {
            let (x, out) = (x[b * rows * n..].as_ptr(), out.at(b * rows * n));
            let (e, forward) = (memory.at(e), side == Side::Forward);
            // SAFETY: the arrays were checked to have their sizes; this member owns matrix b.
            unsafe {
                if self.has_last() {
                    self.diagonal(hand, b, e);
                }
                if forward && self.has_last() {
                    self.scaled(hand, x, rows, e, false, out);
                } else {
                    std::ptr::copy_nonoverlapping(x, out, rows * n);
                }
                dispatch(Pass { sizes: self.sizes(b, rows), forward, y: out, work: memory.at(work) });
                if !forward && self.has_last() {
                    self.scaled(hand, out, rows, e, true, out);
                }
            }
        });
    }

    /// The whole gradient of few rows, in the roles of the forward side.
    fn pull_few(&self, x: &[T], ct: &[T], rows: usize, wants: &Wants<T>, threads: usize) {
        let n = self.n;
        let mut all = Layout(0);
        let last = |len: usize| if self.has_last() { len } else { 0 };
        let [e, y, g] = [last(n), last(rows * n), rows * n].map(|len| all.take(len));
        let work = all.take(self.sizes(0, rows).work(2, 2));
        let threads = self.members_few(6 * rows * n * self.m, threads);
        each_alone(self.batch, threads, all.0, |hand: &Hand<'_, T>, b, memory: Shared<T>| {
            let start = b * rows * n;
            let (x, e) = (x[start..].as_ptr(), memory.at(e));
            let mut g = memory.at(g);
            let mut y = memory.at(y).cast_const();
            let null = std::ptr::null_mut();
            let mut c = null;
            if let Some(x_bar) = wants.x_bar {
                *(if wants.side == Side::Forward { &mut g } else { &mut c }) = x_bar.at(start);
            }
            let u_bar = wants.vectors.map_or(null, |all| all.at(b * n * self.m));
            // SAFETY: as in `apply_few`.
            unsafe {
                if self.has_last() {
                    self.diagonal(hand, b, e);
                    self.scaled(hand, x, rows, e, false, y.cast_mut());
                } else {
                    y = x;
                }
                std::ptr::copy_nonoverlapping(ct[start..].as_ptr(), g, rows * n);
                dispatch(Pull { sizes: self.sizes(b, rows), y, g, c, u_bar, work: memory.at(work) });
                let chunk = Chunk { b, x, ct: ct[start..].as_ptr(), rows, first: true, start };
                self.through_last(hand, wants, &chunk, e, g, y);
            }
        });
    }

    /// Takes rows forward through all blocks, leaving h and the input of each behind; the result is formed if asked for.
    /// Ends with a barrier.
    ///
    /// # Safety
    /// The arrays exist; T^-1 and E are complete; all members come here.
    unsafe fn trace(&self, hand: &Hand<'_, T>, way: &Way<'_, T>, chunk: &Chunk<T>, out: Option<*mut T>) {
        let (n, Blocks { width, count }) = (self.n, way.cut);
        by_rows(hand, chunk.rows, |hand, own| {
            let (from, rows) = (own.start, own.len());
            let y = |block: usize| self.input(way, chunk, block).wrapping_add(from * n);
            let out = out.map(|out| out.wrapping_add(from * n));
            let x = chunk.x.wrapping_add(from * n);
            // SAFETY: the caller's contract; a barrier stands wherever one member reads what others wrote.
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

    /// The input rows of a block.
    fn input(&self, way: &Way<'_, T>, chunk: &Chunk<T>, block: usize) -> *mut T {
        if block + 1 >= way.cut.count && !self.has_last() {
            return chunk.x.cast_mut();
        }
        way.kept.at(way.trail.y + block * chunk.rows * self.n)
    }

    /// The part of the gradient that some rows give, once they were traced.
    ///
    /// # Safety
    /// The arrays exist; the trail and E are complete; all members come here.
    unsafe fn pull(
        &self,
        hand: &Hand<'_, T>,
        way: &Way<'_, T>,
        saved: &Saved,
        wants: &Wants<T>,
        memory: Shared<T>,
        chunk: &Chunk<T>,
    ) {
        let (n, Blocks { width, count }, rows) = (self.n, way.cut, chunk.rows);
        let top = count.max(1) - 1;
        let x_bar = wants.x_bar.map(|x_bar| x_bar.at(chunk.start));
        let c = memory.at(saved.c);
        // SAFETY: the caller's contract; a barrier stands wherever one member reads what others wrote.
        unsafe {
            let mut g = chunk.ct;
            for block in 0..count {
                let columns = self.columns(chunk.b).block(block * width, width);
                by_rows(hand, rows, |hand, own| {
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
                    let l = memory.at(saved.l + block * width * width);
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
                    let next = straight.unwrap_or(memory.at(saved.g[block % 2]));
                    by_rows(hand, rows, |hand, own| {
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

    /// From the cotangent g of y = E x: the gradient of E, and x_bar = conj(E) g of the forward side.
    ///
    /// # Safety
    /// The arrays exist; g is complete.
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
        // SAFETY: the columns are this member's.
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

impl Blocks {
    /// One block from m rows on, else blocks, whose T costs n width m instead of n m^2.
    fn new(m: usize, rows: usize) -> Self {
        let width = match rows {
            _ if rows >= m => m.max(1),
            129.. => m.min(64),
            _ => m.min(32),
        };
        Blocks { width, count: m.div_ceil(width) }
    }

    /// Elements of all T^-1.
    fn len(self) -> usize {
        self.count * self.width * self.width
    }

    /// T^-1 of a block, rows `width` apart.
    fn inverse<T>(self, ti: Shared<T>, block: usize) -> *mut T {
        ti.at(block * self.width * self.width)
    }
}

impl Trail {
    /// For up to `tall` rows at a time. The input of the last block is x where there is no last factor.
    fn new(cut: Blocks, tall: usize, n: usize, last: bool) -> Self {
        let slots = cut.count.max(1) - usize::from(!last);
        let mut all = Layout(0);
        Trail {
            ti: all.take(cut.len()),
            h: all.take(cut.count * tall * cut.width),
            y: all.take(slots * tall * n),
            len: all.0,
        }
    }
}

/// The arrays that lead from x to the result, and back.
struct Way<'a, T> {
    cut: Blocks,
    trail: &'a Trail,
    /// Where the trail lies.
    kept: Shared<T>,
    e: *const T,
    /// Working memory of rows x width.
    q: *mut T,
}

impl<T> Way<'_, T> {
    fn inverse(&self, block: usize) -> *mut T {
        self.cut.inverse(Shared(self.kept.at(self.trail.ti)), block)
    }

    /// h of a block, for chunks of so many rows.
    fn h(&self, block: usize, rows: usize) -> *mut T {
        self.kept.at(self.trail.h + block * rows * self.cut.width)
    }
}

/// Runs `f` on all rows: each member alone on its own, or, where rows are few, all together. Ends with a barrier.
fn by_rows<T: Scalar>(hand: &Hand<'_, T>, rows: usize, f: impl Fn(&Hand<'_, T>, Range<usize>)) {
    if rows >= APART_ROWS * hand.member.count {
        let own = hand.member.share(rows, 8);
        Member::alone(|member| f(&Hand { member, scratch: hand.scratch }, own));
    } else {
        f(hand, 0..rows);
    }
    hand.barrier();
}

/// Which gradients are wanted.
struct Wants<T: Scalar> {
    side: Side,
    vectors: Option<Shared<T>>,
    last: Option<Shared<T::Real>>,
    x_bar: Option<Shared<T>>,
}

impl<T: Scalar> Wants<T> {
    /// The cotangent of y = E x is needed.
    fn cotangent(&self) -> bool {
        self.last.is_some() || (self.side == Side::Forward && self.x_bar.is_some())
    }
}

/// Some rows of matrix b, in the roles of the forward side.
struct Chunk<T> {
    b: usize,
    x: *const T,
    ct: *const T,
    rows: usize,
    /// Sums over rows start here.
    first: bool,
    /// Where the rows start in x_bar.
    start: usize,
}
