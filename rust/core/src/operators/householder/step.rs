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
//! The kernels add, so -Q and -p are stored; conj(E) U serves for both U^H E and E^H U.

use super::{Householder, Last};
use crate::argument::Bar;
use crate::kernels::{MAX_ROWS, Operand, Product, Triangle, invert_work, lanes, wy};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::sizes;
use crate::transition::{Component, Extent, Gather, Needs, On, Packed, Part, Step, Trace};
use isometry_kernels::recurrence::{Affine, Cross};
use std::ops::Range;

/// The sums over all rows of a backward pass.
struct Sums<T: Scalar> {
    /// q of the rows of a chunk.
    q: Region<T::Real>,
    /// Z_bar^T conj(q) (n, m)
    bar_q: Region<T>,
    /// -H_prev^T conj(p) (n, m)
    previous_p: Region<T>,
    /// -q^T conj(p) (m, m)
    q_p: Region<T>,
    /// -T^-1 q_p, then M + M^H
    mixed: Region<T>,
    /// Sums of z_bar h, and of z_bar with the parts of h swapped, per real number.
    cross: [Region<T::Real>; 2],
    bars: StepBars<T>,
}

/// Outputs of the gradients.
#[derive(Clone, Copy)]
pub struct StepBars<T: Scalar> {
    vectors: Option<Shared<T>>,
    sign: Option<Shared<T::Real>>,
    phases: Option<Shared<T::Real>>,
}

impl<T: Scalar> StepBars<T> {
    /// Those of a product that were checked against it.
    pub fn new(of: &Householder<'_, T>, bars: &mut [Bar<'_, T>]) -> Self {
        let mut bars = bars.iter_mut().map(Bar::again);
        let vectors = bars.next().and_then(Bar::own).map(|bar| Shared(bar.as_mut_ptr()));
        let last = bars.find_map(Bar::real).map(|bar| Shared(bar.as_mut_ptr()));
        let sign = matches!(of.last, Last::Sign(_));
        StepBars { vectors, sign: last.filter(|_| sign), phases: last.filter(|_| !sign) }
    }

    fn any(&self) -> bool {
        self.vectors.is_some() || self.sign.is_some() || self.phases.is_some()
    }
}

/// [`Householder`] inside a recurrence.
pub struct ReflectionStep<'a, T: Scalar> {
    n: usize,
    m: usize,
    batch: usize,
    of: Householder<'a, T>,
    /// E; empty for I.
    factor: Region<T>,
    /// E and E^H as kernel factors: per real number, the factor of itself and that of the other part of its pair.
    diagonal: [Region<T::Real>; 3],
    /// conj(E) U; empty for E = I.
    turned: Region<T>,
    inverse: Region<T>,
    /// Workspace of the triangular inverse.
    work: Frame,
    negative_q: Region<T>,
    /// E conj(U) and -Q^T: the two products of a step.
    forward: [Packed<T>; 2],
    /// -conj(Q) and (conj(E) U)^T: the two products of a backward step.
    backward: Option<[Packed<T>; 2]>,
    /// q of one step.
    q: Region<T::Real>,
    sums: Option<Sums<T>>,
}

impl<'a, T: Scalar> ReflectionStep<'a, T> {
    /// For a forward pass, or for a backward pass that fills `bars`.
    pub fn carve(
        arena: &mut Arena,
        of: Householder<'a, T>,
        extent: Extent,
        bars: Option<StepBars<T>>,
    ) -> Self {
        let (n, m, Extent { batch, chunk }) = (of.n, of.m, extent);
        let last = usize::from(of.has_last());
        let pair = |arena: &mut Arena| [(n, m), (m, n)].map(|(k, n)| Packed::new(arena, k, n, None));
        ReflectionStep {
            n,
            m,
            batch,
            of,
            factor: arena.take(&[last, n]),
            diagonal: [(); 3].map(|()| arena.take(&[last, n, T::PARTS])),
            turned: arena.take(&[last, n, m]),
            inverse: arena.take(&[m, m]),
            work: invert_work::<T>(arena, m),
            negative_q: arena.take(&[n, m]),
            forward: pair(arena),
            backward: bars.is_some().then(|| pair(arena)),
            q: arena.take(&[batch, m, T::PARTS]),
            sums: bars.filter(StepBars::any).map(|bars| Sums {
                q: arena.take(&[chunk, m, T::PARTS]),
                bar_q: arena.take(&[n, m]),
                previous_p: arena.take(&[n, m]),
                q_p: arena.take(&[m, m]),
                mixed: arena.take(&[m, m]),
                cross: [(); 2].map(|()| arena.take(&[n, T::PARTS])),
                bars,
            }),
        }
    }

    /// Real numbers of q or p per row.
    fn width(&self) -> usize {
        self.m * T::PARTS
    }

