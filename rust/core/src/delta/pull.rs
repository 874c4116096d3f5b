//! The gradients of one chunk. With the names of [`super::chunk`], O_bar in `o`, Z = V - W, R = diag(beta) Z and S'_bar the
//! gradient of the state behind the chunk:
//!
//! ```text
//! U_bar = P^T o + (e^(c_C - c) * K) S'_bar,    R_bar = (I + A)^-T U_bar,    V_bar = diag(beta) R_bar
//! A_bar = - strictly lower part of R_bar U^T,  P_bar = o U^T
//! [gradients of e^c * K, e^c * Q] = [-V_bar; o] S^T,    of e^(c_C - c) * K: U S'_bar^T
//! S_bar = e^(c_C) S'_bar + [e^c * K; e^c * Q]^T [-V_bar; o]
//! ```
//!
//! and the products inside the chunk, G = diag(beta) (A_bar * D): K_bar += (G + G^T) K + (P_bar * D)^T Q, Q_bar += (P_bar * D) K.
//! Every factor e^(c_i - c_j) gives its gradient to c_i and takes it from c_j; g_bar is the reversed cumulative sum of c_bar, in
//! which those inside the chunk are summed over the pairs j < t <= i.

use super::chunk::Chunk;
use super::state::State;
use super::workspace::{Pitches, Workspace};
use super::{Delta, Gate};
use crate::kernels::{Operand, Product, Triangle};
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use isometry_kernels::delta::{Crossing, Dots, Masked, Matrix, Scaled, Sums, Through, WidePull};

/// The gradients that are wanted, the cotangents, and the saved states.
#[derive(Clone, Copy)]
pub struct Arrays<R> {
    pub q: Option<Shared<R>>,
    pub k: Option<Shared<R>>,
    pub v: Option<Shared<R>>,
    pub beta: Option<Shared<R>>,
    pub g: Option<Shared<R>>,
    pub initial: Option<Shared<R>>,
    pub o: Shared<R>,
    pub state: Shared<R>,
    pub saved: Shared<R>,
}

/// Memory of a thread beside that of a chunk.
pub struct GradientWorkspace<R> {
    pub chunk: Workspace<R>,
    s_bar: Region<R>,
    /// R, then U_bar and R_bar
    pub r: Region<R>,
    pub r_bar: Region<R>,
    /// [-V_bar; o]
    pub vo: Region<R>,
    /// The gradients of keys and queries, and of the late keys.
    kq_bar: Region<R>,
    late_bar: Region<R>,
    /// A_bar^T and P_bar^T
    a_bar: Region<R>,
    p_bar: Region<R>,
    /// Of beta, of the logarithms of the gates of keys and queries, and of the late keys.
    pub beta_bar: Region<R>,
    c_bar: Region<R>,
    c_late: Region<R>,
    /// Sums of columns; the gradients of the gates from the products inside the chunk; of the rows of a state.
    pub sums: Region<R>,
    inside: Region<R>,
    dots: Region<R>,
    decay: Region<R>,
}

impl<R: Real> GradientWorkspace<R> {
    pub fn carve(arena: &mut Arena, delta: &Delta<'_, R>) -> Self {
        let Pitches { rows: c, key, value, square } = Pitches::new(delta);
        let width = if matches!(delta.gate, Gate::Row(_)) { key } else { 1 };
        GradientWorkspace {
            chunk: Workspace::carve(arena, delta),
            s_bar: arena.take(&[delta.key, value]),
            r: arena.take(&[c, value]),
            r_bar: arena.take(&[c, value]),
            vo: arena.take(&[2 * c, value]),
            kq_bar: arena.take(&[2 * c, key]),
            late_bar: arena.take(&[c, key]),
            a_bar: arena.take(&[c, square]),
            p_bar: arena.take(&[c, square]),
            beta_bar: arena.take(&[c]),
            c_bar: arena.take(&[2 * c, width]),
            c_late: arena.take(&[c, width]),
            sums: arena.take(&[c]),
            inside: arena.take(&[c]),
            dots: arena.take(&[delta.key]),
            decay: arena.take(&[key]),
        }
    }
}

impl<R: Real> GradientWorkspace<R> {
    /// The gradient of the state.
    pub fn s_bar(&self, delta: &Delta<'_, R>) -> Matrix<R> {
        Matrix { at: self.s_bar.ptr(), pitch: Pitches::new(delta).value }
    }
}

