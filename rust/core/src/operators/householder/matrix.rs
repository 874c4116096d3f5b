//! W = E - U h with h = T^-1 U^H E, and its gradient, as products only. For the cotangent C_bar of W, with P = U T^-1
//! and Q = C_bar^H P:
//!
//! ```text
//! L = -h Q (its lower triangle, half of its diagonal),
//! U_bar = -E Q - U (L + L^H) - C_bar h^H,
//! d_j = C_bar_jj - sum_k U_jk conj(Q_jk),   s_bar = Re d_{n-1},   theta_bar_j = Im(conj(e_j) d_j).
//! ```

use super::gradients::Gradients;
use super::hand::{Hand, over};
use super::{Householder, Last};
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle, invert_work, wy};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;

/// The arrays of one matrix; empty where not needed.
struct Places<T> {
    e: Region<T>,
    ti: Region<T>,
    eu: Region<T>,
    h: Region<T>,
    work: Frame,
    p: Region<T>,
    l: Region<T>,
    ubar: Region<T>,
}

impl<T: Scalar> Householder<'_, T> {
    fn matrix_places(&self, arena: &mut Arena, backward: bool, saved: bool) -> Places<T> {
        let (n, m) = (self.n, self.m);
        let last = self.has_last();
        let mut some = |wanted: bool, sizes: [usize; 2]| arena.take(if wanted { &sizes } else { &[0] });
        Places {
            e: some(last, [n, 1]),
            ti: some(!saved, [m, m]),
            eu: some(last, [n, m]),
            h: some(!saved, [m, n]),
            p: some(backward, [n, m]),
            l: some(backward, [m, m]),
            ubar: some(backward, [n, m]),
            work: invert_work::<T>(arena, m),
        }
    }

    /// T^-1, E and h = T^-1 U^H E. Ends with a barrier.
    ///
    /// # Safety
    /// The arrays are those of a call without saved factors, or of one that saves them at ti and h, m x m and m x n; all
    /// members call this.
    unsafe fn factors(&self, hand: &Hand<'_, T>, b: usize, at: &Places<T>, [ti, h]: [*mut T; 2]) {
        let (n, m) = (self.n, self.m);
        let columns = self.columns(b);
        let mut eu = columns.operand();
        // SAFETY: the areas are disjoint; each member writes its share of E^H U before the barriers in `inverse`.
        unsafe {
            self.diagonal(hand.member, b, at.e.ptr());
            if self.has_last() {
                eu = Operand::new(at.eu.ptr(), m);
                for i in hand.member.share(n, 4) {
                    let e = (*at.e.ptr().add(i)).conj();
                    for j in 0..m {
                        *at.eu.ptr().add(i * m + j) = *columns.u.add(i * m + j) * e;
                    }
                }
            }
            columns.inverse(hand, ti, m, at.work);
            let product = Product::new((m, n, m), Operand::new(ti, m), eu.h(), h, n);
            hand.mul(product.shapes(Triangle::Upper, columns.shape.t(), Triangle::Full));
        }
        hand.barrier();
    }

    /// Multiply-adds of T^-1 and h.
    fn cost_factors(&self) -> usize {
        let (n, m) = (self.n, self.m);
        work(&[m, m, n + m / 6])
    }

    /// Sizes per matrix of the factors saved for backward: T^-1 and h.
    pub(super) fn kept(&self) -> [usize; 2] {
        [self.m, self.m + self.n]
    }

    /// T^-1 and h of matrix b: the saved ones, or their place in the workspace.
    fn kept_or(&self, kept: Option<Shared<T>>, b: usize, at: &Places<T>) -> [*mut T; 2] {
        match kept {
            Some(kept) => [0, self.m * self.m].map(|place| kept.at(b * work(&self.kept()) + place)),
            None => [at.ti.ptr(), at.h.ptr()],
        }
    }

    pub(super) fn matrix_whole(&self, out: &mut [T], keep: Option<&mut [T]>, threads: usize) -> Result<()> {
        let (n, m) = (self.n, self.m);
        let keep = keep.map(|keep| Shared(keep.as_mut_ptr()));
        let out = Shared(out.as_mut_ptr());
        let cost = self.cost_factors().saturating_add(work(&[n, n, m]));
        let split = self.split(cost, threads);
        let carve = |arena: &mut Arena| self.matrix_places(arena, false, keep.is_some());
        over(split, (n.max(m), n.max(m)), carve, |hand, b, at| {
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let [ti, h] = self.kept_or(keep, b, at);
                self.factors(hand, b, at, [ti, h]);
                let w = out.at(b * n * n);
                let (columns, h) = (self.columns(b), Operand::new(h, n));
                let product = Product::new((n, n, m), columns.operand(), h, w, n).alpha(-1.0);
                hand.mul(product.shapes(columns.shape, columns.shape.t(), Triangle::Full));
                hand.barrier();
                for i in hand.member.share(n, 16) {
                    *w.add(i * n + i) += if self.has_last() { *at.e.ptr().add(i) } else { T::one() };
                }
            }
        })
    }

    pub(super) fn matrix_whole_vjp(
        &self,
        kept: Option<&[T]>,
        ct: &[T],
        gradients: Gradients<'_, T>,
        threads: usize,
    ) -> Result<()> {
        let (n, m) = (self.n, self.m);
        // only read if given
        let kept = kept.map(|kept| Shared(kept.as_ptr().cast_mut()));
        let Gradients { vectors, last } = gradients;
        if vectors.is_none() && last.is_none() {
            return Ok(());
        }
        let vectors_bar = vectors.map(|x| Shared(x.as_mut_ptr()));
        let last_bar = last.map(|x| Shared(x.as_mut_ptr()));
        const FULL: Triangle = Triangle::Full;
        let cost = self.cost_factors().saturating_add(work(&[2, n, m, n + m]));
        let split = self.split(cost, threads);
        let carve = |arena: &mut Arena| self.matrix_places(arena, true, kept.is_some());
        over(split, (n.max(m), n.max(m)), carve, |hand, b, at| {
            let columns = self.columns(b);
            let (u, shape, shape_t) = (columns.operand(), columns.shape, columns.shape.t());
            let ct = Operand::new(ct[b * n * n..].as_ptr(), n);
            let [ti, h] = self.kept_or(kept, b, at);
            let (p, l) = (at.p.ptr(), at.l.ptr());
            let ubar = vectors_bar.map_or(at.ubar.ptr(), |all| all.at(b * n * m));
            let (h_, p_, l_, ubar_) =
                (Operand::new(h, n), Operand::new(p, m), Operand::new(l, m), Operand::new(ubar, m));
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                match kept {
                    None => self.factors(hand, b, at, [ti, h]),
                    Some(_) => self.diagonal(hand.member, b, at.e.ptr()),
                }
                let product = Product::new((n, m, m), u, Operand::new(ti, m), p, m);
                hand.mul(product.shapes(shape, Triangle::Upper, FULL));
                hand.barrier();
                hand.mul(Product::new((n, m, n), ct.h(), p_, ubar, m).alpha(-1.0));
                hand.barrier();
                if vectors_bar.is_some() {
                    let product = Product::new((m, m, n), h_, ubar_, l, m);
                    hand.mul(product.shapes(shape_t, FULL, Triangle::Lower));
                    hand.barrier();
                    wy::symmetrize(hand.member, l, m, m);
                }
                if self.has_last() {
                    self.last_gradient(hand, b, at.e.ptr(), ct.data, ubar, last_bar);
                }
                hand.barrier();
                if vectors_bar.is_some() {
                    // C is distributed over the members in the same way both times, so no barrier is needed in between
                    let product = Product::new((n, m, m), u, l_, ubar, m).alpha(-1.0).add();
                    hand.mul(product.shapes(shape, FULL, FULL));
                    let product = Product::new((n, m, n), ct, h_.h(), ubar, m).alpha(-1.0).add();
                    hand.mul(product.shapes(FULL, shape, FULL));
                }
            }
        })
    }

    /// Reads -Q in `ubar`, writes the gradient of the last factor, and turns -Q into -E Q.
    ///
    /// # Safety
    /// The arrays of matrix b have their sizes; `-Q` is complete.
    unsafe fn last_gradient(
        &self,
        hand: &Hand<'_, T>,
        b: usize,
        e: *const T,
        ct: *const T,
        ubar: *mut T,
        last_bar: Option<Shared<T::Real>>,
    ) {
        let (n, m) = (self.n, self.m);
        for j in hand.member.share(n, 4) {
            // SAFETY: row j belongs to this member only.
            unsafe {
                let e = *e.add(j);
                let mut d = *ct.add(j * n + j);
                for k in 0..m {
                    let minus_q = ubar.add(j * m + k);
                    d += *self.columns(b).u.add(j * m + k) * (*minus_q).conj();
                    *minus_q *= e;
                }
                match (last_bar, self.last) {
                    (Some(bar), Last::Phases(_)) => *bar.at(b * n + j) = (e.conj() * d).im(),
                    (Some(bar), Last::Sign(_)) if j + 1 == n => *bar.at(b) = d.re(),
                    _ => {}
                }
            }
        }
    }
}