    /// E, or E^H, as kernel factors.
    fn diagonal(&self, adjoint: bool) -> [*const T::Real; 2] {
        let none = std::ptr::null();
        let other = &self.diagonal[if adjoint { 2 } else { 1 }];
        match (self.factor.is_empty(), T::PARTS) {
            (true, _) => [none; 2],
            (false, 1) => [self.diagonal[0].ptr(), none],
            _ => [self.diagonal[0].ptr(), other.ptr()],
        }
    }

    /// conj(E) U
    fn turned(&self) -> Operand<T> {
        let data = if self.factor.is_empty() { self.of.vectors.as_ptr() } else { self.turned.ptr() };
        Operand::new(data, self.m)
    }

    /// U_bar from the sums.
    ///
    /// # Safety
    /// The sums are complete, `bar` has n m elements; every member calls this, each with its own scratch.
    unsafe fn vectors_bar(&self, sums: &Sums<T>, bar: *mut T, scratch: *mut T::Real, member: &Member<'_>) {
        let (n, m) = (self.n, self.m);
        let [inverse, q_p] = [self.inverse, sums.q_p].map(|x| Operand::new(x.ptr().cast_const(), m));
        // SAFETY: the contract above; barriers separate writes from reads by other members.
        unsafe {
            let full = Triangle::Full;
            let product = Product::new((m, m, m), inverse, q_p, sums.mixed.ptr(), m).alpha(-1.0);
            product.shapes(Triangle::Upper, full, Triangle::Lower).run(member, scratch);
            // E H_prev^T conj(p), already with the right sign
            for i in member.share(n, 1) {
                for j in 0..m {
                    let f = *sums.previous_p.ptr().add(i * m + j);
                    bar.add(i * m + j).write(if self.factor.is_empty() { f } else { *self.factor.at(i) * f });
                }
            }
            member.barrier();
            wy::symmetrize(member, sums.mixed.ptr(), m, m);
            member.barrier();
            let (u, mixed) = (Operand::new(self.of.vectors.as_ptr(), m), Operand::new(sums.mixed.ptr(), m));
            Product::new((n, m, m), u, mixed, bar, m).add().run(member, scratch);
            let bar_q = Operand::new(sums.bar_q.ptr().cast_const(), m);
            let product = Product::new((n, m, m), bar_q, inverse.h(), bar, m).alpha(-1.0).add();
            product.shapes(full, Triangle::Lower, full).run(member, scratch);
        }
    }

    /// S_j
    ///
    /// # Safety
    /// The sums are complete, and are not being written.
    unsafe fn crossed(&self, sums: &Sums<T>, j: usize) -> T {
        let at = j * T::PARTS;
        // SAFETY: the contract above; every part is within the sums.
        let [same, other] = sums.cross.map(|sum| move |part: usize| unsafe { *sum.at(at + part) });
        let direct =
            if T::PARTS == 1 { T::real(same(0)) } else { T::new(same(0) + same(1), other(1) - other(0)) };
        let row = j * self.m..(j + 1) * self.m;
        // SAFETY: the contract above; the product has written all of H_prev^T conj(p).
        let f = |at: usize| unsafe { *sums.previous_p.at(at) };
        direct + row.map(|at| self.of.vectors[at] * f(at).conj()).sum::<T>()
    }
}

