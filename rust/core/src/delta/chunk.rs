//! One chunk of C rows: what both passes compute of it. With c the sums of the logarithms of the gates in the chunk,
//! D_ij = e^(c_i - c_j) for j <= i, else 0, and S the state before the chunk:
//!
//! ```text
//! A = strictly lower part of diag(beta) (K K^T * D),    P = scale Q K^T * D
//! U = (I + A)^-1 diag(beta) (V - (e^c * K) S)
//! O = scale (e^c * Q) S + P U
//! S' = e^(c_C) S + (e^(c_C - c) * K)^T U
//! ```
//!
//! The triangles are stored transposed: X = (I + A)^T is upper triangular and inverted in place, `p` is P^T. Queries are the
//! rows behind the keys; the one of token t stands at row `first + t m`, the last of its token.

use super::head::Head;
use super::workspace::{Pitches, Triangles, Workspace};
use super::{Delta, Gate};
use crate::kernels::{Operand, Product, Triangle, invert_upper};
use crate::parallel::Member;
use crate::scalar::Real;
use crate::scratch::Region;
use isometry_kernels::delta::{Decays, Exps, Masked, Matrix, Spread, Unit, WideGram, Within};
use std::ops::Range;

/// What is added to |x|^2 before a row is divided by its root.
pub const EPSILON: f64 = 1e-6;

/// The chunks of some rows of a sequence.
pub fn chunks(
    rows: Range<usize>,
    most: usize,
) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator + Clone {
    let Range { start, end } = rows;
    (0..(end - start).div_ceil(most)).map(move |i| start + i * most..end.min(start + (i + 1) * most))
}

/// A chunk in the memory of a thread.
pub struct Chunk<'a, R: Real> {
    pub delta: &'a Delta<'a, R>,
    pub workspace: &'a Workspace<R>,
    pub pitch: Pitches,
    /// Its share of the columns of V, in what is computed with the state.
    pub member: &'a Member<'a>,
    /// Those of the workspace, or of another.
    pub triangles: &'a Triangles<R>,
    pub head: Head<R>,
    /// Its rows in the sequence, and the tokens whose last row is among them.
    pub rows: Range<usize>,
    pub tokens: Range<usize>,
    /// The first row of the chunk that is computed next.
    pub next: usize,
    /// Its rows from this one on are taken as zeros.
    pub live: usize,
}

impl<'a, R: Real> Chunk<'a, R> {
    pub fn new(
        delta: &'a Delta<'a, R>,
        workspace: &'a Workspace<R>,
        member: &'a Member<'a>,
        head: Head<R>,
        rows: Range<usize>,
        next: usize,
    ) -> Self {
        let m = delta.householders;
        let tokens = rows.start / m..rows.end / m;
        Chunk {
            delta,
            workspace,
            pitch: Pitches::new(delta),
            member,
            triangles: &workspace.triangles,
            head,
            live: rows.len(),
            rows,
            tokens,
            next,
        }
    }

    /// Rows (or if `tokens`, tokens) of the next chunk, to prefetch.
    pub fn soon(&self, x: Matrix<R>, tokens: bool) -> (*const R, usize) {
        let first = if tokens { self.next / self.delta.householders } else { self.next };
        (x.row(first).cast_const(), x.pitch)
    }

    /// Rows, queries, and the row of the first query.
    pub fn sizes(&self) -> (usize, usize, usize) {
        let m = self.delta.householders;
        (self.rows.len(), self.tokens.len(), ((self.tokens.start + 1) * m - 1).wrapping_sub(self.rows.start))
    }

    /// The row of query t.
    pub fn row_of(&self, t: usize) -> usize {
        self.sizes().2 + t * self.delta.householders
    }

    /// The shape of P^T: a triangle if every row has a query.
    pub fn shape(&self) -> Triangle {
        if self.delta.householders == 1 { Triangle::Upper } else { Triangle::Full }
    }

    pub fn gated(&self) -> bool {
        !self.head.g.at.is_null()
    }

    pub fn wide(&self) -> bool {
        matches!(self.delta.gate, Gate::Row(_))
    }

    /// Numbers of a gate.
    pub fn width(&self) -> usize {
        if self.wide() { self.pitch.key } else { 1 }
    }

    pub fn kq(&self) -> Matrix<R> {
        Matrix { at: self.workspace.kq.ptr(), pitch: self.pitch.key }
    }

    /// Keys and queries times e^c.
    pub fn early(&self) -> Matrix<R> {
        if self.gated() { Matrix { at: self.workspace.early.ptr(), ..self.kq() } } else { self.kq() }
    }

    /// Keys times e^(c_C - c).
    pub fn late(&self) -> Matrix<R> {
        if self.gated() { Matrix { at: self.workspace.late.ptr(), ..self.kq() } } else { self.kq() }
    }

