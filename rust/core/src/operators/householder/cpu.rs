//! Shared by the matrix, its application and both gradients: work sharing over threads, T^-1, the last factor.

use super::{Householder, Last};
use crate::batch::{Batch, Split};
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle, wy};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};

/// One member of a call with its own scratch for products.
pub(super) struct Hand<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub scratch: *mut T::Real,
}

impl<'a, T: Scalar> Hand<'a, T> {
    /// For work that takes no product.
    pub fn without_products(member: &'a Member<'a>) -> Self {
        Hand { member, scratch: std::ptr::null_mut() }
    }

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

/// [`Split::run`] with scratch of each member for its products, of which `product` is the (rows, depth) of the largest.
pub(super) fn over<T: Scalar, P>(
    split: Split,
    product: (usize, usize),
    carve: impl Fn(&mut Arena) -> P + Sync,
    f: impl Fn(&Hand<'_, T>, usize, &P) + Sync,
) -> Result<()> {
    let scratch = |arena: &mut Arena| -> Region<T::Real> {
        arena.take(&[Product::<T>::scratch(product.0, product.1)])
    };
    split.run(carve, scratch, |member, b, places, scratch| {
        f(&Hand { member, scratch: scratch.ptr() }, b, places);
    })
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

/// Barriers of a matrix that several members compute, as [`Batch`] counts them.
const BARRIERS: usize = 5;

impl<T: Scalar> Householder<'_, T> {
    /// Matrices at `cost` multiply-adds each, distributed.
    pub(super) fn split(&self, cost: usize, threads: usize) -> Split {
        Batch::new::<T>(self.batch, cost, BARRIERS).split(threads)
    }

    /// The same for kernels that compute a matrix on one thread.
    pub(super) fn whole(&self, cost: usize, threads: usize) -> Split {
        Batch::whole::<T>(self.batch, cost).split(threads)
    }

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
