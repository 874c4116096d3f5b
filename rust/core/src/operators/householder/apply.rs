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

/// Up to so many rows, one reflection after the other.
const FEW_ROWS: usize = 8;
/// Rows that one thread takes through all blocks of an apply.
const APPLY_ROWS: usize = 256;
/// Rows of a gradient that are worked on at a time.
const VJP_ROWS: usize = 1024;

const FULL: Triangle = Triangle::Full;

/// How the columns are cut, and where the arrays of one matrix stand in the working memory.
struct Places {
    /// Columns of a block and number of blocks.
    width: usize,
    blocks: usize,
    e: usize,
    ti: usize,
    work: usize,
    len: usize,
}

/// Arrays of the gradient.
struct Saved {
    q: usize,
    c: usize,
    h: usize,
    y: usize,
    g: [usize; 2],
    l: usize,
}

impl<T: Scalar> Householder<'_, T> {
    /// One block from `many` rows on, else blocks, whose T costs n width m instead of n m^2.
    fn apply_places(&self, rows: usize, many: usize) -> Places {
        let (n, m) = (self.n, self.m);
        let width = match rows {
            _ if rows >= many => m.max(1),
            129.. => m.min(64),
            _ => m.min(32),
        };
        let mut all = Layout(0);
        Places {
            width,
            blocks: m.div_ceil(width),
            e: all.take(if self.has_last() { n } else { 0 }),
            ti: all.take(m.next_multiple_of(width) * width),
            work: all.take(invert_work(width)),
            len: all.0,
        }
    }

    /// Multiply-adds of the triangular matrices of all blocks.
    fn cost_inverses(&self, at: &Places) -> usize {
        self.m * at.width * (self.n / 2 + at.width / 6)
    }

    /// E and T^-1 of every block. Ends with a barrier.
    ///
    /// # Safety
    /// `memory` has the length of `at`; all members come here.
    unsafe fn inverses(&self, hand: &Hand<'_, T>, b: usize, at: &Places, memory: Shared<T>) {
        // SAFETY: passed on.
        unsafe {
            if self.has_last() {
                self.diagonal(hand, b, memory.at(at.e));
            }
            for block in 0..at.blocks {
                let columns = self.columns(b).block(block * at.width, at.width);
                columns.inverse(hand, at.inverse(memory, block), at.width, memory.at(at.work));
            }
        }
    }

    /// Whether rows are so few that one reflection after the other is cheaper than T.
    fn few(&self, rows: usize) -> bool {
        rows <= FEW_ROWS
    }

    pub(super) fn apply_cpu(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) {
        let n = self.n;
        if self.few(rows) {
            return self.apply_few(x, rows, side, out, threads);
        }
        let mut at = self.apply_places(rows, 4 * self.m);
        let cost = self.cost_inverses(&at) + rows * self.m * (2 * n + at.width / 2);
        let threads = members::<T>(self.batch, cost, threads);
        // whole rows for each thread, or, where rows are few, all threads inside the products
        let apart = rows >= 16 * threads;
        let tall = if apart { rows.div_ceil(threads).clamp(8, APPLY_ROWS) } else { rows };
        let mut all = Layout(at.len);
        let area = 2 * (tall * at.width).next_multiple_of(16);
        let areas = all.take(area * if apart { threads } else { 1 });
        at.len = all.0;
        let out = Shared(out.as_mut_ptr());
        let product = (n.max(self.m).max(tall), n.max(at.width));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory| {
            let x = &x[b * rows * n..(b + 1) * rows * n];
            let out = out.at(b * rows * n);
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, &at, memory);
                if !apart {
                    self.pass(hand, b, &at, memory, side, x.as_ptr(), rows, out, memory.at(areas));
                    return;
                }
                let own = memory.at(areas + hand.member.id * area);
                Member::alone(|member| {
                    let solo = Hand { member, scratch: hand.scratch };
                    for (i, (row, height)) in tiles(rows, tall).enumerate() {
                        if i % hand.member.count == hand.member.id {
                            let (x, out) = (x.as_ptr().add(row * n), out.add(row * n));
                            self.pass(&solo, b, &at, memory, side, x, height, out, own);
                        }
                    }
                });
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
        at: &Places,
        memory: Shared<T>,
        side: Side,
        x: *const T,
        rows: usize,
        out: *mut T,
        area: *mut T,
    ) {
        let (q, h) = (area, area.wrapping_add((rows * at.width).next_multiple_of(16)));
        let e = memory.at(at.e).cast_const();
        // SAFETY: the caller's contract; a barrier stands wherever one member reads what others wrote.
        unsafe {
            let mut source = x;
            if side == Side::Forward && self.has_last() || at.blocks == 0 {
                self.scaled(hand, x, rows, e, side == Side::Adjoint, out);
                hand.barrier();
                source = out;
            }
            for step in 0..at.blocks {
                let block = if side == Side::Forward { at.blocks - 1 - step } else { step };
                let columns = self.columns(b).block(block * at.width, at.width);
                let ti = at.inverse(memory, block);
                self.coefficients(hand, columns, ti, at.width, side, source, rows, q, h);
                self.subtract(hand, columns, source, h, at.width, rows, out);
                hand.barrier();
                source = out;
            }
            if side == Side::Adjoint && self.has_last() && at.blocks > 0 {
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
        let (n, m) = (columns.n, columns.m);
        let ti = Operand::new(ti, width);
        let (ti, shape) =
            if side == Side::Forward { (ti.t(), Triangle::Lower) } else { (ti.conj(), Triangle::Upper) };
        // SAFETY: the caller's contract.
        unsafe {
            hand.mul(Product::new((rows, m, n), Operand::new(y, n), columns.operand().conj(), q, width));
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
        let (n, m) = (columns.n, columns.m);
        let product = Product::new((rows, n, m), Operand::new(h, width), columns.operand().t(), out, n);
        // SAFETY: the caller's contract.
        unsafe { hand.mul(product.alpha(-1.0).onto(y, n)) }
    }

    #[allow(clippy::too_many_arguments, reason = "the call of the seam, one to one")]
    pub(super) fn apply_vjp_cpu(
        &self,
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
        if self.few(rows) {
            return self.pull_few(x, ct, rows, &wants, threads);
        }
        // blocks go through the rows once more: to form the inputs of all of them
        let mut at = self.apply_places(rows, self.m);
        let (width, blocks) = (at.width, at.blocks);
        let tall = rows.min(VJP_ROWS);
        let mut all = Layout(at.len);
        let slots = blocks.max(1) - usize::from(!self.has_last());
        let ping = if blocks > 1 || wants.cotangent() { tall * n } else { 0 };
        let saved = Saved {
            q: all.take(tall * width),
            c: all.take(tall * width),
            h: all.take(blocks * tall * width),
            y: all.take(slots * tall * n),
            g: [all.take(ping), all.take(if blocks > 1 { ping } else { 0 })],
            l: all.take(blocks * width * width),
        };
        at.len = all.0;
        let cost = self.cost_inverses(&at) + self.m * (5 * rows * n + 3 * rows * width / 2 + 2 * n * width);
        let threads = members::<T>(self.batch, cost, threads);
        let product = (n.max(self.m).max(tall), n.max(width).max(tall));
        over(self.batch, cost, threads, at.len, product, |hand, b, memory| {
            // SAFETY: the arrays were checked to have their sizes; members write disjoint parts between barriers.
            unsafe {
                self.inverses(hand, b, &at, memory);
                for (row, height) in tiles(rows, VJP_ROWS) {
                    let start = (b * rows + row) * n;
                    let (x, ct) = (x[start..].as_ptr(), ct[start..].as_ptr());
                    let chunk = Chunk { b, x, ct, rows: height, first: row == 0, start };
                    self.pull(hand, &at, &saved, &wants, memory, &chunk);
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
                    let ubar = vectors.at(b * n * self.m + block * width);
                    let product = Product::new((n, columns.m, columns.m), columns.operand(), l, ubar, self.m);
                    hand.mul(product.add());
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

    /// The part of the gradient that some rows give.
    ///
    /// # Safety
    /// The arrays exist; T^-1 and E are complete; all members come here.
    unsafe fn pull(
        &self,
        hand: &Hand<'_, T>,
        at: &Places,
        saved: &Saved,
        wants: &Wants<T>,
        memory: Shared<T>,
        chunk: &Chunk<T>,
    ) {
        let (n, width, rows, top) = (self.n, at.width, chunk.rows, at.blocks.max(1) - 1);
        let e = memory.at(at.e).cast_const();
        let y = |block: usize| match block == top && !self.has_last() {
            true => chunk.x.cast_mut(),
            false => memory.at(saved.y + block * rows * n),
        };
        let h = |block: usize| memory.at(saved.h + block * rows * width);
        let x_bar = wants.x_bar.map(|x_bar| x_bar.at(chunk.start));
        let (q, c) = (memory.at(saved.q), memory.at(saved.c));
        let adjoint_bar = x_bar.filter(|_| wants.side == Side::Adjoint);
        // SAFETY: the caller's contract; a barrier stands wherever one member reads what others wrote.
        unsafe {
            if self.has_last() {
                self.scaled(hand, chunk.x, rows, e, false, y(top));
                hand.barrier();
            }
            for block in (0..at.blocks).rev() {
                let columns = self.columns(chunk.b).block(block * width, width);
                let ti = at.inverse(memory, block);
                self.coefficients(hand, columns, ti, width, Side::Forward, y(block), rows, q, h(block));
                let below = if block > 0 { Some(y(block - 1)) } else { adjoint_bar };
                if let Some(below) = below {
                    self.subtract(hand, columns, y(block), h(block), width, rows, below);
                    hand.barrier();
                }
            }
            if let (0, Some(x_bar)) = (at.blocks, adjoint_bar) {
                self.scaled(hand, chunk.x, rows, e, false, x_bar);
            }

            let mut g = chunk.ct;
            for block in 0..at.blocks {
                let columns = self.columns(chunk.b).block(block * width, width);
                let ti = at.inverse(memory, block);
                self.coefficients(hand, columns, ti, width, Side::Adjoint, g, rows, q, c);
                if let Some(vectors) = wants.vectors {
                    let m = columns.m;
                    let (h, c) = (Operand::new(h(block), width), Operand::new(c, width));
                    let l = memory.at(saved.l + block * width * width);
                    let ubar = vectors.at(chunk.b * n * self.m + block * width);
                    let add = |product: Product<T>| if chunk.first { product } else { product.add() };
                    let l = Product::new((m, m, rows), h.t(), c.conj(), l, width);
                    hand.mul(add(l.shapes(FULL, FULL, Triangle::Lower)));
                    let (g, y) = (Operand::new(g, n).t(), Operand::new(y(block), n).t());
                    let outer = |a, b| Product::new((n, m, rows), a, b, ubar, self.m).alpha(-1.0);
                    hand.mul(add(outer(g, h.conj())));
                    hand.mul(outer(y, c.conj()).add());
                }
                if block < top || wants.cotangent() {
                    let straight = x_bar.filter(|_| block == top && wants.side == Side::Forward);
                    let next = straight.unwrap_or(memory.at(saved.g[block % 2]));
                    self.subtract(hand, columns, g, c, width, rows, next);
                    g = next;
                }
                hand.barrier();
            }
            self.through_last(hand, wants, chunk, e, g, y(top));
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

impl Places {
    /// T^-1 of a block, rows `width` apart.
    fn inverse<T>(&self, memory: Shared<T>, block: usize) -> *mut T {
        memory.at(self.ti + block * self.width * self.width)
    }
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