/// A chunk whose gradients are computed.
pub struct Pull<'a, R: Real> {
    pub chunk: Chunk<'a, R>,
    pub gradients: &'a GradientWorkspace<R>,
    pub arrays: &'a Arrays<R>,
    /// The first token of the sequence, counted through the batch.
    pub first: usize,
    /// The value head.
    pub head: usize,
}

pub fn operand<R: Real>(x: Matrix<R>) -> Operand<R> {
    Operand::new(x.at.cast_const(), x.pitch)
}

/// Rows from `first` on of an array (n numbers for each of `heads` heads) that belong to a head.
pub fn rows_of<R: Real>(x: Shared<R>, first: usize, (heads, head): (usize, usize), n: usize) -> Matrix<R> {
    Matrix { at: x.at((first * heads + head) * n), pitch: heads * n }
}

/// out = x or out += x
unsafe fn copy<R: Real>(x: Matrix<R>, out: Matrix<R>, add: bool, rows: usize, n: usize) {
    // SAFETY: the caller's.
    unsafe { Scaled { x, by: Matrix::none(), wide: false, out, add, rows, n }.call() }
}

impl<R: Real> Pull<'_, R> {
    /// From the state before the chunk (None: zero) and the gradient of that behind it, which becomes that of the state before
    /// it. With `add`, the gradients of q and k are added to.
    ///
    /// # Safety
    /// The arrays exist; the workspace is this thread's.
    pub unsafe fn run(&self, s: Option<*const R>, add: bool) {
        // SAFETY: the caller's.
        unsafe {
            self.solve(s);
            let (r_bar, s_bar) = (self.of_value(self.gradients.r_bar), State::whole(self.s_bar()));
            self.residual_gradient(s_bar, r_bar);
            self.rest(s, add);
            self.retreat(s_bar, s);
        }
    }

    /// The chunk, its U and Z, and o: what does not depend on the gradient of the state behind it.
    ///
    /// # Safety
    /// As of [`Pull::run`].
    pub unsafe fn solve(&self, s: Option<*const R>) {
        let Pull { chunk, gradients, arrays, .. } = self;
        let (c, queries, _) = chunk.sizes();
        let (of_head, n) = ((chunk.delta.value_heads, self.head), chunk.delta.value);
        // SAFETY: the caller's.
        unsafe {
            chunk.prepare();
            let s = s.map(|s| State::whole(Matrix::of(s, n)));
            chunk.solve(s, c, true, self.of_value(gradients.r));
            let o = rows_of(arrays.o, self.first + chunk.tokens.start, of_head, n);
            copy(o, self.of_value(gradients.vo).from(c), false, queries, n);
        }
    }

    pub fn of_value(&self, place: Region<R>) -> Matrix<R> {
        Matrix { at: place.ptr(), pitch: self.chunk.pitch.value }
    }

    pub fn s_bar(&self) -> Matrix<R> {
        self.gradients.s_bar(self.chunk.delta)
    }

    /// The rows of the gradient of v, if it is wanted.
    pub fn v_bar(&self) -> Matrix<R> {
        let Pull { chunk, arrays, .. } = self;
        let Delta { value_heads: hv, value, householders: m, .. } = *chunk.delta;
        let row = self.first * m + chunk.rows.start;
        arrays.v.map_or(Matrix::none(), |v| rows_of(v, row, (hv, self.head), value))
    }

    /// The gradients of the arguments, and [-V_bar; o].
    ///
    /// # Safety
    /// The chunk is solved; there is all of R_bar, and the gradient of the state behind the chunk.
    pub unsafe fn rest(&self, s: Option<*const R>, add: bool) {
        let Pull { chunk, gradients, arrays, .. } = self;
        let Delta { heads: h, value_heads: hv, key, value, householders: m, .. } = *chunk.delta;
        let (c, queries, _) = chunk.sizes();
        let (row, token) = (self.first * m + chunk.rows.start, self.first + chunk.tokens.start);
        let (r_bar, o) = (self.of_value(gradients.r_bar), operand(self.of_value(gradients.vo).from(c)));
        let kq_bar = Matrix { at: gradients.kq_bar.ptr(), pitch: chunk.pitch.key };
        let (of_head, of_group) = ((hv, self.head), (h, self.head / (hv / h)));
        let (full, upper, shape) = (Triangle::Full, Triangle::Upper, chunk.shape());
        // SAFETY: the arrays have the rows of a chunk, the states (K, V).
        unsafe {
            self.values(chunk.w(), r_bar, self.v_bar(), gradients.beta_bar.ptr());
            let u = operand(chunk.u());
            let (a_bar, p_bar) = (chunk.square(gradients.a_bar), chunk.square(gradients.p_bar));
            let negative = |x: Product<R>| x.alpha(-1.0).shapes(full, full, upper);
            chunk.product((c, c, value), u, operand(r_bar).t(), a_bar, negative);
            chunk.product((c, queries, value), u, o.t(), p_bar, |x| x.shapes(full, full, shape));
            self.factors(s);
            self.inside(a_bar, p_bar);
            if let Some(g_bar) = arrays.g {
                self.gates(g_bar);
            }
            if let Some(beta) = arrays.beta {
                let beta_bar = rows_of(beta, row, of_head, 1);
                (0..c).for_each(|i| *beta_bar.row(i) = *gradients.beta_bar.at(i));
            }
            if let Some(k) = arrays.k {
                copy(kq_bar, rows_of(k, row, of_group, key), add, c, key);
            }
            if let Some(q) = arrays.q {
                let out = rows_of(q, token, of_group, key);
                let scale = R::of(chunk.delta.scale);
                let by = Matrix::of(&raw const scale, 0);
                Scaled { x: kq_bar.from(c), by, wide: false, out, add, rows: queries, n: key }.call();
            }
        }
    }

    /// Through the factors e^c and e^(c_C - c) of keys and queries.
    unsafe fn factors(&self, s: Option<*const R>) {
        let Pull { chunk, gradients, .. } = self;
        let (key, value, workspace) = (chunk.delta.key, chunk.delta.value, chunk.workspace);
        let (c, queries, _) = chunk.sizes();
        let (wide, gated, rows) = (chunk.wide(), chunk.gated(), c + queries);
        let of_key = |place: Region<R>| Matrix { at: place.ptr(), pitch: chunk.pitch.key };
        let gates = |place: Region<R>| match gated {
            true => Matrix { at: place.ptr(), pitch: chunk.width() },
            false => Matrix::none(),
        };
        let (kq_bar, late_bar) = (of_key(gradients.kq_bar), of_key(gradients.late_bar));
        let (vo, s_bar) = (operand(self.of_value(gradients.vo)), self.s_bar());
        // SAFETY: as in `rest`.
        unsafe {
            match s {
                Some(s) => chunk.product((rows, key, value), vo, Operand::new(s, value).t(), kq_bar, |x| x),
                None => (0..rows * kq_bar.pitch).for_each(|at| *kq_bar.at.add(at) = R::zero()),
            }
            let (by, gate) = (chunk.factors(workspace.before), gates(gradients.c_bar));
            let early = Through {
                y_bar: kq_bar,
                by,
                wide,
                k: chunk.kq(),
                out: kq_bar,
                add: false,
                gate,
                rows,
                n: key,
            };
            if gated {
                early.call();
            }
            chunk.product((c, key, value), operand(chunk.u()), operand(s_bar).t(), late_bar, |x| x);
            let (by, gate) = (chunk.factors(workspace.after), gates(gradients.c_late));
            Through { y_bar: late_bar, by, add: true, gate, rows: c, ..early }.call();
            if gated {
                // that of the logarithm of e^(c_C): <S, S'_bar>, row by row
                let dots = gradients.dots.ptr();
                match s {
                    Some(s) => {
                        Dots { x: Matrix::of(s, value), y: s_bar, out: dots, rows: key, n: value }.call()
                    }
                    None => (0..key).for_each(|d| *dots.add(d) = R::zero()),
                }
                let total = chunk.total();
                (0..key).for_each(|d| *dots.add(d) *= *total.row(d));
            }
        }
    }

    /// Through the products inside the chunk, A and P.
    unsafe fn inside(&self, a_bar: Matrix<R>, p_bar: Matrix<R>) {
        let Pull { chunk, gradients, .. } = self;
        let (workspace, key) = (chunk.workspace, chunk.delta.key);
        let (c, queries, first) = chunk.sizes();
        let (sums, inside, full) = (gradients.sums.ptr(), gradients.inside.ptr(), Triangle::Full);
        let (gram, beta) = (chunk.square(workspace.gram), Matrix { at: workspace.beta.ptr(), pitch: 0 });
        let kq_bar = Matrix { at: gradients.kq_bar.ptr(), pitch: chunk.pitch.key };
        let upper = chunk.shape() == Triangle::Upper;
        // x <- x * y, upper triangle
        let masked = |x: Matrix<R>, y: Matrix<R>| Masked { x, y, out: x, upper: true, rows: c, n: c };
        // SAFETY: as in `run`.
        unsafe {
            masked(a_bar, Matrix::none()).call();
            for j in 0..c {
                *a_bar.row(j).add(j) = R::zero();
            }
            Sums { x: a_bar, y: gram, out: sums, rows: c, n: c }.call();
            (0..c).for_each(|i| *gradients.beta_bar.at(i) += *sums.add(i));
            masked(a_bar, beta).call();
            if chunk.wide() {
                let c_bar = Matrix { at: gradients.c_bar.ptr(), pitch: chunk.width() };
                let (gram, q_bar, decay) =
                    (chunk.gram(a_bar, p_bar, first), kq_bar.from(c), gradients.decay.ptr());
                return WidePull { gram, k_bar: kq_bar, q_bar, c_bar, decay }.call();
            }
            if chunk.gated() {
                (0..c).for_each(|i| *inside.add(i) = R::zero());
                let keys =
                    Crossing { x: a_bar, y: gram, first: 0, every: 1, sums, out: inside, rows: c, n: c };
                keys.call();
                Masked { x: p_bar, y: Matrix::none(), out: p_bar, upper, rows: c, n: queries }.call();
                let (p, every) = (chunk.square(chunk.triangles.p), chunk.delta.householders);
                // the decay of a row to its own query is 1
                (0..queries).for_each(|t| *p.row(chunk.row_of(t)).add(t) = R::zero());
                Crossing { x: p_bar, y: p, first, every, n: queries, ..keys }.call();
            }
            masked(a_bar, chunk.square(workspace.decay)).call();
            Masked { x: p_bar, y: chunk.of_queries(), out: p_bar, upper, rows: c, n: queries }.call();
            let (k, q) = (operand(chunk.kq()), operand(chunk.kq().from(c)));
            let add = |shape| move |x: Product<R>| x.add().shapes(shape, full, full);
            chunk.product((c, key, c), operand(a_bar), k, kq_bar, add(Triangle::Upper));
            chunk.product((c, key, c), operand(a_bar).t(), k, kq_bar, add(Triangle::Lower));
            let shape = chunk.shape();
            chunk.product((c, key, queries), operand(p_bar), q, kq_bar, add(shape));
            chunk.product((queries, key, c), operand(p_bar).t(), k, kq_bar.from(c), add(shape.t()));
        }
    }

    /// The gradients of the gates: reversed sums of those of c, and what the products inside the chunk give.
    unsafe fn gates(&self, g_bar: Shared<R>) {
        let Pull { chunk, gradients, .. } = self;
        let Delta { value_heads: hv, key, householders: m, .. } = *chunk.delta;
        let (c, queries, _) = chunk.sizes();
        let (wide, pitch) = (chunk.wide(), chunk.width());
        let at = |place: Region<R>, i: usize, d: usize| place.at(i * pitch + d);
        let n = if wide { key } else { 1 };
        let g_bar = rows_of(g_bar, self.first, (hv, self.head), n);
        // SAFETY: as in `run`.
        unsafe {
            for d in 0..n {
                let mut sum: f64 = match wide {
                    true => (*gradients.dots.at(d)).f64(),
                    false => (0..key).map(|d| (*gradients.dots.at(d)).f64()).sum(),
                };
                sum += (0..c).map(|j| (*at(gradients.c_late, j, d)).f64()).sum::<f64>();
                let mut query = queries;
                for i in (0..c).rev() {
                    sum += (*at(gradients.c_bar, i, d)).f64() - (*at(gradients.c_late, i, d)).f64();
                    if query > 0 && chunk.row_of(query - 1) == i {
                        query -= 1;
                        sum += (*at(gradients.c_bar, c + query, d)).f64();
                    }
                    let row = chunk.rows.start + i;
                    if row.is_multiple_of(m) {
                        // a gate of 0 does not change; the sum is rounding noise
                        let open = *at(chunk.workspace.a, i, d) > R::of(0.0);
                        let inside = if wide { 0.0 } else { (*gradients.inside.at(i)).f64() };
                        *g_bar.row(row / m).add(d) = R::of(if open { sum + inside } else { 0.0 });
                    }
                }
            }
        }
    }
}
