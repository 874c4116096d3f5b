//! What forming, applying and both gradients share: the split of work over threads, T^-1, the last factor.

use super::{Householder, Last};
use crate::kernels::{Buffer, Operand, Product, Triangle, wy};
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;

/// One member of a call with its own scratch for products.
pub(super) struct Hand<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub scratch: *mut T::Real,
}

impl<T: Scalar> Hand<'_, T> {
    /// This member's part of a product.
    ///
    /// # Safety
    /// As [`Product::run`].
    #[inline]
    pub unsafe fn mul(&self, product: Product<T>) {
        // SAFETY: passed on; the scratch was sized for the largest product of the call.
        unsafe { product.run(self.member, self.scratch) }
    }
    pub fn barrier(&self) {
        self.member.barrier();
    }
}

/// Offsets of arrays in one block of memory, each at a multiple of a cache line.
pub(super) struct Layout(pub usize);
impl Layout {
    pub fn take(&mut self, len: usize) -> usize {
        let at = self.0;
        self.0 += len.next_multiple_of(16);
        at
    }
}

/// Threads worth entering for a batch of this cost each; in unit tests all, so that small shapes cover every split.
pub(super) fn members<T: Scalar>(batch: usize, cost: usize, threads: usize) -> usize {
    if cfg!(test) {
        return threads.max(1);
    }
    let wide = T::PARTS * T::PARTS * size_of::<T::Real>() / size_of::<f32>();
    threads.min(batch.saturating_mul(cost).saturating_mul(wide) / ENTRY + 1).max(1)
}

/// Multiply-adds of float32, about 30 us, from which on a call with several barriers gains by another thread.
const ENTRY: usize = 2_000_000;

/// Runs `f(hand, matrix, work)` for every matrix of the batch: whole matrices dealt over the members where there are many,
/// all members inside one matrix after the other where there are few. `cost` is the multiply-adds of one matrix, `threads`
/// comes from [`members`], `work` is the elements that f needs for one matrix, `product` the (rows, depth) of its largest
/// product.
pub(super) fn over<T: Scalar>(
    batch: usize,
    cost: usize,
    threads: usize,
    work: usize,
    product: (usize, usize),
    f: impl Fn(&Hand<'_, T>, usize, Shared<T>) + Sync,
) {
    if batch == 0 {
        return;
    }
    let apart = threads > 1 && (batch >= 4 * threads || (batch >= threads && cost < 2_000_000));
    let own = Product::<T>::scratch(product.0, product.1).div_ceil(T::PARTS).next_multiple_of(16);
    let work = work.next_multiple_of(16);
    let groups = if apart { threads } else { 1 };
    let memory = Buffer::<T>::scratch(groups * work + threads * own);
    let memory = Shared(memory.ptr());
    parallel::run(threads, &|member| {
        let scratch = memory.at(groups * work + member.id * own).cast();
        if apart {
            let place = memory.at(member.id * work);
            let mine = member.share(batch, 1);
            Member::alone(|member| {
                for b in mine {
                    f(&Hand { member, scratch }, b, Shared(place));
                }
            });
        } else {
            for b in 0..batch {
                f(&Hand { member, scratch }, b, memory);
                member.barrier();
            }
        }
    });
}

/// [`over`] with whole matrices dealt over the threads, without products.
pub(super) fn each_alone<T: Scalar>(
    batch: usize,
    threads: usize,
    work: usize,
    f: impl Fn(&Hand<'_, T>, usize, Shared<T>) + Sync,
) {
    if batch == 0 {
        return;
    }
    let work = work.next_multiple_of(16);
    let memory = Buffer::<T>::scratch(threads * work);
    let memory = Shared(memory.ptr());
    parallel::run(threads, &|member| {
        let place = memory.at(member.id * work);
        let mine = member.share(batch, 1);
        Member::alone(|member| {
            for b in mine {
                f(&Hand { member, scratch: std::ptr::null_mut() }, b, Shared(place));
            }
        });
    });
}

/// Some columns of U: n x m at `u`, rows `stride` apart. Of a trapezoid the rows from `top` on, the first that hold anything.
#[derive(Clone, Copy)]
pub(super) struct Columns<T> {
    pub u: *const T,
    pub stride: usize,
    pub n: usize,
    pub m: usize,
    /// First row, counted in the whole of U.
    pub top: usize,
    /// `Lower` if only zeros stand above the diagonal.
    pub shape: Triangle,
}

impl<T: Scalar> Columns<T> {
    /// `width` columns, or what is left, from `first` on.
    pub fn block(self, first: usize, width: usize) -> Self {
        let top = if self.shape == Triangle::Lower { first } else { 0 };
        let u = self.u.wrapping_add(top * self.stride + first);
        Columns { u, n: self.n - top, m: width.min(self.m - first), top, ..self }
    }
    pub fn operand(self) -> Operand<T> {
        Operand::new(self.u, self.stride)
    }

    /// `ti` (m x m, rows `pitch` apart) = T^-1, zeros below the diagonal. `work` holds [`crate::kernels::invert_work`] of m.
    /// Starts without and ends with a barrier.
    ///
    /// # Safety
    /// The arrays exist; all members come here.
    pub unsafe fn inverse(self, hand: &Hand<'_, T>, ti: *mut T, pitch: usize, work: *mut T) {
        // SAFETY: passed on.
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

    /// Entry i of the diagonal of E of matrix b.
    #[inline]
    pub(super) fn last_at(&self, b: usize, i: usize) -> T {
        match self.last {
            Last::Sign(sign) if i + 1 == self.n => T::real(sign[b]),
            Last::Phases(phases) => T::cis(phases[b * self.n + i]),
            _ => T::one(),
        }
    }

    /// The diagonal of E into `e` (n). Each member writes its share; a barrier follows.
    ///
    /// # Safety
    /// `e` holds n elements.
    pub(super) unsafe fn diagonal(&self, hand: &Hand<'_, T>, b: usize, e: *mut T) {
        for i in hand.member.share(self.n, 16) {
            // SAFETY: inside the array, own share.
            unsafe { e.add(i).write(self.last_at(b, i)) };
        }
        hand.barrier();
    }
}
