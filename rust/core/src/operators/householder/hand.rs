//! The members of a call: each with scratch for its products, sharing the matrices of a batch or the rows of one.

use super::Householder;
use crate::batch::{Batch, Split};
use crate::error::Result;
use crate::kernels::Product;
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use std::ops::Range;

/// Rows per thread from which each thread takes its own rows instead of sharing every product.
pub(super) const APART_ROWS: usize = 16;
/// Barriers of a matrix that several members compute, as [`Batch`] counts them.
const BARRIERS: usize = 5;

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

    /// Runs `f` as the only member.
    pub fn alone(&self, f: impl Fn(&Hand<'_, T>)) {
        Member::alone(|member| f(&Hand { member, scratch: self.scratch }));
    }

    /// Runs `f` on all rows: each member on its own, or, for few rows, all members together. Ends with a barrier.
    pub fn over_rows(&self, rows: usize, f: impl Fn(&Hand<'_, T>, Range<usize>)) {
        if rows >= APART_ROWS * self.member.count {
            let own = self.member.share(rows, 8);
            self.alone(|hand| f(hand, own.clone()));
        } else {
            f(self, 0..rows);
        }
        self.barrier();
    }
}

impl<T: Scalar> Householder<'_, T> {
    /// Matrices at `cost` multiply-adds each, distributed.
    pub(super) fn split(&self, cost: usize, threads: usize) -> Split {
        Batch::new::<T>(self.batch, cost, BARRIERS).split(threads)
    }
}

/// [`Split::run`] with scratch of each member for its products, of which `product` is the (rows, depth) of the largest.
pub(super) fn over<T: Scalar, P>(
    split: Split,
    product: (usize, usize),
    carve: impl Fn(&mut Arena) -> P + Sync,
    f: impl Fn(&Hand<'_, T>, usize, &P) + Sync,
) -> Result<()> {
    let scratch =
        |arena: &mut Arena| -> Region<T::Real> { arena.take(&[Product::<T>::scratch(product.0, product.1)]) };
    split.run(carve, scratch, |member, b, places, scratch| {
        f(&Hand { member, scratch: scratch.ptr() }, b, places);
    })
}
