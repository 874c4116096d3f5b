//! Shared by the matrix, its application and both gradients: work sharing over threads, T^-1, the last factor.

use super::{Householder, Last};
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle, wy};
use crate::parallel::{self, Member};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Scratch, most};
use crate::sizes::work;

/// One member of a call with its own scratch for products.
pub(super) struct Hand<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub scratch: *mut T::Real,
}

impl<T: Scalar> Hand<'_, T> {
    /// This member's part of a product.
    ///
    /// # Safety
    /// As [`Product::run`], except for the scratch, which has the size of the largest product of the call.
    #[inline]
    pub unsafe fn mul(&self, product: Product<T>) {
        // SAFETY: the caller upholds the contract of `run`; the scratch is large enough for every product of the call.
        unsafe { product.run(self.member, self.scratch) }
    }
    pub fn barrier(&self) {
        self.member.barrier();
    }
}

/// Threads worth using for a batch at this cost per matrix; all in unit tests, so that small shapes cover every split.
pub(super) fn members<T: Scalar>(batch: usize, cost: usize, threads: usize) -> usize {
    if cfg!(test) {
        return threads.max(1);
    }
    let wide = T::PARTS * T::PARTS * size_of::<T::Real>() / size_of::<f32>();
    most(threads).min(work(&[batch, cost, wide]) / ENTRY + 1)
}

/// Multiply-adds of float32, about 30 us, from which another thread pays in a call with several barriers.
const ENTRY: usize = 2_000_000;

/// Runs `f(hand, matrix, places)` for every matrix of the batch: many matrices are distributed over the members, few are
/// computed one after another by all members. `cost` is the multiply-adds of one matrix, `threads` comes from
/// [`members`], `carve` carves the workspace of one matrix, `product` is the (rows, depth) of its largest product.
pub(super) fn over<T: Scalar, P>(
    batch: usize,
    cost: usize,
    threads: usize,
    product: (usize, usize),
    carve: impl Fn(&mut Arena) -> P + Sync,
    f: impl Fn(&Hand<'_, T>, usize, &P) + Sync,
) -> Result<()> {
    let apart = threads > 1 && (batch >= 4 * threads || (batch >= threads && cost < 2_000_000));
    let groups = if apart { threads } else { 1 };
    let room = Scratch::new(|arena| {
        let own = Product::<T>::scratch(product.0, product.1);
        (arena.frames(groups, &carve), arena.regions(threads, &[own]))
    })?;
    parallel::run(threads, &|member| {
        let (places, scratch) = *room;
        let scratch = scratch.of(member.id).ptr();
        let places = carve(&mut places.of(if apart { member.id } else { 0 }).arena());
        if apart {
            let mine = member.share(batch, 1);
            Member::alone(|member| {
                for b in mine {
                    f(&Hand { member, scratch }, b, &places);
                }
            });
        } else {
            for b in 0..batch {
                f(&Hand { member, scratch }, b, &places);
                member.barrier();
            }
        }
    });
    Ok(())
}

/// [`over`] with whole matrices distributed over the threads, without products.
pub(super) fn each_alone<T: Scalar, P>(
    batch: usize,
    threads: usize,
    carve: impl Fn(&mut Arena) -> P + Sync,
    f: impl Fn(&Hand<'_, T>, usize, &P) + Sync,
) -> Result<()> {
    let room = Scratch::new(|arena| arena.frames(threads, &carve))?;
    parallel::run(threads, &|member| {
        let places = carve(&mut room.of(member.id).arena());
        let mine = member.share(batch, 1);
        Member::alone(|member| {
            for b in mine {
                f(&Hand { member, scratch: std::ptr::null_mut() }, b, &places);
            }
        });
    });
    Ok(())
}

/// Some columns of U: n x m at `u`, row stride `stride`; for a trapezoid from row `top` on, the first that is not zero.
#[derive(Clone, Copy)]
pub(super) struct Columns<T> {
    pub u: *const T,
    pub stride: usize,
    pub n: usize,
    pub m: usize,
    /// First row, as an index into the whole of U.
    pub top: usize,
    /// `Lower` if the entries above the diagonal are zero.
    pub shape: Triangle,
}

impl<T: Scalar> Columns<T> {
    /// `width` columns from `first` on, or as many as there are.
    pub fn block(self, first: usize, width: usize) -> Self {
        let top = if self.shape == Triangle::Lower { first } else { 0 };
        let u = self.u.wrapping_add(top * self.stride + first);
        Columns { u, n: self.n - top, m: width.min(self.m - first), top, ..self }
    }
    pub fn operand(self) -> Operand<T> {
        Operand::new(self.u, self.stride)
    }

    /// `ti` (m x m, row stride `pitch`) = T^-1, zeros below the diagonal. `work` is [`crate::kernels::invert_work`] of
    /// m. Starts without and ends with a barrier.
    ///
    /// # Safety
    /// The arrays have their sizes; all members call this.
    pub unsafe fn inverse(self, hand: &Hand<'_, T>, ti: *mut T, pitch: usize, work: Frame) {
        // SAFETY: the contract above; the hand's scratch is large enough for every product of the call.
        unsafe {
            wy::inverse(
                hand.member,
                self.operand(),
                (self.n, self.m),
                self.shape,
                ti,
                pitch,
                work,
                hand.scratch,
            );
        }
    }
}

impl<T: Scalar> Householder<'_, T> {
    pub(super) fn columns(&self, b: usize) -> Columns<T> {
        let (n, m) = (self.n, self.m);
        let shape = if self.trapezoid { Triangle::Lower } else { Triangle::Full };
        Columns { u: self.vectors[b * n * m..].as_ptr(), stride: m, n, m, top: 0, shape }
    }

    pub(super) fn has_last(&self) -> bool {
        !matches!(self.last, Last::None)
    }

    /// The diagonal of E into `e` (n). Each member writes its share; a barrier follows.
    ///
    /// # Safety
    /// `e` has n elements.
    pub(super) unsafe fn diagonal(&self, hand: &Hand<'_, T>, b: usize, e: *mut T) {
        for i in hand.member.share(self.n, 16) {
            // SAFETY: inside the array, own share.
            unsafe { e.add(i).write(self.last.factor(b, i, self.n)) };
        }
        hand.barrier();
    }
}
