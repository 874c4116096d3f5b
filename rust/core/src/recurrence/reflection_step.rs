//! A product of m reflections and a last factor, W = (I - U T^-1 U^H) E, applied factor by factor.
//!
//! With Q = U T^-1, T = striu(U^H U) + diag(U^H U) / 2:
//!
//! ```text
//! step        q = U^H E h,       W h = E h - Q q
//! backward    p = Q^H z_bar,     W^H z_bar = E^H (z_bar - U p)
//! ```
//!
//! and over all rows (t, b), with M = (T^-1 q p^H) * B^T, B = striu(ones) + I/2,
//!
//! ```text
//! U_bar = U (M + M^H) - (Z_bar^T conj(q)) T^-H - E H_prev^T conj(p),
//! S_j = sum z_bar_j conj(h_j) - sum_k U_jk conj((H_prev^T conj(p))_jk),
//! s_bar = Re S_{n-1},    theta_bar_j = Im(e^{-i theta_j} S_j).
//! ```
//!
//! The kernels add, so that -Q and -p are what is kept; conj(E) U stands for both U^H E and E^H U.

use super::packed::Packed;
use super::reflections::{ReflectionGradients, Reflections};
use super::sequence::Sequence;
use super::step::{Chunk, Step, Trace};
use super::team::Part;
use crate::kernels::{Buffer, MAX_ROWS, Operand, Product, Triangle, invert_work, lanes, wy};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use isometry_kernels::recurrence::{Affine, Cross};
use std::ops::Range;

/// Where the sums over all rows of a backward pass stand.
struct Sums<T: Scalar> {
    /// q of the rows of a chunk.
    q: Buffer<T::Real>,
    /// Z_bar^T conj(q) (n, m)
    bar_q: Buffer<T>,
    /// -H_prev^T conj(p) (n, m)
    previous_p: Buffer<T>,
    /// -q^T conj(p) (m, m)
    q_p: Buffer<T>,
    /// -T^-1 of it, then M + M^H
    mixed: Buffer<T>,
    /// Sums of z_bar h and of z_bar times the other part of h, per real number.
    cross: [Buffer<T::Real>; 2],
    vectors: Option<Shared<T>>,
    sign: Option<Shared<T::Real>>,
    phases: Option<Shared<T::Real>>,
}

/// [`Reflections`] inside a recurrence.
pub struct ReflectionStep<'a, T: Scalar> {
    n: usize,
    m: usize,
    batch: usize,
    vectors: &'a [T],
    /// E; empty for I.
    factor: Vec<T>,
    /// E and E^H as the kernel wants them: a factor per real number, and of the other number of its pair.
    diagonal: [Buffer<T::Real>; 3],
    /// conj(E) U; empty for E = I.
    turned: Buffer<T>,
    inverse: Buffer<T>,
    /// For the inverse.
    work: Buffer<T>,
    negative_q: Buffer<T>,
    /// E conj(U) and -Q^T: the two products of a step.
    forward: [Packed<T>; 2],
    /// -conj(Q) and (conj(E) U)^T: those of a step backward.
    backward: Option<[Packed<T>; 2]>,
    /// q of one step.
    q: Buffer<T::Real>,
    sums: Option<Sums<T>>,
}

impl<'a, T: Scalar> ReflectionStep<'a, T> {
    /// For a forward pass, or for a backward pass that fills `bars`.
    pub fn new(
        of: &Reflections<'a, T>,
        sequence: &Sequence<'_, T>,
        bars: Option<ReflectionGradients<'a, T>>,
    ) -> Self {
        let (n, m, batch) = (sequence.n, of.m, sequence.batch);
        let one = T::one();
        let factor: Vec<T> = match (of.sign, of.phases) {
            (Some(s), _) => (0..n).map(|i| if i + 1 == n { T::real(s) } else { one }).collect(),
            (None, Some(phases)) => phases.iter().map(|&angle| T::cis(angle)).collect(),
            _ => Vec::new(),
        };
        let width = factor.len() * T::PARTS;
        let mut diagonal = [(); 3].map(|()| Buffer::zeroed(width));
        for (i, e) in factor.iter().enumerate() {
            for part in 0..T::PARTS {
                let at = i * T::PARTS + part;
                let turn = if part == 0 { -e.im() } else { e.im() };
                (diagonal[0][at], diagonal[1][at], diagonal[2][at]) = (e.re(), turn, -turn);
            }
        }
        let mut turned = Buffer::zeroed(if factor.is_empty() { 0 } else { n * m });
        for (i, e) in factor.iter().enumerate() {
            for j in 0..m {
                turned[i * m + j] = e.conj() * of.vectors[i * m + j];
            }
        }
        let pair = || [Packed::new(n, m), Packed::new(m, n)];
        let chunk = super::backward::chunk_rows(sequence);
        ReflectionStep {
            n,
            m,
            batch,
            vectors: of.vectors,
            diagonal,
            turned,
            inverse: Buffer::scratch(m * m),
            work: Buffer::scratch(invert_work(m)),
            negative_q: Buffer::scratch(n * m),
            forward: pair(),
            backward: bars.is_some().then(pair),
            q: Buffer::scratch(batch * m * T::PARTS),
            sums: bars.filter(ReflectionGradients::any).map(|bars| Sums {
                q: Buffer::scratch(chunk * m * T::PARTS),
                bar_q: Buffer::scratch(n * m),
                previous_p: Buffer::scratch(n * m),
                q_p: Buffer::scratch(m * m),
                mixed: Buffer::scratch(m * m),
                cross: [(); 2].map(|()| Buffer::zeroed(n * T::PARTS)),
                vectors: bars.vectors.map(|bar| Shared(bar.as_mut_ptr())),
                sign: bars.sign.map(|bar| Shared(std::ptr::from_mut(bar))),
                phases: bars.phases.map(|bar| Shared(bar.as_mut_ptr())),
            }),
            factor,
        }
    }

