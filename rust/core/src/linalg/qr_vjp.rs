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
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frames, Region};
use crate::sizes::{check_len, work};
use isometry_kernels::qr::{Pull, pull_work};
use std::ops::Range;

/// Rows of a block, at least those of a panel.
const BLOCK: usize = if cfg!(test) { 8 } else { 128 };
/// Barriers of a panel.
const BARRIERS: usize = 5;

/// The gradient of A, (batch, m, n), from the results of [`geqrf`](super::geqrf) and their cotangents.
///
/// ```
/// use isometry_core::linalg::{geqrf, geqrf_vjp};
///
/// // R = -||a|| for one column, so the gradient of R is -a / ||a||
/// let (mut factors, mut tau, mut a_bar) = ([0.0f64; 2], [0.0], [0.0; 2]);
/// geqrf(&[3.0, 4.0], (1, 2, 1), &mut factors, &mut tau, 1)?;
/// geqrf_vjp((&factors, &tau), (&[1.0, 0.0], &[0.0]), (1, 2, 1), &mut a_bar, 1)?;
/// assert!((a_bar[0] + 0.6).abs() < 1e-15 && (a_bar[1] + 0.8).abs() < 1e-15);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If an array has another length, or memory ends.
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
    Batch::new::<T>(batch, cost, BARRIERS * k.div_ceil(PANEL)).split(threads).run(
        |arena| Space::<T>::carve(arena, m, n),
        |arena: &mut Arena| Own::<T>::carve(arena, m, n),
        |member, b, space, own| {
            let (x, bars, tau_bar) = (space.x.ptr(), out.at(b * m * n), space.tau_bar.ptr());
            let [a, cotangent] = [a, ct].map(|x| of(x, b, m * n));
            let tau = &tau[b * k..(b + 1) * k];
            let tau_of = |first: usize| &tau[first..k.min(first + PANEL)];
            let places = |first: usize| {
                Places::<T>::carve(&mut space.places.of(first / PANEL).arena(), m - first, PANEL, false)
            };
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                for i in member.share(m, 4) {
                    std::ptr::copy_nonoverlapping(a.add(i * n), x.add(i * n), n);
                    std::ptr::copy_nonoverlapping(cotangent.add(i * n), bars.add(i * n), n);
                }
                for i in member.share(k, 4) {
                    *tau_bar.add(i) = tau_ct[b * k + i];
                }
                for first in (0..k).step_by(PANEL).skip(member.id).step_by(member.count) {
                    Member::alone(|solo| {
                        let hand = Hand { member: solo, scratch: own.scratch.ptr() };
                        let from = (a.add(first * n + first), n);
                        let of = Factors::new(hand, from, tau_of(first), m - first, &places(first), false);
                        of.scale_columns(solo, of.r, of.k, false);
                    });
                }
                member.barrier();
                for first in (0..k).step_by(PANEL).rev() {
                    let at = first * n + first;
                    let panel = Panel {
                        member,
                        factors: Factors::at(&places(first), tau_of(first), m - first),
                        space,
                        own,
                        a: a.add(at),
                        x: x.add(at),
                        bars: bars.add(at),
                        tau_bar: tau_bar.add(first),
                        n,
                    };
                    if n > first + panel.factors.k {
                        panel.behind(n - first - panel.factors.k);
                    }
                    panel.own();
                }
            }
        },
    )
}

/// Memory of one matrix.
struct Space<T> {
    /// V and T of every panel.
    places: Frames,
    /// The matrix that is factored, from its last column on.
    x: Region<T>,
    tau_bar: Region<T>,
    /// V_bar, then its rows behind the first.
    v_bar: Region<T>,
    /// V^H A' and V^H G, block by block; F, H
    projected: [Region<T>; 2],
    small: [Region<T>; 2],
    /// V^H V and V_bar^H V behind the first rows, block by block.
    grams: Region<T>,
    /// In coordinates: V and R, the duals, the cotangents, the gradients, the matrix.
    coordinates: [Region<T>; 5],
}

