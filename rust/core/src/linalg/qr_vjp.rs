//! The gradient of A = Q R, panel by panel, from the last to the first. With V and T of a panel, A' the columns behind it after
//! its Q^H and G their cotangent ([`super::product`] and docs/math/linalg.md),
//!
//! ```text
//! F = -T V^H A',  H = T V^H G,  A = A' + V F,  M = F H^H,
//! V_bar = V (striu(M) + striu(M)^H) - A H^H - G F^H,  tau_bar = -diag M / conj(tau)^2,  G <- G - V H.
//! ```
//!
//! The columns of the panel itself are taken one by one, see [`isometry_kernels::qr`]. Behind its first w rows all of them, their
//! cotangents and their gradients are combinations of the columns of V and of V_bar: the step works on coordinates, 3 w rows.

use super::qr::{PANEL, WHOLE};
use super::reflectors::{FULL, Factors, Hand, LOWER, Places, UPPER};
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Operand, Product};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::{check_len, work};
use isometry_kernels::qr::{Pull, pull_work};

/// Barriers of a panel.
const BARRIERS: usize = 24;

/// The gradient of A, (batch, m, n), from the results of [`geqrf`](super::geqrf) and their cotangents.
pub fn geqrf_vjp<T: Scalar>(
    (a, tau): (&[T], &[T]),
    (ct, tau_ct): (&[T], &[T]),
    (batch, m, n): (usize, usize, usize),
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    let k = m.min(n);
    for (name, len) in [("a", a.len()), ("ct", ct.len()), ("out", out.len())] {
        check_len(name, len, &[batch, m, n])?;
    }
    check_len("tau", tau.len(), &[batch, k])?;
    check_len("tau_ct", tau_ct.len(), &[batch, k])?;
    if out.is_empty() {
        return Ok(());
    }
    let out = Shared(out.as_mut_ptr());
    let cost = work(&[6, n, k, m]);
    let of = |x: &[T], b: usize, each: usize| x[b * each..].as_ptr();
    if n <= WHOLE {
        return Batch::whole::<T>(batch, cost).split(threads).run(
            |_| (),
            |arena: &mut Arena| -> Region<T::Real> { arena.take(&[pull_work::<T>(m, n)]) },
            |_, b, (), room| {
                let [a, ct] = [a, ct].map(|x| of(x, b, m * n));
                let [tau, tau_ct] = [tau, tau_ct].map(|x| of(x, b, k));
                let (dual, before) = (std::ptr::null(), std::ptr::null_mut());
                let (out, work) = (out.at(b * m * n), room.ptr());
                // SAFETY: the arrays' sizes were checked; each matrix belongs to one member.
                unsafe { Pull { a, dual, tau, ct, tau_ct, out, before, m, n, work }.call() };
            },
        );
    }
    let barriers = BARRIERS * k.div_ceil(PANEL);
    Batch::new::<T>(batch, cost, barriers).split(threads).run(
        |arena| Space::<T>::carve(arena, m, n),
        |arena: &mut Arena| -> (Region<T::Real>, Region<T::Real>) {
            (arena.take(&[Product::<T>::scratch(m, m)]), arena.take(&[pull_work::<T>(3 * PANEL, PANEL)]))
        },
        |member, b, space, (scratch, room)| {
            let (x, bars, tau_bar) = (space.x.ptr(), out.at(b * m * n), space.tau_bar.ptr());
            let [own, cotangent] = [a, ct].map(|x| of(x, b, m * n));
            let hand = Hand { member, scratch: scratch.ptr() };
            let tau = &tau[b * k..(b + 1) * k];
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                for i in member.share(m, 4) {
                    std::ptr::copy_nonoverlapping(own.add(i * n), x.add(i * n), n);
                    std::ptr::copy_nonoverlapping(cotangent.add(i * n), bars.add(i * n), n);
                }
                for i in member.share(k, 4) {
                    *tau_bar.add(i) = tau_ct[b * k + i];
                }
                for first in (0..k).step_by(PANEL).rev() {
                    let (tau, at) = (&tau[first..k.min(first + PANEL)], first * n + first);
                    let factors = Factors::new(hand, (own.add(at), n), tau, m - first, &space.places, false);
                    let panel = Panel {
                        hand,
                        factors,
                        space,
                        a: own.add(at),
                        x: x.add(at),
                        bars: bars.add(at),
                        tau_bar: tau_bar.add(first),
                        n,
                    };
                    if n > first + tau.len() {
                        panel.behind(n - first - tau.len());
                    }
                    panel.own(room.ptr());
                }
            }
        },
    )
}