    /// Real numbers of q or p per row.
    fn width(&self) -> usize {
        self.m * T::PARTS
    }

    /// E, or E^H, for the kernel.
    fn diagonal(&self, adjoint: bool) -> [*const T::Real; 2] {
        let none = std::ptr::null();
        let other = &self.diagonal[if adjoint { 2 } else { 1 }];
        match (self.factor.is_empty(), T::PARTS) {
            (true, _) => [none; 2],
            (false, 1) => [self.diagonal[0].as_ptr(), none],
            _ => [self.diagonal[0].as_ptr(), other.as_ptr()],
        }
    }

    /// conj(E) U
    fn turned(&self) -> Operand<T> {
        let data = if self.turned.is_empty() { self.vectors.as_ptr() } else { self.turned.as_ptr() };
        Operand::new(data, self.m)
    }

    /// U_bar from the sums.
    unsafe fn vectors_bar(&self, sums: &Sums<T>, bar: *mut T, scratch: *mut T::Real, member: &Member<'_>) {
        let (n, m) = (self.n, self.m);
        let [inverse, q_p] = [&self.inverse, &sums.q_p].map(|x| Operand::new(x.as_ptr(), m));
        // SAFETY: passed on from the caller; barriers stand between writes and reads of different members.
        unsafe {
            let full = Triangle::Full;
            let product = Product::new((m, m, m), inverse, q_p, sums.mixed.ptr(), m).alpha(-1.0);
            product.shapes(Triangle::Upper, full, Triangle::Lower).run(member, scratch);
            // E H_prev^T conj(p), whose sign is right already
            for i in member.share(n, 1) {
                for j in 0..m {
                    let f = sums.previous_p[i * m + j];
                    *bar.add(i * m + j) = if self.factor.is_empty() { f } else { self.factor[i] * f };
                }
            }
            member.barrier();
            wy::symmetrize(member, sums.mixed.ptr(), m, m);
            member.barrier();
            let (u, mixed) = (Operand::new(self.vectors.as_ptr(), m), Operand::new(sums.mixed.as_ptr(), m));
            Product::new((n, m, m), u, mixed, bar, m).add().run(member, scratch);
            let bar_q = Operand::new(sums.bar_q.as_ptr(), m);
            let product = Product::new((n, m, m), bar_q, inverse.h(), bar, m).alpha(-1.0).add();
            product.shapes(full, Triangle::Lower, full).run(member, scratch);
        }
    }

    /// S_j
    fn crossed(&self, sums: &Sums<T>, j: usize) -> T {
        let [same, other] = &sums.cross;
        let at = j * T::PARTS;
        let direct = if T::PARTS == 1 {
            T::real(same[at])
        } else {
            T::new(same[at] + same[at + 1], other[at + 1] - other[at])
        };
        let row = j * self.m..(j + 1) * self.m;
        let mixed = self.vectors[row.clone()].iter().zip(&sums.previous_p[row]);
        direct + mixed.map(|(&u, f)| u * f.conj()).sum::<T>()
    }
}

