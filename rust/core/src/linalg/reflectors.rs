//! V, and the triangular matrices of T, of one product of reflections.

use crate::error::{Error, Result};
use crate::kernels::{Operand, Product, Triangle, invert_upper, invert_work};
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::{check_len, work};

pub(super) const FULL: Triangle = Triangle::Full;
pub(super) const LOWER: Triangle = Triangle::Lower;
pub(super) const UPPER: Triangle = Triangle::Upper;

/// Barriers of a matrix that several members compute.
pub(super) const BARRIERS: usize = 8;

/// A batch of products: a (batch, m, k), row-major, and tau (batch, k).
#[derive(Clone, Copy, Debug)]
pub struct Reflectors<'a, T: Scalar> {
    pub(super) a: &'a [T],
    pub(super) tau: &'a [T],
    /// Products in the batch.
    pub(super) batch: usize,
    /// Rows.
    pub(super) m: usize,
    /// Reflections, at most m.
    pub(super) k: usize,
}

impl<'a, T: Scalar> Reflectors<'a, T> {
    /// A view of these arrays.
    ///
    /// ```
    /// use isometry_core::linalg::Reflectors;
    ///
    /// // H = I - v v^T with v = (1, 1): the first entry of v is not read
    /// assert!(Reflectors::new(&[0.0, 1.0], &[1.0], 1, 2, 1).is_ok());
    /// assert!(Reflectors::new(&[0.0, 1.0], &[1.0, 1.0], 1, 1, 2).is_err()); // more reflections than rows
    /// ```
    ///
    /// # Errors
    /// Arrays of other lengths, or k > m.
    pub fn new(a: &'a [T], tau: &'a [T], batch: usize, m: usize, k: usize) -> Result<Self> {
        check_len("a", a.len(), &[batch, m, k])?;
        check_len("tau", tau.len(), &[batch, k])?;
        if k > m {
            return Err(Error::shape("a", "at least as many rows as columns", format!("{m} x {k}")));
        }
        Ok(Reflectors { a, tau, batch, m, k })
    }

    /// tau of matrix b.
    pub(super) fn tau_of(&self, b: usize) -> &'a [T] {
        &self.tau[b * self.k..(b + 1) * self.k]
    }

    /// The factors of matrix b. Starts without and ends with a barrier.
    ///
    /// # Safety
    /// As [`Factors::new`].
    pub(super) unsafe fn factors(
        &self,
        hand: Hand<'_, T>,
        b: usize,
        at: &Places<T>,
        both: bool,
    ) -> Factors<'a, T> {
        let Reflectors { a, m, k, .. } = *self;
        // SAFETY: a and tau hold matrix b.
        unsafe { Factors::new(hand, (a[b * m * k..].as_ptr(), k), self.tau_of(b), m, at, both) }
    }

    /// Multiply-adds of [`Factors::new`] with `inverses` of the two.
    pub(super) fn cost(&self, inverses: usize) -> usize {
        work(&[self.k, self.k, self.m / 2 + inverses * self.k / 6])
    }
}

/// Memory of the factors of one matrix.
pub(super) struct Places<T> {
    v: Region<T>,
    r: Region<T>,
    n: Region<T>,
    work: Frame,
}

impl<T: Scalar> Places<T> {
    /// N only if `both`.
    pub fn carve(arena: &mut Arena, m: usize, k: usize, both: bool) -> Self {
        Places {
            v: arena.take(&[m, k]),
            r: arena.take(&[k, k]),
            n: arena.take(&[if both { k } else { 0 }, k]),
            work: invert_work::<T>(arena, k),
        }
    }
}

/// One matrix: V (m x k), R = (I + D S)^-1 and N = (I + S D)^-1 (k x k), so that T = R D = D N.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, T> {
    pub v: *mut T,
    pub r: *mut T,
    /// Only if there is a place for it.
    pub n: *mut T,
    pub tau: &'a [T],
    pub m: usize,
    pub k: usize,
}

/// One member of the call, with scratch for its products.
#[derive(Clone, Copy)]
pub(super) struct Hand<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub scratch: *mut T::Real,
}

impl<T: Scalar> Hand<'_, T> {
    /// This member's part of a product.
    ///
    /// # Safety
    /// As [`Product::run`], except for the scratch, which is large enough for every product of the call.
    pub unsafe fn mul(&self, product: Product<T>) {
        // SAFETY: the contract above.
        unsafe { product.run(self.member, self.scratch) }
    }
}

impl<'a, T: Scalar> Factors<'a, T> {
    /// Those that [`Factors::new`] has written there.
    pub fn at(at: &Places<T>, tau: &'a [T], m: usize) -> Self {
        Factors { v: at.v.ptr(), r: at.r.ptr(), n: at.n.ptr(), tau, m, k: tau.len() }
    }

