//! The first k columns of Q, and their gradient. With V_1 the first k rows of V, E the first k columns of I,
//!
//! ```text
//! Q = E - V T V_1^H;
//! ```
//!
//! a small matrix one reflection after another, which takes a third of the multiply-adds.
//!
//! For its cotangent C, with T = R D = D N ([`super::reflectors`]),
//!
//! ```text
//! W = V R,  Y = V_1 N^H,  Z = C Y,  B = W^H Z,
//! tau_bar = -diag B,
//! V_bar = V (G + G^H) - Z D^* - [C^H W D; 0],      G = D^* striu(B) D^*.
//! ```

use super::reflectors::{BARRIERS, FULL, Hand, LOWER, Places, Reflectors, UPPER};
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Operand, Product};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::{check_len, work};
use isometry_kernels::qr::{Product as Sequential, product_work};

/// Bytes of a matrix up to which its reflections are applied one after another, in the cache.
const CACHED: usize = if cfg!(test) { 1 << 11 } else { 1 << 16 };

/// The first k columns of every product of the batch: out (batch, m, k).
///
/// ```
/// use isometry_core::linalg::{Reflectors, product};
///
/// let one = Reflectors::new(&[0.0, 1.0], &[1.0], 1, 2, 1)?; // H = I - v v^T with v = (1, 1)
/// let mut q = [0.0; 2];
/// product(&one, &mut q, 1)?;
/// assert_eq!(q, [0.0, -1.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If `out` has another length, or memory ends.
pub fn product<T: Scalar>(of: &Reflectors<'_, T>, out: &mut [T], threads: usize) -> Result<()> {
    let Reflectors { batch, m, k, .. } = *of;
    check_len("out", out.len(), &[batch, m, k])?;
    if out.is_empty() {
        return Ok(());
    }
    let out = Shared(out.as_mut_ptr());
    if work(&[m, k]).saturating_mul(size_of::<T>()) <= CACHED {
        return Batch::whole::<T>(batch, work(&[2, m, k, k]) / 3).split(threads).run(
            |_| (),
            |arena: &mut Arena| -> Region<T::Real> { arena.take(&[product_work::<T>(m, k)]) },
            |_, b, (), room| {
                let (a, tau) = (of.a[b * m * k..].as_ptr(), of.tau_of(b).as_ptr());
                // SAFETY: the arrays' sizes were checked; each matrix belongs to one member.
                unsafe { Sequential { a, tau, out: out.at(b * m * k), m, k, work: room.ptr() }.call() };
            },
        );
    }
    let cost = of.cost(1).saturating_add(work(&[m, k, k]));
    Batch::new::<T>(batch, cost, BARRIERS).split(threads).run(
        |arena| (Places::carve(arena, m, k, false), arena.take::<T>(&[m, k])),
        |arena: &mut Arena| arena.take::<T::Real>(&[Product::<T>::scratch(m, m)]),
        |member, b, (places, p), scratch| {
            let hand = Hand { member, scratch: scratch.ptr() };
            let (p, q) = (p.ptr(), out.at(b * m * k));
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let factors = of.factors(hand, b, places, false);
                let v = factors.v();
                hand.mul(Product::new((m, k, k), v, factors.r(), p, k).shapes(LOWER, UPPER, FULL));
                member.barrier();
                factors.scale_columns(member, p, m, false);
                member.barrier();
                let product = Product::new((m, k, k), Operand::new(p, k), v.h(), q, k).alpha(-1.0);
                hand.mul(product.shapes(FULL, UPPER, FULL));
                member.barrier();
                for i in member.share(k, 16) {
                    *q.add(i * k + i) += T::one();
                }
            }
        },
    )
}

/// The gradients a_bar (batch, m, k) and tau_bar (batch, k) of the cotangent ct (batch, m, k) of [`product`].
///
/// ```
/// use isometry_core::linalg::{Reflectors, product_vjp};
///
/// // the column is (1 - tau, -tau v_2); of its second entry
/// let one = Reflectors::new(&[0.0, 1.0], &[1.0], 1, 2, 1)?; // H = I - v v^T with v = (1, 1)
/// let (mut a_bar, mut tau_bar) = ([0.0; 2], [0.0]);
/// product_vjp(&one, &[0.0, 1.0], &mut a_bar, &mut tau_bar, 1)?;
/// assert_eq!((a_bar, tau_bar), ([0.0, -1.0], [-1.0]));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If an array has another length, or memory ends.
pub fn product_vjp<T: Scalar>(
    of: &Reflectors<'_, T>,
    ct: &[T],
    a_bar: &mut [T],
    tau_bar: &mut [T],
    threads: usize,
) -> Result<()> {
    let Reflectors { batch, m, k, .. } = *of;
    check_len("ct", ct.len(), &[batch, m, k])?;
    check_len("a_bar", a_bar.len(), &[batch, m, k])?;
    check_len("tau_bar", tau_bar.len(), &[batch, k])?;
    if a_bar.is_empty() {
        return Ok(());
    }
    let (a_bar, tau_bar) = (Shared(a_bar.as_mut_ptr()), Shared(tau_bar.as_mut_ptr()));
    let cost = of.cost(2).saturating_add(work(&[5, m, k, k]) / 2);
    Batch::new::<T>(batch, cost, 2 * BARRIERS).split(threads).run(
        |arena| {
            let places = Places::carve(arena, m, k, true);
            (places, [m, m, k, k].map(|rows| arena.take::<T>(&[rows, k])))
        },
        |arena: &mut Arena| arena.take::<T::Real>(&[Product::<T>::scratch(m, m)]),
        |member, b, (places, own), scratch| {
            let hand = Hand { member, scratch: scratch.ptr() };
            let [w, z, y, g] = own.map(|region| region.ptr());
            let [w_, z_, y_, g_] = [w, z, y, g].map(|x| Operand::new(x.cast_const(), k));
            let c = Operand::new(ct[b * m * k..].as_ptr(), k);
            let bar = a_bar.at(b * m * k);
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let factors = of.factors(hand, b, places, true);
                let v = factors.v();
                hand.mul(Product::new((m, k, k), v, factors.r(), w, k).shapes(LOWER, UPPER, FULL));
                hand.mul(Product::new((k, k, k), v, factors.n().h(), y, k).shapes(LOWER, LOWER, LOWER));
                member.barrier();
                // the product above does not write this part of Y
                for i in member.share(k, 4) {
                    (i + 1..k).for_each(|j| *y.add(i * k + j) = T::zero());
                }
                member.barrier();
                hand.mul(Product::new((m, k, k), c, y_, z, k).shapes(FULL, LOWER, FULL));
                member.barrier();
                hand.mul(Product::new((k, k, m), w_.h(), z_, g, k).shapes(FULL, FULL, UPPER));
                factors.small_gradients(member, g, tau_bar.at(b * k));
                factors.scale_columns(member, w, m, false);
                hand.mul(Product::new((m, k, k), v, g_, bar, k).shapes(LOWER, FULL, LOWER));
                member.barrier();
                let first = Product::new((k, k, m), c.h(), w_, bar, k).alpha(-1.0).add();
                hand.mul(first.shapes(FULL, FULL, LOWER));
                member.barrier();
                for i in member.share(m, 4) {
                    for j in 0..i.min(k) {
                        *bar.add(i * k + j) -= *z.add(i * k + j) * factors.tau[j].conj();
                    }
                }
                factors.below(member, bar);
            }
        },
    )
}