impl<T: Scalar> Step<T> for ReflectionStep<'_, T> {
    fn work(&self) -> usize {
        2 * self.n * self.m * T::PARTS * T::PARTS
    }
    fn divisible(&self) -> bool {
        self.width() > 2 * lanes::<T::Real>()
    }
    fn kept(&self) -> usize {
        self.width()
    }
    fn scratch(&self, rows: usize) -> usize {
        Product::<T>::scratch(self.n.max(self.m), self.n.max(self.m).max(rows))
    }

    unsafe fn prepare(&self, scratch: *mut T::Real, member: &Member<'_>) {
        let (n, m) = (self.n, self.m);
        if m == 0 {
            return;
        }
        let u = Operand::new(self.vectors.as_ptr(), m);
        let q = Operand::new(self.negative_q.as_ptr(), m);
        let full = Triangle::Full;
        // SAFETY: U has n rows and m columns; barriers stand between writes and reads of different members.
        unsafe {
            wy::inverse(member, u, (n, m), full, self.inverse.ptr(), m, self.work.ptr(), scratch);
            let inverse = Operand::new(self.inverse.as_ptr(), m);
            let product = Product::new((n, m, m), u, inverse, self.negative_q.ptr(), m).alpha(-1.0);
            product.shapes(full, Triangle::Upper, full).run(member, scratch);
            member.barrier();
            self.forward[0].fill(self.turned().conj(), member);
            self.forward[1].fill(q.t(), member);
            if let Some(backward) = &self.backward {
                backward[0].fill(q.conj(), member);
                backward[1].fill(self.turned().t(), member);
            }
        }
    }

    unsafe fn forward(
        &self,
        previous: *const T::Real,
        mut map: Affine<T::Real>,
        rows: Range<usize>,
        part: &Part<'_>,
    ) {
        let mut inner = Affine::new(self.width(), self.batch, self.q.ptr());
        inner.terms[0] = self.forward[0].times(previous);
        (map.base, map.diagonal) = (previous, self.diagonal(false));
        map.terms[1] = self.forward[1].times(self.q.as_ptr());
        // SAFETY: passed on from the caller.
        unsafe {
            inner.run(rows.clone(), part.columns::<T::Real>(self.width()));
            part.sync();
            map.run(rows, part.columns::<T::Real>(map.width));
        }
    }

    unsafe fn backward(
        &self,
        trace: Trace<T::Real>,
        mut map: Affine<T::Real>,
        rows: Range<usize>,
        part: &Part<'_>,
    ) {
        (map.base, map.diagonal) = (trace.bar, self.diagonal(true));
        if let Some(backward) = &self.backward {
            map.terms[1] = backward[1].times(trace.kept);
        }
        // SAFETY: passed on from the caller.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn keep(&self, trace: Trace<T::Real>, rows: Range<usize>, part: &Part<'_>) {
        let mut map = Affine::new(self.width(), self.batch, trace.kept);
        if let Some(backward) = &self.backward {
            map.terms[0] = backward[0].times(trace.bar);
        }
        // SAFETY: passed on from the caller.
        unsafe { map.run(rows, part.columns::<T::Real>(self.width())) }
        part.sync();
    }

    unsafe fn gather(&self, chunk: &Chunk<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        let Some(sums) = &self.sums else { return };
        let (n, m, rows) = (self.n, self.m, chunk.rows);
        let bar = Operand::new(chunk.trace.bar.cast::<T>(), n);
        let previous = Operand::new(chunk.previous.cast::<T>(), n);
        let p = Operand::new(chunk.trace.kept.cast_const().cast::<T>(), m);
        let q = Operand::new(sums.q.as_ptr().cast::<T>(), m);
        let mut inner = Affine::new(self.width(), usize::MAX, sums.q.ptr());
        inner.terms[0] = self.forward[0].times(chunk.previous);
        let run = |product: Product<T>| {
            let product = if chunk.first { product } else { product.add() };
            // SAFETY: passed on from the caller.
            unsafe { product.run(member, scratch) }
        };
        let vectors = sums.vectors.is_some();
        // SAFETY: passed on from the caller.
        unsafe {
            if vectors {
                inner.run(member.share(rows, MAX_ROWS), 0..self.width());
            }
            if !self.factor.is_empty() {
                // Only the last element has a sign.
                let (width, lanes) = (n * T::PARTS, lanes::<T::Real>());
                let columns = match sums.sign {
                    Some(_) if member.id == 0 => (width - 1) / lanes * lanes..width,
                    Some(_) => 0..0,
                    None => member.share(width, lanes),
                };
                Cross {
                    bar: chunk.trace.bar,
                    h: chunk.previous,
                    rows: chunk.rows,
                    width,
                    sums: [sums.cross[0].ptr(), sums.cross[1].ptr()],
                    columns,
                }
                .call();
            }
        }
        member.barrier();
        run(Product::new((n, m, rows), previous.t(), p.conj(), sums.previous_p.ptr(), m));
        if vectors {
            run(Product::new((n, m, rows), bar.t(), q.conj(), sums.bar_q.ptr(), m));
            run(Product::new((m, m, rows), q.t(), p.conj(), sums.q_p.ptr(), m));
        }
    }

    unsafe fn finish(&self, scratch: *mut T::Real, member: &Member<'_>) {
        let (Some(sums), n) = (&self.sums, self.n) else { return };
        // SAFETY: passed on from the caller; the scalars are written by one member.
        unsafe {
            if let Some(bar) = sums.vectors.filter(|_| self.m > 0) {
                self.vectors_bar(sums, bar.0, scratch, member);
            }
            if member.id == 0 {
                if let Some(bar) = sums.sign {
                    *bar.0 = self.crossed(sums, n - 1).re();
                }
                if let Some(bar) = sums.phases {
                    for j in 0..n {
                        *bar.at(j) = (self.factor[j].conj() * self.crossed(sums, j)).im();
                    }
                }
            }
        }
    }
}