    /// Starts without and ends with a barrier.
    ///
    /// # Safety
    /// a has m rows, row stride `stride`, tau at most m elements; the places are for these sizes or more, N's in use if
    /// `both`; all members call this.
    pub unsafe fn new(
        hand: Hand<'_, T>,
        (a, stride): (*const T, usize),
        tau: &'a [T],
        m: usize,
        at: &Places<T>,
        both: bool,
    ) -> Self {
        let (k, factors) = (tau.len(), Factors::at(at, tau, m));
        // SAFETY: members write disjoint rows between the barriers.
        unsafe {
            for i in hand.member.share(m, 4) {
                let row = std::slice::from_raw_parts_mut(factors.v.add(i * k), k);
                let below = i.min(k);
                std::ptr::copy_nonoverlapping(a.add(i * stride), row.as_mut_ptr(), below);
                row[below..].fill(T::zero());
                if i < k {
                    row[i] = T::one();
                }
            }
            hand.member.barrier();
            let v = factors.v();
            let gram = Product::new((k, k, m), v.h(), v, factors.r, k);
            hand.mul(gram.shapes(Triangle::Upper, Triangle::Lower, Triangle::Upper));
            hand.member.barrier();
            for i in hand.member.share(k, 4) {
                for j in 0..k {
                    let r = factors.r.add(i * k + j);
                    let s = if j > i { *r } else { T::zero() };
                    let unit = if j == i { T::one() } else { T::zero() };
                    *r = unit + factors.tau[i] * s;
                    if both {
                        *factors.n.add(i * k + j) = unit + s * factors.tau[j];
                    }
                }
            }
            hand.member.barrier();
            invert_upper(hand.member, factors.r, k, k, at.work, hand.scratch);
            if both {
                invert_upper(hand.member, factors.n, k, k, at.work, hand.scratch);
            }
        }
        factors
    }

    pub fn v(self) -> Operand<T> {
        Operand::new(self.v, self.k)
    }

    pub fn r(self) -> Operand<T> {
        Operand::new(self.r, self.k)
    }

    pub fn n(self) -> Operand<T> {
        Operand::new(self.n, self.k)
    }

    /// The columns of `x` (rows x k) times tau, or conj(tau). No barrier; each member its share of the rows.
    ///
    /// # Safety
    /// x has `rows` rows of k elements.
    pub unsafe fn scale_columns(self, member: &Member<'_>, x: *mut T, rows: usize, conj: bool) {
        for i in member.share(rows, 4) {
            for (j, &tau) in self.tau.iter().enumerate() {
                // SAFETY: the contract above.
                unsafe { *x.add(i * self.k + j) *= if conj { tau.conj() } else { tau } };
            }
        }
    }

    /// The rows of `x` (k x width) times tau, or conj(tau). No barrier; each member its share of the rows.
    ///
    /// # Safety
    /// x has k rows of `width` elements.
    pub unsafe fn scale_rows(self, member: &Member<'_>, x: *mut T, width: usize, conj: bool) {
        for i in member.share(self.k, 4) {
            let tau = if conj { self.tau[i].conj() } else { self.tau[i] };
            for j in 0..width {
                // SAFETY: the contract above.
                unsafe { *x.add(i * width + j) *= tau };
            }
        }
    }

    /// From B (k x k, on and above its diagonal): tau_bar = -diag B, and in the place of B the Hermitian
    /// G = D^* striu(B) D^* + its conjugate transpose. Starts and ends with a barrier.
    ///
    /// # Safety
    /// The arrays have these sizes; all members call this.
    pub unsafe fn small_gradients(self, member: &Member<'_>, b: *mut T, tau_bar: *mut T) {
        let k = self.k;
        member.barrier();
        // SAFETY: element (i, j), i < j, and its mirror belong to the owner of row i.
        unsafe {
            for i in member.share(k, 4) {
                *tau_bar.add(i) = -*b.add(i * k + i);
                *b.add(i * k + i) = T::zero();
                for j in i + 1..k {
                    let own = self.tau[i].conj() * *b.add(i * k + j) * self.tau[j].conj();
                    *b.add(i * k + j) = own;
                    *b.add(j * k + i) = own.conj();
                }
            }
        }
        member.barrier();
    }

    /// a_bar = what is below the diagonal of it, zeros elsewhere. Starts with a barrier.
    ///
    /// # Safety
    /// a_bar has m rows of k; all members call this.
    pub unsafe fn below(self, member: &Member<'_>, a_bar: *mut T) {
        member.barrier();
        for i in member.share(self.m, 4) {
            for j in i..self.k {
                // SAFETY: the contract above.
                unsafe { *a_bar.add(i * self.k + j) = T::zero() };
            }
        }
    }
}