    pub fn w(&self) -> Matrix<R> {
        Matrix { at: self.workspace.w.ptr(), pitch: self.pitch.value }
    }

    pub fn u(&self) -> Matrix<R> {
        Matrix { at: self.workspace.u.ptr(), pitch: self.pitch.value }
    }

    /// A matrix of the width of the chunk.
    pub fn square(&self, place: Region<R>) -> Matrix<R> {
        Matrix { at: place.ptr(), pitch: self.pitch.square }
    }

    /// Factors: e^c of the keys, then of the queries, or e^(c_C - c); null without gates.
    pub fn factors(&self, place: Region<R>) -> Matrix<R> {
        if self.gated() { Matrix { at: place.ptr(), pitch: self.width() } } else { Matrix::none() }
    }

    /// The decay of the state over the chunk, at a stride of 0 or 1; null without gates.
    pub fn total(&self) -> Matrix<R> {
        let last =
            self.factors(self.workspace.before).from(if self.gated() { self.rows.len() - 1 } else { 0 });
        Matrix { pitch: usize::from(self.wide()), ..last }
    }

    /// C = A B of these sizes (m, n, k), or what `with` makes of it.
    ///
    /// # Safety
    /// The matrices exist.
    pub unsafe fn product(
        &self,
        sizes: (usize, usize, usize),
        a: Operand<R>,
        b: Operand<R>,
        c: Matrix<R>,
        with: impl FnOnce(Product<R>) -> Product<R>,
    ) {
        if sizes.0 > 0 && sizes.1 > 0 {
            let product = with(Product::new(sizes, a, b, c.at, c.pitch));
            // SAFETY: the caller's; the scratch is for the largest of these products.
            unsafe { product.run(self.member, self.workspace.scratch.ptr()) }
        }
    }

    /// All that does not depend on the state.
    ///
    /// # Safety
    /// The head's rows exist; the workspace is this thread's.
    pub unsafe fn prepare(&self) {
        // SAFETY: the caller's.
        unsafe {
            self.spread(true, true);
            self.multiply();
        }
    }

    /// The triangles alone.
    ///
    /// # Safety
    /// As of [`Chunk::prepare`].
    pub unsafe fn triangulate(&self) {
        // SAFETY: the caller's.
        unsafe {
            self.spread(true, false);
            self.multiply();
        }
    }

    /// What the step from state to state needs besides the triangles.
    ///
    /// # Safety
    /// As of [`Chunk::prepare`].
    pub unsafe fn decayed(&self) {
        // SAFETY: the caller's.
        unsafe { self.spread(!self.gated(), true) }
    }

    /// Gates and their products over rows, beta, keys and queries if `plain`, and if `decayed` those times the products.
    ///
    /// # Safety
    /// As of [`Chunk::prepare`].
    unsafe fn spread(&self, plain: bool, decayed: bool) {
        let (workspace, key) = (self.workspace, self.delta.key);
        let (c, queries, _) = self.sizes();
        let kq = self.kq();
        // SAFETY: as above; every array has the rows and columns of a chunk.
        unsafe {
            for i in 0..c {
                let beta = if i < self.live { *self.head.beta.row(self.rows.start + i) } else { R::zero() };
                *workspace.beta.at(i) = beta;
            }
            let (k, q) = (self.head.k.from(self.rows.start), self.head.q.from(self.tokens.start));
            self.gates();
            let unit = workspace.unit.ptr();
            for (x, rows, at, scale) in [(k, c, 0, 1.0), (q, queries, c, self.delta.scale)] {
                let (scale, by) = (R::of(scale), unit.wrapping_add(at));
                for i in 0..rows {
                    *by.add(i) = R::one();
                }
                if self.delta.normalise {
                    let (y_bar, epsilon) = (Matrix::none(), R::of(EPSILON));
                    Unit { x, y_bar, by, epsilon, rows, n: key }.call();
                }
                for i in 0..rows {
                    *by.add(i) *= scale;
                }
                let (before, after) = (self.factors(workspace.before), self.factors(workspace.after));
                let gated = |to: Matrix<R>| if self.gated() && decayed { to } else { Matrix::none() };
                let late = if at == 0 { gated(self.late()) } else { Matrix::none() };
                let early = gated(self.early()).from(at);
                // else one row after another in one place
                let out = if plain { kq.from(at) } else { Matrix { pitch: 0, ..kq } };
                let wide = self.wide();
                let live = match at {
                    0 => self.live,
                    _ => (0..rows).take_while(|&t| self.row_of(t) < self.live).count(),
                };
                Spread { x, by, out, early, before: before.from(at), late, after, wide, rows: live, n: key }
                    .call();
                for to in [out, early, late].into_iter().filter(|to| !to.at.is_null()) {
                    to.row(live).write_bytes(0, (rows - live) * to.pitch);
                }
            }
        }
    }

