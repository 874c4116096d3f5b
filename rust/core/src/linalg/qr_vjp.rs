//! The gradient of A = Q R, panel by panel, from the last to the first. With V and T of a panel, A' the columns behind it after
//! its Q^H and G their cotangent ([`super::product`] and docs/math/linalg.md),
//!
//! ```text
//! F = -T V^H A',  H = T V^H G,  A = A' + V F,  G <- G - V H,  M = F H^H,
//! V_bar = V (striu(M) + striu(M)^H - M^H) - A H^H - G F^H,  tau_bar = -diag M / conj(tau)^2.
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
        |arena: &mut Arena| -> (Region<T::Real>, Region<T::Real>, Region<T>) {
            let scratch = arena.take(&[Product::<T>::scratch(m, m.max(n))]);
            let work = arena.take(&[pull_work::<T>(3 * PANEL, PANEL)]);
            (scratch, work, arena.take(&[PANEL, PANEL]))
        },
        |member, b, space, (scratch, room, mixed)| {
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
                        mixed: mixed.ptr(),
                        first,
                        n,
                    };
                    if n > first + tau.len() {
                        panel.behind();
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
    /// This member's M.
    mixed: *mut T,
    /// The first column.
    first: usize,
    /// The row stride.
    n: usize,
}

fn operand<T: Scalar>(x: *mut T, rows: usize) -> Operand<T> {
    Operand::new(x.cast_const(), rows)
}

impl<T: Scalar> Panel<'_, T> {
    /// Through Q^H of the panel, for the columns behind it. A column belongs to the same member in every panel, so that it stays in
    /// the cache of one core. Starts and ends with a barrier.
    ///
    /// # Safety
    /// The arrays have the rows of the factors; all members call this.
    unsafe fn behind(&self) {
        let Panel { hand, factors, space, n, first, .. } = *self;
        let (Factors { m, k: w, .. }, member) = (factors, hand.member);
        let ([p, q, f, h], c) = (space.small.map(Region::ptr), space.v_bar.ptr());
        let (v, t, columns) = (factors.v(), factors.r(), (first + w, n));
        let [x, bars] = [self.x, self.bars].map(|x| x.wrapping_sub(first));
        let [p_, q_, f_, h_] = [p, q, f, h].map(|small| operand(small, n));
        // those of the columns behind the panel alone
        let [x_, bars_] = [x, bars].map(|x| operand(x.wrapping_add(columns.0), n));
        let [f_behind, h_behind] = [f, h].map(|small| operand(small.wrapping_add(columns.0), n));
        let (mixed, rest) = (self.mixed, n - columns.0);
        // SAFETY: members write their own columns, then their own rows.
        unsafe {
            factors.scale_columns(member, factors.r, w, false);
            member.barrier();
            let own = |x: Product<T>, shape| hand.mul(x.shapes(shape, FULL, FULL).columns(columns));
            own(Product::new((w, n, m), v.h(), operand(x, n), p, n), UPPER);
            own(Product::new((w, n, m), v.h(), operand(bars, n), q, n), UPPER);
            own(Product::new((w, n, w), t, p_, f, n).alpha(-1.0), UPPER);
            own(Product::new((w, n, w), t, q_, h, n), UPPER);
            own(Product::new((m, n, w), v, f_, x, n).add(), LOWER);
            own(Product::new((m, n, w), v, h_, bars, n).alpha(-1.0).add(), LOWER);
            member.barrier();
            // a small product, which every member takes less time to compute than to wait for
            Product::new((w, w, rest), f_behind, h_behind.h(), mixed, w)
                .run(&member.among(0, 1), hand.scratch);
            for i in 0..w {
                let (own, tau) = (*mixed.add(i * w + i), factors.tau[i].conj());
                if member.id == 0 && tau != T::zero() {
                    *self.tau_bar.add(i) -= own / (tau * tau);
                }
                *mixed.add(i * w + i) = -own.conj();
                for j in i + 1..w {
                    *mixed.add(i * w + j) -= (*mixed.add(j * w + i)).conj();
                    *mixed.add(j * w + i) = T::zero();
                }
            }
            let product = Product::new((m, w, w), v, operand(mixed, w), c, w);
            hand.mul(product.shapes(LOWER, UPPER, LOWER));
            for (from, small) in [(x_, h_behind), (bars_, f_behind)] {
                let outer = Product::new((m, w, rest), from, small.h(), c, w).alpha(-1.0).add();
                hand.mul(outer.shapes(FULL, FULL, LOWER));
            }
            member.barrier();
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
