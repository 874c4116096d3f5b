//! What a chunk computes with the state. The columns of V do not depend on each other: members may share them without a barrier,
//! each the columns that every product of this width gives it ([`Product::own`]).

use super::chunk::Chunk;
use super::state::State;
use crate::kernels::{Operand, Product, Triangle};
use crate::parallel::Member;
use crate::scalar::Real;
use isometry_kernels::delta::{Dots, Matrix, Residual, Scaled, Sums};
use std::ops::Range;

/// The columns of a member among n.
pub fn columns<R: Real>(member: &Member<'_>, n: usize) -> impl Iterator<Item = Range<usize>> {
    let alone = member.count == 1;
    let own = (!alone).then(|| Product::<R>::own(member, n, (0, n)));
    alone.then_some(0..n).into_iter().chain(own.into_iter().flatten())
}

/// out = x in the member's columns (None: zeros).
///
/// # Safety
/// Both have `rows` rows of n numbers and do not overlap.
pub unsafe fn copy_columns<R: Real>(
    member: &Member<'_>,
    x: Option<State<R>>,
    out: State<R>,
    (rows, n): (usize, usize),
) {
    let piece = |own| out.pieces(own).flat_map(move |own| x.unwrap_or(out).pieces(own));
    for Range { start, end } in columns::<R>(member, n).flat_map(piece) {
        let (x, out) = (x.map(|x| x.around(start)), out.around(start));
        for i in 0..rows {
            // SAFETY: the caller's.
            unsafe {
                let to = out.row(i).add(start);
                match x {
                    Some(x) => std::ptr::copy_nonoverlapping(x.row(i).add(start), to, end - start),
                    None => to.write_bytes(0, end - start),
                }
            }
        }
    }
}