/// Memory of one matrix.
struct Space<T> {
    places: Places<T>,
    /// The matrix that is factored, from its last column on.
    x: Region<T>,
    tau_bar: Region<T>,
    /// V_bar, then its rows behind the first.
    v_bar: Region<T>,
    /// V^H A', V^H G, F, H
    small: [Region<T>; 4],
    mixed: Region<T>,
    /// In coordinates: V and R, the duals, the cotangents, the gradients, the matrix.
    coordinates: [Region<T>; 5],
}

impl<T: Scalar> Space<T> {
    fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        Space {
            places: Places::carve(arena, m, PANEL, false),
            x: arena.take(&[m, n]),
            tau_bar: arena.take(&[m.min(n)]),
            v_bar: arena.take(&[m, PANEL]),
            small: [(); 4].map(|()| arena.take(&[PANEL, n])),
            mixed: arena.take(&[PANEL, PANEL]),
            coordinates: [(); 5].map(|()| arena.take(&[3 * PANEL, PANEL])),
        }
    }
}

/// A panel, with pointers to its first entry on the diagonal.
struct Panel<'a, T: Scalar> {
    hand: Hand<'a, T>,
    factors: Factors<'a, T>,
    space: &'a Space<T>,
    a: *const T,
    x: *mut T,
    bars: *mut T,
    tau_bar: *mut T,
    /// The row stride.
    n: usize,
}

fn operand<T: Scalar>(x: *mut T, rows: usize) -> Operand<T> {
    Operand::new(x.cast_const(), rows)
}