    /// The decays inside the chunk, K K^T * D, X^-1 and P^T.
    ///
    /// # Safety
    /// As of [`Chunk::prepare`]; keys and queries are in place.
    unsafe fn multiply(&self) {
        let (workspace, key, kq) = (self.workspace, self.delta.key, self.kq());
        let (c, queries, first) = self.sizes();
        let (gram, p) = (self.square(workspace.gram), self.square(self.triangles.p));
        // SAFETY: every array has the rows and columns of a chunk.
        unsafe {
            self.decays();
            if self.wide() {
                self.gram(gram, p, first).call();
            } else {
                let (k, q) = (Operand::new(kq.at, kq.pitch), Operand::new(kq.row(c), kq.pitch));
                let shaped = |shape| move |x: Product<R>| x.shapes(Triangle::Full, Triangle::Full, shape);
                self.product((c, c, key), k, k.t(), gram, shaped(Triangle::Upper));
                self.product((c, queries, key), k, q.t(), p, shaped(self.shape()));
                let (decay, upper) = (self.square(workspace.decay), self.shape() == Triangle::Upper);
                Masked { x: gram, y: decay, out: gram, upper: true, rows: c, n: c }.call();
                let of_queries = self.of_queries();
                Masked { x: p, y: of_queries, out: p, upper, rows: c, n: queries }.call();
            }
            let (x, beta) =
                (self.square(self.triangles.inverse), Matrix { at: workspace.beta.ptr(), pitch: 0 });
            Masked { x: gram, y: beta, out: x, upper: true, rows: c, n: c }.call();
            for i in 0..c {
                *x.row(i).add(i) = R::one();
            }
            invert_upper(self.member, x.at, x.pitch, c, workspace.work, workspace.scratch.ptr());
        }
    }

    /// The products of keys and queries where every row of the state has its gate.
    pub fn gram(&self, g: Matrix<R>, p: Matrix<R>, first: usize) -> WideGram<R> {
        let (kq, (c, queries, _)) = (self.kq(), self.sizes());
        WideGram {
            k: kq,
            q: kq.from(c),
            a: Matrix { at: self.workspace.a.ptr(), pitch: self.pitch.key },
            g,
            p,
            own: self.workspace.row.ptr(),
            rows: c,
            queries,
            first,
            every: self.delta.householders,
            n: self.delta.key,
        }
    }

    /// The gates of the rows, and their products.
    unsafe fn gates(&self) {
        let (workspace, m, key) = (self.workspace, self.delta.householders, self.delta.key);
        let (c, queries, _) = self.sizes();
        let (n, width) = if self.wide() { (key, self.pitch.key) } else { (1, 1) };
        let a = Matrix { at: workspace.a.ptr(), pitch: width };
        // SAFETY: every array has the rows of a chunk.
        unsafe {
            if self.gated() {
                for i in 0..c {
                    let row = self.rows.start + i;
                    let gated = row.is_multiple_of(m) && i < self.live;
                    for d in 0..n {
                        *a.row(i).add(d) = if gated { *self.head.g.row(row / m).add(d) } else { R::of(0.0) };
                    }
                    if self.wide() {
                        Exps { g: a.row(i), out: a.row(i), n }.call();
                    }
                }
                if !self.wide() {
                    Exps { g: a.at, out: a.at, n: c }.call();
                }
                let (before, after) = (self.factors(workspace.before), self.factors(workspace.after));
                Decays { a, before, after, rows: c, n }.call();
                for t in 0..queries {
                    let row = before.row(self.row_of(t));
                    std::ptr::copy_nonoverlapping(row, before.row(c + t), n);
                }
            }
        }
    }

    /// D, of keys and of queries.
    unsafe fn decays(&self) {
        let (workspace, m) = (self.workspace, self.delta.householders);
        let (c, queries, _) = self.sizes();
        let a = Matrix { at: workspace.a.ptr(), pitch: self.width() };
        // SAFETY: every array has the rows of a chunk.
        unsafe {
            if !self.wide() {
                let a = if self.gated() { a.at.cast_const() } else { std::ptr::null() };
                let decay = self.square(workspace.decay);
                Within { a, out: decay, rows: c }.call();
                if m > 1 {
                    let decay_of_queries = self.square(workspace.query_decay);
                    for j in 0..c {
                        for t in 0..queries {
                            *decay_of_queries.row(j).add(t) = *decay.row(j).add(self.row_of(t));
                        }
                    }
                }
            }
        }
    }

    /// D^T in the columns of the queries.
    pub fn of_queries(&self) -> Matrix<R> {
        self.square(if self.delta.householders == 1 {
            self.workspace.decay
        } else {
            self.workspace.query_decay
        })
    }
}