impl<R: Real> Chunk<'_, R> {
    /// The member's columns of [`Chunk::product`], whose C is as wide as V, from the sizes (m, k).
    ///
    /// # Safety
    /// The matrices exist.
    pub unsafe fn values(
        &self,
        (m, k): (usize, usize),
        a: Operand<R>,
        b: Operand<R>,
        c: Matrix<R>,
        with: impl FnOnce(Product<R>) -> Product<R>,
    ) {
        let n = self.delta.value;
        // SAFETY: the caller's.
        unsafe { self.product((m, n, k), a, b, c, |x| with(x).columns((0, n))) }
    }

    /// The member's columns of C = A S, from the sizes (m, k).
    ///
    /// # Safety
    /// As of [`Chunk::values`].
    pub unsafe fn times(&self, (m, k): (usize, usize), a: Operand<R>, s: State<R>, c: Matrix<R>) {
        for Range { start, end } in self.columns().flat_map(|own| s.pieces(own)) {
            let (s, n) = (s.around(start), self.delta.value);
            let s = Operand::new(s.at.cast_const(), s.pitch);
            // SAFETY: the caller's.
            unsafe { self.product((m, n, k), a, s, c, |x| x.columns((start, end))) }
        }
    }

    /// The member's columns of S += A B, from the depth k.
    ///
    /// # Safety
    /// As of [`Chunk::values`].
    pub unsafe fn add(&self, k: usize, a: Operand<R>, b: Operand<R>, s: State<R>, soon: *const R) {
        let (key, n) = (self.delta.key, self.delta.value);
        for Range { start, end } in self.columns().flat_map(|own| s.pieces(own)) {
            let s = s.around(start);
            let soon = [(s.at.cast_const(), s.pitch), (soon, n)];
            // SAFETY: the caller's.
            unsafe { self.product((key, n, k), a, b, s, |x| x.add().soon(soon).columns((start, end))) }
        }
    }

    /// The member's columns of V.
    pub fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        columns::<R>(self.member, self.delta.value)
    }

    /// W of `rows` rows from the state S (None: zero), then Z (if kept: in W, with R in `r`) and U.
    ///
    /// # Safety
    /// The chunk is prepared; S is (K, V); r has C rows.
    pub unsafe fn solve(&self, s: Option<State<R>>, rows: usize, keep: bool, r: Matrix<R>) {
        let (key, value, c) = (self.delta.key, self.delta.value, self.rows.len());
        let (early, w, u) = (self.early(), self.w(), self.u());
        let (x, beta) = (self.square(self.triangles.inverse), self.workspace.beta.ptr());
        // SAFETY: as above.
        unsafe {
            let a = Operand::new(early.at.cast_const(), early.pitch);
            match s {
                Some(s) => self.times((rows, key), a, s, w),
                None => copy_columns(self.member, None, State::whole(w), (rows, value)),
            }
            for Range { start, end } in self.columns() {
                let z = if keep { w.right(start) } else { Matrix::none() };
                let (v, w, r) =
                    (self.head.v.from(self.rows.start).right(start), w.right(start), r.right(start));
                Residual { v, w, beta, z, r, rows: c, n: end - start }.call();
                (self.live..c).for_each(|i| r.row(i).write_bytes(0, end - start));
            }
            let (ti, r) =
                (Operand::new(x.at.cast_const(), x.pitch).t(), Operand::new(r.at.cast_const(), r.pitch));
            let soon = [self.soon(self.head.k, false), self.soon(self.head.q, true)];
            let lower = |p: Product<R>| p.shapes(Triangle::Lower, Triangle::Full, Triangle::Full).soon(soon);
            self.values((c, c), ti, r, u, lower);
        }
    }

    /// Whether the member's columns of U are finite.
    ///
    /// # Safety
    /// U is solved.
    pub unsafe fn finite(&self) -> bool {
        let (sums, u, rows) = (self.workspace.sums.ptr(), self.u(), self.rows.len());
        self.columns().all(|Range { start, end }| {
            // SAFETY: there is a sum for each column.
            unsafe {
                let out = sums.add(start);
                Sums { x: u.right(start), y: Matrix::none(), out, rows, n: end - start }.call();
                (0..end - start).all(|d| (*out.add(d)).is_finite())
            }
        })
    }

    /// Where U is not finite, the zeros of the triangles have spread NaN and infinities to earlier rows: the number of rows
    /// before the first that is not finite in R or K K^T * D, or 0.
    ///
    /// # Safety
    /// U is solved by one member, with R in W.
    pub unsafe fn finite_rows(&self) -> usize {
        let squares = self.workspace.unit.ptr();
        let (w, gram) = (self.w(), self.square(self.workspace.gram));
        let (rows, n) = (self.rows.len(), self.delta.value);
        // SAFETY: all have the rows of the chunk; the factors of keys have been used.
        unsafe {
            Dots { x: w, y: w, out: squares, rows, n }.call();
            let finite = |i: usize| {
                (*squares.add(i)).is_finite() && (0..=i).all(|j| (*gram.row(j).add(i)).is_finite())
            };
            (0..self.live).find(|&i| !finite(i)).unwrap_or(0)
        }
    }

    /// O in rows of the queries.
    ///
    /// # Safety
    /// U is solved from the state, with W of keys and queries; O has the rows of the queries.
    pub unsafe fn outputs(&self, o: Matrix<R>) {
        let (c, queries, _) = self.sizes();
        let (p, u) = (self.square(self.triangles.p), self.u());
        let (shape, full) = (self.shape().t(), Triangle::Full);
        let from_state = self.w().from(c);
        let soon = [(o.at.cast_const(), o.pitch), self.soon(self.head.v, false)];
        let onto =
            |x: Product<R>| x.onto(from_state.at, from_state.pitch).shapes(shape, full, full).soon(soon);
        let (p, u) = (Operand::new(p.at.cast_const(), p.pitch).t(), Operand::new(u.at.cast_const(), u.pitch));
        // SAFETY: the caller's.
        unsafe { self.values((queries, c), p, u, o, onto) }
    }

    /// S <- e^(c_C) S + (e^(c_C - c) * K)^T U
    ///
    /// # Safety
    /// U is solved; S is (K, V).
    pub unsafe fn advance(&self, state: State<R>) {
        let c = self.rows.len();
        let (late, u) = (self.late(), self.u());
        // SAFETY: as above.
        unsafe {
            self.fade(state);
            let (a, b) =
                (Operand::new(late.at.cast_const(), late.pitch), Operand::new(u.at.cast_const(), u.pitch));
            self.add(c, a.t(), b, state, std::ptr::null());
        }
    }

    /// S <- e^(c_C) S
    ///
    /// # Safety
    /// S is (K, V).
    pub unsafe fn fade(&self, s: State<R>) {
        if self.gated() {
            let (by, rows) = (self.total(), self.delta.key);
            for Range { start, end } in self.columns().flat_map(|own| s.pieces(own)) {
                let (x, n) = (s.around(start).right(start), end - start);
                // SAFETY: as above.
                unsafe { Scaled { x, by, wide: false, out: x, add: false, rows, n }.call() }
            }
        }
    }
}