impl<T: Scalar> Panel<'_, T> {
    /// Through Q^H of the panel, for the `rest` columns behind it. Starts and ends with a barrier.
    ///
    /// # Safety
    /// The arrays have the rows of the factors; all members call this.
    unsafe fn behind(&self, rest: usize) {
        let Panel { hand, factors, space, n, .. } = *self;
        let (Factors { m, k: w, .. }, member) = (factors, hand.member);
        let ([p, q, f, h], mixed, c) = (space.small.map(Region::ptr), space.mixed.ptr(), space.v_bar.ptr());
        let (v, t) = (factors.v(), factors.r());
        let (x, bars) = (self.x.wrapping_add(w), self.bars.wrapping_add(w));
        let [p_, q_, f_, h_] = [p, q, f, h].map(|small| operand(small, rest));
        // SAFETY: members write disjoint parts between barriers.
        unsafe {
            factors.scale_columns(member, factors.r, w, false);
            for (from, to) in [(x, p), (bars, q)] {
                hand.mul(
                    Product::new((w, rest, m), v.h(), operand(from, n), to, rest).shapes(UPPER, FULL, FULL),
                );
            }
            member.barrier();
            for (from, to, alpha) in [(p_, f, -1.0), (q_, h, 1.0)] {
                let turned = Product::new((w, rest, w), t, from, to, rest).alpha(alpha);
                hand.mul(turned.shapes(UPPER, FULL, FULL));
            }
            member.barrier();
            hand.mul(Product::new((w, w, rest), f_, h_.h(), mixed, w).shapes(FULL, FULL, UPPER));
            hand.mul(Product::new((m, rest, w), v, f_, x, n).add().shapes(LOWER, FULL, FULL));
            member.barrier();
            for i in member.share(w, 4) {
                let (own, tau) = (mixed.add(i * w + i), factors.tau[i].conj());
                if tau != T::zero() {
                    *self.tau_bar.add(i) -= *own / (tau * tau);
                }
                *own = T::zero();
                (i + 1..w).for_each(|j| *mixed.add(j * w + i) = (*mixed.add(i * w + j)).conj());
            }
            member.barrier();
            hand.mul(Product::new((m, w, w), v, operand(mixed, w), c, w).shapes(LOWER, FULL, LOWER));
            for (from, small) in [(x, h_), (bars, f_)] {
                member.barrier();
                let outer = Product::new((m, w, rest), operand(from, n), small.h(), c, w).alpha(-1.0).add();
                hand.mul(outer.shapes(FULL, FULL, LOWER));
            }
            member.barrier();
            let outer = Product::new((m, rest, w), v, h_, bars, n).alpha(-1.0).add();
            hand.mul(outer.shapes(LOWER, FULL, FULL));
            for i in member.share(m, 4) {
                (0..i.min(w)).for_each(|j| *self.bars.add(i * n + j) += *c.add(i * w + j));
            }
            member.barrier();
        }
    }

    /// The columns of the panel, one by one, in coordinates. Ends with a barrier.
    ///
    /// # Safety
    /// As of [`Panel::behind`]; `work` is this member's, of [`pull_work`] for 3 w x w.
    unsafe fn own(&self, work: *mut T::Real) {
        let Panel { hand, factors, space, n, .. } = *self;
        let (Factors { m, k: w, .. }, member) = (factors, hand.member);
        let ([a, dual, ct, out, before], c) = (space.coordinates.map(Region::ptr), space.v_bar.ptr());
        let (below, square) = (m - w, w * w);
        let [bars, x] = [self.bars, self.x].map(|x| x.wrapping_add(w * n));
        let (v, c_) = (operand(factors.v.wrapping_add(square), w), operand(c, w));
        // SAFETY: members write disjoint parts between barriers.
        unsafe {
            for i in member.share(below, 4) {
                std::ptr::copy_nonoverlapping(bars.add(i * n), c.add(i * w), w);
            }
            for i in member.share(3 * w, 4) {
                for to in [a, ct] {
                    (0..w).for_each(|j| *to.add(i * w + j) = T::zero());
                }
                match i / w {
                    0 => {
                        std::ptr::copy_nonoverlapping(self.a.add(i * n), a.add(i * w), w);
                        std::ptr::copy_nonoverlapping(self.a.add(i * n), dual.add(i * w), w);
                        std::ptr::copy_nonoverlapping(self.bars.add(i * n), ct.add(i * w), w);
                    }
                    1 => *a.add(i * w + i - w) = T::one(),
                    _ => *ct.add(i * w + i - 2 * w) = T::one(),
                }
            }
            member.barrier();
            for (i, rows) in [v, c_].into_iter().enumerate() {
                let to = dual.add((i + 1) * square);
                hand.mul(Product::new((w, w, below), rows.h(), v, to, w));
            }
            member.barrier();
            if member.id == 0 {
                let (tau, tau_ct) = (factors.tau.as_ptr(), self.tau_bar.cast_const());
                Pull { a, dual, tau, ct, tau_ct, out, before, m: 3 * w, n: w, work }.call();
            }
            member.barrier();
            for i in member.share(w, 4) {
                std::ptr::copy_nonoverlapping(out.add(i * w), self.bars.add(i * n), w);
                std::ptr::copy_nonoverlapping(before.add(i * w), self.x.add(i * n), w);
            }
            for (from, to) in [(out, bars), (before, x)] {
                hand.mul(Product::new((below, w, w), v, operand(from.add(square), w), to, n));
            }
            member.barrier();
            hand.mul(Product::new((below, w, w), c_, operand(out.add(2 * square), w), bars, n).add());
            member.barrier();
        }
    }
}
