//! What forming, applying and both gradients share: the split of work over threads, T^-1, the last factor.

use super::{Householder, Last};
use crate::kernels::{Buffer, Operand, Product, Triangle, invert_upper};
use crate::parallel::{self, Member, Shared};
use crate::scalar::{Real, Scalar};

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
    parallel::run(threads, |member| {
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
    parallel::run(threads, |member| {
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
    /// The shape of U^H.
    pub fn shape_t(self) -> Triangle {
        if self.shape == Triangle::Lower { Triangle::Upper } else { Triangle::Full }
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
        let (n, m) = (self.n, self.m);
        let gram = Product::new((m, m, n), self.operand().h(), self.operand(), ti, pitch);
        // SAFETY: U, ti and the scratch are apart; each member changes its own rows between the barriers.
        unsafe {
            hand.mul(gram.shapes(self.shape_t(), self.shape, Triangle::Upper));
            hand.barrier();
            for i in hand.member.share(m, 4) {
                let row = std::slice::from_raw_parts_mut(ti.add(i * pitch), m);
                row[..i].fill(T::zero());
                row[i] = T::real(row[i].re() * T::Real::of(0.5));
            }
            hand.barrier();
            invert_upper(hand.member, ti, pitch, m, work, hand.scratch);
        }
    }
}

/// L -> L + L^H for an L whose lower triangle is in memory, its diagonal counting half. No barrier.
///
/// # Safety
/// `l` holds m rows, `pitch` apart, that no other member changes outside its own share.
pub(super) unsafe fn symmetrize<T: Scalar>(hand: &Hand<'_, T>, l: *mut T, pitch: usize, m: usize) {
    const BLOCK: usize = 16;
    for i0 in hand.member.share(m, BLOCK).step_by(BLOCK) {
        for j0 in (0..=i0).step_by(BLOCK) {
            for i in i0..(i0 + BLOCK).min(m) {
                // SAFETY: (i, j) and its mirror belong to the owner of row i, i >= j.
                unsafe {
                    for j in j0..(j0 + BLOCK).min(i) {
                        *l.add(j * pitch + i) = (*l.add(i * pitch + j)).conj();
                    }
                    if i0 == j0 {
                        let diagonal = l.add(i * pitch + i);
                        *diagonal = T::real((*diagonal).re());
                    }
                }
            }
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