impl<T: Scalar> Space<T> {
    fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        let (panels, blocks) = (m.min(n).div_ceil(PANEL), m.div_ceil(BLOCK));
        Space {
            places: arena.frames(panels, |arena| Places::<T>::carve(arena, m, PANEL, false)),
            x: arena.take(&[m, n]),
            tau_bar: arena.take(&[m.min(n)]),
            v_bar: arena.take(&[m, PANEL]),
            projected: [(); 2].map(|()| arena.take(&[blocks, PANEL, n])),
            small: [(); 2].map(|()| arena.take(&[PANEL, n])),
            grams: arena.take(&[blocks, 2, PANEL, PANEL]),
            coordinates: [(); 5].map(|()| arena.take(&[3 * PANEL, PANEL])),
        }
    }
}

/// Memory of one member.
struct Own<T: Scalar> {
    scratch: Region<T::Real>,
    work: Region<T::Real>,
    /// M
    mixed: Region<T>,
}

impl<T: Scalar> Own<T> {
    fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        Own {
            scratch: arena.take(&[Product::<T>::scratch(m, m.max(n))]),
            work: arena.take(&[pull_work::<T>(3 * PANEL, PANEL)]),
            mixed: arena.take(&[PANEL, PANEL]),
        }
    }
}

/// A panel, with pointers to its first entry on the diagonal. Its rows are taken by blocks, which belong to one member each;
/// sums over all rows are those of the blocks.
struct Panel<'a, T: Scalar> {
    member: &'a Member<'a>,
    factors: Factors<'a, T>,
    space: &'a Space<T>,
    own: &'a Own<T>,
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
    /// This member's blocks, and their rows.
    fn blocks(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let m = self.factors.m;
        self.member.share(m.div_ceil(BLOCK), 1).map(move |i| (i, i * BLOCK..m.min((i + 1) * BLOCK)))
    }

    /// A product that this member computes alone.
    unsafe fn mul(&self, product: Product<T>) {
        // SAFETY: the caller's.
        unsafe { product.run(&self.member.among(0, 1), self.own.scratch.ptr()) }
    }

    /// V from a row on.
    fn v(&self, row: usize) -> Operand<T> {
        operand(self.factors.v.wrapping_add(row * self.factors.k), self.factors.k)
    }

    /// Through Q^H of the panel, for the `rest` columns behind it. No barrier at the end: a member goes on with its own rows.
    ///
    /// # Safety
    /// The arrays have the rows of the factors; all members call this.
    unsafe fn behind(&self, rest: usize) {
        let Panel { member, factors, space, n, .. } = *self;
        let (w, (c, mixed)) = (factors.k, (space.v_bar.ptr(), self.own.mixed.ptr()));
        let (projected, [f, h]) = (space.projected.map(Region::ptr), space.small.map(Region::ptr));
        let [x, bars] = [self.x, self.bars].map(|x| x.wrapping_add(w));
        let ([f_, h_], each) = ([f, h].map(|small| operand(small, n)), w * n);
        // SAFETY: members write their own rows, and their own columns of small matrices.
        unsafe {
            for (i, Range { start, end }) in self.blocks() {
                let shape = if i == 0 { UPPER } else { FULL };
                for (from, to) in [x, bars].into_iter().zip(projected) {
                    let (from, to) = (operand(from.wrapping_add(start * n), n), to.add(i * each));
                    let product = Product::new((w, rest, end - start), self.v(start).h(), from, to, n);
                    self.mul(product.shapes(shape, FULL, FULL));
                }
            }
            member.barrier();
            let Range { start, end } = member.share(rest, 32);
            for ((sums, to), alpha) in projected.into_iter().zip([f, h]).zip([-1.0, 1.0]) {
                for i in 1..factors.m.div_ceil(BLOCK) {
                    for row in 0..w {
                        for j in row * n + start..row * n + end {
                            *sums.add(j) += *sums.add(i * each + j);
                        }
                    }
                }
                let (from, to) = (operand(sums.add(start), n), to.add(start));
                let turned = Product::new((w, end - start, w), factors.r(), from, to, n).alpha(alpha);
                if start < end {
                    self.mul(turned.shapes(UPPER, FULL, FULL));
                }
            }
            member.barrier();
            // a small product, which takes less time than to wait for another member
            self.mul(Product::new((w, w, rest), f_, h_.h(), mixed, w));
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
            for (i, Range { start, end }) in self.blocks() {
                let (rows, v, shape) = (end - start, self.v(start), if i == 0 { LOWER } else { FULL });
                let [x, bars] = [x, bars].map(|x| x.wrapping_add(start * n));
                let to = c.add(start * w);
                self.mul(Product::new((rows, rest, w), v, f_, x, n).add().shapes(shape, FULL, FULL));
                let product = Product::new((rows, rest, w), v, h_, bars, n).alpha(-1.0).add();
                self.mul(product.shapes(shape, FULL, FULL));
                let product = Product::new((rows, w, w), v, operand(mixed, w), to, w);
                self.mul(product.shapes(shape, UPPER, shape));
                for (from, small) in [(x, h_), (bars, f_)] {
                    let outer = Product::new((rows, w, rest), operand(from, n), small.h(), to, w);
                    self.mul(outer.alpha(-1.0).add().shapes(FULL, FULL, shape));
                }
                for i in start..end {
                    (0..i.min(w)).for_each(|j| *self.bars.add(i * n + j) += *c.add(i * w + j));
                }
            }
        }
    }

    /// The columns of the panel, one by one, in coordinates. Ends with a barrier.
    ///
    /// # Safety
    /// As of [`Panel::behind`].
    unsafe fn own(&self) {
        let Panel { member, factors, space, n, .. } = *self;
        let (Factors { m, k: w, .. }, c, grams) = (factors, space.v_bar.ptr(), space.grams.ptr());
        let ([a, dual, ct, out, before], square) = (space.coordinates.map(Region::ptr), w * w);
        let (top, below) = (|i: &usize| *i < w, |rows: &Range<usize>| rows.start.max(w)..rows.end.max(w));
        let row = |x: *mut T, i: usize| x.wrapping_add(i * n);
        // SAFETY: members write their own rows between barriers.
        unsafe {
            for (block, rows) in self.blocks() {
                for i in rows.clone() {
                    let (from, to) = (row(self.bars, i).cast_const(), c.add(i * w));
                    std::ptr::copy_nonoverlapping(from, if i < w { ct.add(i * w) } else { to }, w);
                }
                let Range { start, end } = below(&rows);
                for (i, left) in [self.v(start), operand(c.add(start * w), w)].into_iter().enumerate() {
                    let to = grams.add((2 * block + i) * square);
                    self.mul(Product::new((w, w, end - start), left.h(), self.v(start), to, w));
                }
            }
            member.barrier();
            if member.id == 0 {
                for i in 0..w {
                    for to in [a, dual] {
                        std::ptr::copy_nonoverlapping(self.a.add(i * n), to.add(i * w), w);
                    }
                }
                for i in w..3 * w {
                    for j in 0..w {
                        let is = |column: usize| if j == column { T::one() } else { T::zero() };
                        *a.add(i * w + j) = if i < 2 * w { is(i - w) } else { T::zero() };
                        *ct.add(i * w + j) = if i < 2 * w { T::zero() } else { is(i - 2 * w) };
                    }
                }
                for at in 0..2 * square {
                    let blocks = 0..m.div_ceil(BLOCK);
                    let sum = blocks.fold(T::zero(), |sum, i| sum + *grams.add(2 * i * square + at));
                    *dual.add(square + at) = sum;
                }
                let (tau, tau_ct, work) =
                    (factors.tau.as_ptr(), self.tau_bar.cast_const(), self.own.work.ptr());
                Pull { a, dual, tau, ct, tau_ct, out, before, m: 3 * w, n: w, work }.call();
            }
            member.barrier();
            for (_, rows) in self.blocks() {
                for i in rows.clone().filter(top) {
                    std::ptr::copy_nonoverlapping(out.add(i * w), row(self.bars, i), w);
                    std::ptr::copy_nonoverlapping(before.add(i * w), row(self.x, i), w);
                }
                let Range { start, end } = below(&rows);
                let (v, own, [x, bars]) = (
                    self.v(start),
                    operand(c.add(start * w), w),
                    [self.x, self.bars].map(|to| row(to, start)),
                );
                for (from, to) in [(out, bars), (before, x)] {
                    self.mul(Product::new((end - start, w, w), v, operand(from.add(square), w), to, n));
                }
                let out = operand(out.add(2 * square), w);
                self.mul(Product::new((end - start, w, w), own, out, bars, n).add());
            }
            member.barrier();
        }
    }
}