// SAFETY: the products of a chunk need the scratch of `needs`.
unsafe impl<T: Scalar> Component<T::Real> for ReflectionStep<'_, T> {
    fn needs(&self, rows: usize) -> Needs {
        let (work, most) = (sizes::work(&[2, self.n, self.m, T::PARTS, T::PARTS]), self.n.max(self.m));
        let divisible = self.width() > 2 * lanes::<T::Real>();
        Needs { work: [work, 0], divisible, held: 0, free: Product::<T>::scratch(most, most.max(rows)) }
    }

    /// Writes E and what comes of it, and the zeros of sums.
    unsafe fn fill(&self) {
        let (n, m) = (self.n, self.m);
        // SAFETY: nobody else uses the memory yet; every index lies in its region.
        unsafe {
            for cross in self.sums.iter().flat_map(|sums| sums.cross) {
                cross.zeroed();
            }
            for i in 0..self.factor.len() {
                let e: T = self.of.last.factor(0, i, n);
                self.factor.at(i).write(e);
                for part in 0..T::PARTS {
                    let at = i * T::PARTS + part;
                    let turn = if part == 0 { -e.im() } else { e.im() };
                    for (diagonal, value) in self.diagonal.iter().zip([e.re(), turn, -turn]) {
                        diagonal.at(at).write(value);
                    }
                }
                for j in 0..m {
                    self.turned.at(i * m + j).write(e.conj() * self.of.vectors[i * m + j]);
                }
            }
        }
    }

    unsafe fn prepare(&self, scratch: *mut T::Real, member: &Member<'_>) {
        let (n, m) = (self.n, self.m);
        if m == 0 {
            return;
        }
        let u = Operand::new(self.of.vectors.as_ptr(), m);
        let q = Operand::new(self.negative_q.ptr().cast_const(), m);
        let full = Triangle::Full;
        // SAFETY: U has n rows and m columns; barriers separate writes from reads by other members.
        unsafe {
            wy::inverse(member, u, (n, m), full, self.inverse.ptr(), m, self.work, scratch);
            let inverse = Operand::new(self.inverse.ptr().cast_const(), m);
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

    unsafe fn finish(&self, scratch: *mut T::Real, member: &Member<'_>) {
        let (Some(sums), n) = (&self.sums, self.n) else { return };
        // SAFETY: the sums are complete; one member writes the scalars, none reads them.
        unsafe {
            if let Some(bar) = sums.bars.vectors.filter(|_| self.m > 0) {
                self.vectors_bar(sums, bar.0, scratch, member);
            }
            if member.id == 0 {
                if let Some(bar) = sums.bars.sign {
                    *bar.0 = self.crossed(sums, n - 1).re();
                }
                if let Some(bar) = sums.bars.phases {
                    for j in 0..n {
                        *bar.at(j) = ((*self.factor.at(j)).conj() * self.crossed(sums, j)).im();
                    }
                }
            }
        }
    }
}

// SAFETY: p has `kept` numbers.
unsafe impl<T: Scalar> Step<T> for ReflectionStep<'_, T> {
    fn kept(&self) -> usize {
        self.width()
    }

    unsafe fn forward(&self, previous: *const T::Real, mut map: Affine<T::Real>, on: On<'_, T::Real>) {
        let On { rows, part, .. } = on;
        let mut inner = Affine::new(self.width(), self.batch, self.q.ptr());
        inner.terms[0] = self.forward[0].times(previous);
        (map.base, map.diagonal) = (previous, self.diagonal(false));
        map.terms[1] = self.forward[1].times(self.q.ptr());
        // SAFETY: this part's rows and columns of q and the map exist and are written by no other member; `sync`
        // publishes the rest.
        unsafe {
            inner.run(rows.clone(), part.columns::<T::Real>(self.width()));
            part.sync();
            map.run(rows, part.columns::<T::Real>(map.width));
        }
    }

    unsafe fn backward(&self, trace: Trace<T::Real>, mut map: Affine<T::Real>, on: On<'_, T::Real>) {
        let On { rows, part, .. } = on;
        (map.base, map.diagonal) = (trace.bar, self.diagonal(true));
        if let Some(backward) = &self.backward {
            map.terms[1] = backward[1].times(trace.kept);
        }
        // SAFETY: z_bar and p are complete for these rows; this part's rows and columns are written by no other member.
        unsafe { map.run(rows, part.columns::<T::Real>(map.width)) }
    }

    unsafe fn keep(&self, trace: Trace<T::Real>, rows: Range<usize>, part: &Part<'_>) {
        let mut map = Affine::new(self.width(), self.batch, trace.kept);
        if let Some(backward) = &self.backward {
            map.terms[0] = backward[0].times(trace.bar);
        }
        // SAFETY: z_bar is complete for these rows; this part's rows and columns of p are written by no other member.
        unsafe { map.run(rows, part.columns::<T::Real>(self.width())) }
        part.sync();
    }

    unsafe fn gather(&self, chunk: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>) {
        let Some(sums) = &self.sums else { return };
        let (n, m, rows) = (self.n, self.m, chunk.rows);
        let bar = Operand::new(chunk.trace.bar.cast::<T>(), n);
        let previous = Operand::new(chunk.previous.cast::<T>(), n);
        let p = Operand::new(chunk.trace.kept.cast_const().cast::<T>(), m);
        let q = Operand::new(sums.q.ptr().cast_const().cast::<T>(), m);
        let mut inner = Affine::new(self.width(), usize::MAX, sums.q.ptr());
        inner.terms[0] = self.forward[0].times(chunk.previous);
        let run = |product: Product<T>| {
            let product = if chunk.first { product } else { product.add() };
            // SAFETY: the rows of the chunk and, after the barrier, q are complete; members write disjoint parts of a
            // sum.
            unsafe { product.run(member, scratch) }
        };
        let vectors = sums.bars.vectors.is_some();
        // SAFETY: the rows of the chunk are complete; members write disjoint rows of q and disjoint columns of the sums.
        unsafe {
            if vectors {
                inner.run(member.share(rows, MAX_ROWS), 0..self.width());
            }
            if !self.factor.is_empty() {
                // Only the last element has a sign.
                let (width, lanes) = (n * T::PARTS, lanes::<T::Real>());
                let columns = match sums.bars.sign {
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
}
