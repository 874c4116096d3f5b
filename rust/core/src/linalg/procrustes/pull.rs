//! The gradient of W of matrices too large for a lane, by products and inverses: with H = W^H A and X = W^H W_bar,
//!
//! ```text
//! H Y + Y H = X - X^H,    A_bar = W Y + (W_bar - W X) H^-1.
//! ```
//!
//! A Cayley transform of H with p between its smallest and its largest eigenvalue, A = I - 2 p Z, makes the first a fixed point,
//!
//! ```text
//! Z = (H + p I)^-1,    Y = Y_0 + A Y A,    Y_0 = 2 p Z (X - X^H) Z,
//! ```
//!
//! the sum of all A^k Y_0 A^k, of which a doubling adds as many as there are (Smith 1968; Penzl 1999), with
//! H^-1 = 4 p Z^2 (I + A^2) (I + A^4) ... :
//!
//! ```text
//! Y <- Y + A Y A,    A <- A^2.
//! ```
//!
//! With p = sqrt(s_1 s_n) the inverse is of the root of the condition of H, and ||A|| = 1 - 2 sqrt(s_n / s_1) nearly: sixteen times
//! the condition are two doublings more, and each doubles the rounding errors. So eigenvectors ([`eigen`](super::eigen)) give the gradient
//! where the condition exceeds [`CONDITION`] n, and where W is not the polar factor.

use super::eigen::Eigen;
use super::found;
use super::passes::{BLOCK, LANCZOS, Passes, Scale, Sums};
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Buffer, InverseOwn, Operand, Product, Triangle, inverse_shared, invert, reserved};
use crate::parallel::{Member, Shared};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The largest condition of H, over n: a random matrix has more in one of thirty.
const CONDITION: f64 = 64.0;

/// What the members of a matrix share.
#[derive(Clone, Copy)]
pub(super) struct Space<T: Scalar> {
    /// A, scaled; then the part of A_bar outside the columns of W, in one of these.
    pub long: [Region<T>; 2],
    pub h: Region<T>,
    pub y: Region<T>,
    z: Region<T>,
    product: Region<T>,
    inverse: Frame,
    sums: Sums<T>,
}

impl<T: Scalar> Space<T> {
    fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        Space {
            long: [m, if m > n { m } else { 0 }].map(|m| arena.take(&[m, n])),
            h: arena.take(&[n, n]),
            y: arena.take(&[n, n]),
            z: arena.take(&[n, n]),
            product: arena.take(&[n, n]),
            inverse: inverse_shared::<T>(arena, n),
            sums: Sums::carve(arena, (m, n), LANCZOS),
        }
    }
}

/// The gradients of matrices (batch, rows, columns), min(rows, columns) > 0.
pub(super) fn gradients<T: Scalar>(
    (a, w, ct): (&[T], &[T], &[T]),
    (batch, rows, columns): (usize, usize, usize),
    out: Shared<T>,
    threads: usize,
) -> Result<()> {
    let (m, n) = (rows.max(columns), rows.min(columns));
    let each = m * n;
    let mut done = Buffer::<u32>::zeroed(batch)?;
    let done_at = Shared(done.as_mut_ptr());
    let call = Call { m, n, wide: columns > rows };
    let (space, own) = (|arena: &mut Arena| call.space::<T>(arena), |arena: &mut Arena| call.own::<T>(arena));
    let cost = work(&[4, n, n, m + 4 * n]);
    Batch::new::<T>(batch, cost, 80 + n / 64).split(threads).run(space, own, |member, b, space, own| {
        let [a, w, ct] = [a, w, ct].map(|array| array[b * each..].as_ptr());
        // SAFETY: the arrays have the matrix, and all members that compute it make this call; one says how it ended.
        unsafe {
            let found = call.matrix(member, space, own).by_doubling((a, w, ct), out.at(b * each));
            if member.id == 0 {
                *done_at.at(b) = u32::from(found);
            }
        }
    })?;
    let mut left = reserved(batch)?;
    left.extend((0..batch).filter(|&b| done[b] == 0));
    let missed = AtomicBool::new(false);
    let cost = work(&[20, n, n, n]);
    Batch::whole::<T>(left.len(), cost).split(threads).run(
        |arena| (space(arena), Eigen::<T>::carve(arena, m, n)),
        own,
        |member, k, (space, eigen), own| {
            let at = left[k] * each;
            let [a, w, ct] = [a, w, ct].map(|array| array[at..].as_ptr());
            // SAFETY: the arrays have the matrix, which this member computes alone.
            if !unsafe { call.matrix(member, space, own).by_eigenvectors((a, w, ct), eigen, out.at(at)) } {
                missed.store(true, Relaxed);
            }
        },
    )?;
    found(missed)
}

/// The sizes of a call, m >= n: its arrays are m x n, or their adjoints where A is wide.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub m: usize,
    pub n: usize,
    pub wide: bool,
}

/// What each member has for itself.
type Own<T> = (InverseOwn<T>, Region<<T as Scalar>::Real>);

impl Call {
    pub fn space<T: Scalar>(self, arena: &mut Arena) -> Space<T> {
        Space::carve(arena, self.m, self.n)
    }

    pub fn own<T: Scalar>(self, arena: &mut Arena) -> Own<T> {
        (InverseOwn::carve(arena, self.n), arena.take(&[Product::<T>::scratch(self.m, self.m)]))
    }

    pub fn matrix<'a, T: Scalar>(
        self,
        member: &'a Member<'a>,
        space: &Space<T>,
        (own, scratch): &Own<T>,
    ) -> Matrix<'a, T> {
        let Call { m, n, wide } = self;
        let passes = Passes { member, n, sums: space.sums, scratch: scratch.ptr() };
        Matrix { passes, m, n, wide, space: *space, own: *own }
    }
}

/// One matrix of a call.
pub(super) struct Matrix<'a, T: Scalar> {
    pub passes: Passes<'a, T>,
    pub m: usize,
    pub n: usize,
    pub wide: bool,
    pub space: Space<T>,
    own: InverseOwn<T>,
}

impl<T: Scalar> Matrix<'_, T> {
    /// H, X - X^H in the place of Y and, of a tall A, W_bar - W X in the first of the long places; the scale of A.
    ///
    /// # Safety
    /// The arrays have m n elements; the space is common to all members, all of which make the call.
    pub unsafe fn prepare(&self, (a, w, ct): (*const T, *const T, *const T)) -> Scale<T::Real> {
        let Self { passes, m, n, space, .. } = self;
        let (long, [h, y, x]) = (space.long[0].ptr(), [space.h, space.y, space.product].map(|to| to.ptr()));
        // SAFETY: barriers separate writes from reads by other members.
        unsafe {
            let scale = passes.scale(a, *m);
            self.each(|e| *long.add(e) = scale.of(*a.add(e)));
            self.inner(w, long, h);
            self.inner(w, ct, x);
            passes.member.barrier();
            let half = T::Real::of(0.5);
            passes.pairs(|i, j| {
                // the error of W, W K with a skew K, is left out of H in first order where singular values are alike
                let sum = (*h.add(i * n + j) + (*h.add(j * n + i)).conj()).scale(half);
                (*h.add(i * n + j), *h.add(j * n + i)) = (sum, sum.conj());
                let (p, q) = (*x.add(i * n + j), *x.add(j * n + i));
                (*y.add(i * n + j), *y.add(j * n + i)) = (p - q.conj(), q - p.conj());
            });
            if m > n {
                self.times(w, x, long, (-1.0, Some(ct)));
                passes.member.barrier();
            }
            scale
        }
    }

    /// Whether the gradient was found: alike on all members.
    ///
    /// # Safety
    /// As [`Self::prepare`].
    unsafe fn by_doubling(&self, (a, w, ct): (*const T, *const T, *const T), out: *mut T) -> bool {
        // SAFETY: the contract above.
        unsafe {
            let scale = self.prepare((a, w, ct));
            let Some(outside) = self.doubled() else { return false };
            self.finish((w, self.space.y.ptr(), outside), scale, out);
        }
        true
    }

    /// A_bar from Y and the part outside the columns of W, which is there if A is tall.
    ///
    /// # Safety
    /// As [`Self::prepare`].
    pub unsafe fn finish(
        &self,
        (w, y, outside): (*const T, *const T, *const T),
        scale: Scale<T::Real>,
        out: *mut T,
    ) {
        // SAFETY: barriers separate writes from reads by other members.
        unsafe {
            self.times(w, y, out, (1.0, (self.m > self.n).then_some(outside)));
            self.passes.member.barrier();
            self.each(|e| *out.add(e) = scale.pull(*out.add(e)));
        }
    }

    /// `f` of this member's elements of an m x n array; ends with a barrier.
    pub fn each(&self, f: impl Fn(usize)) {
        for i in self.passes.member.share(self.m, BLOCK) {
            (i * self.n..(i + 1) * self.n).for_each(&f);
        }
        self.passes.member.barrier();
    }

    /// C = W^H B
    pub unsafe fn inner(&self, w: *const T, b: *const T, c: *mut T) {
        let (m, n) = (self.m, self.n);
        let tall = |at| if self.wide { Operand::new(at, m).h() } else { Operand::new(at, n) };
        let product = Product::new((n, n, m), tall(w).h(), tall(b), c, n);
        // SAFETY: the arrays have m n elements, C has n n.
        unsafe { product.run(self.passes.member, self.passes.scratch) };
    }

    /// C = base + alpha B M, for an n x n matrix M
    unsafe fn times(&self, b: *const T, matrix: *const T, c: *mut T, (alpha, base): (f64, Option<*const T>)) {
        let (m, n, matrix) = (self.m, self.n, Operand::new(matrix, self.n));
        let product = match self.wide {
            true => Product::new((n, m, n), matrix.h(), Operand::new(b, m), c, m),
            false => Product::new((m, n, n), Operand::new(b, n), matrix, c, n),
        };
        let product = match base {
            Some(base) => product.onto(base, if self.wide { m } else { n }),
            None => product,
        };
        // SAFETY: the arrays have m n elements, the matrix n n.
        unsafe { product.alpha(alpha).run(self.passes.member, self.passes.scratch) };
    }

    /// Y of X - X^H in the same place, and the array of the part outside the columns of W; none if the sums do not end in time.
    unsafe fn doubled(&self) -> Option<*mut T> {
        let Self { passes, m, n, space, own, .. } = self;
        let (n, tall, member, scratch) = (*n, m > n, passes.member, passes.scratch);
        let [mut a, y, product, mut free] = [space.h, space.y, space.product, space.z].map(|to| to.ptr());
        let [mut long, mut other] = space.long.map(|to| to.ptr());
        let eps = T::Real::EPS.f64();
        let least = 1.0 / (CONDITION * n as f64);
        // a condition of 1 / least takes as many, with p as it should be
        let limit = (-0.5 * eps.ln() / least.sqrt()).log2().ceil().max(1.0) as usize;
        // C <- base + alpha A B, of which the triangle above the diagonal is wanted
        let half = |a: *mut T, b: *mut T, c: *mut T| {
            let (a, b) = (Operand::new(a.cast_const(), n), Operand::new(b.cast_const(), n));
            Product::new((n, n, n), a, b, c, n).shapes(Triangle::Full, Triangle::Full, Triangle::Upper)
        };
        // SAFETY: barriers separate dependent passes; each writes this member's part.
        unsafe {
            let [l, u] = passes.ends(a, LANCZOS, 0);
            // false of NaN too
            let regular = l > least * u;
            if !regular {
                return None;
            }
            let p = (l * u).sqrt();
            passes.hermitian(a, 1.0, p);
            invert(member, a, n, n, space.inverse, *own);
            self.product(a, y, product);
            half(product, a, y).alpha(2.0 * p).run(member, scratch);
            if tall {
                for by in [1.0, 4.0 * p] {
                    self.times(long, a, other, (by, None));
                    member.barrier();
                    (long, other) = (other, long);
                }
            }
            member.barrier();
            passes.skew(y);
            passes.mean(a, -2.0 * p, 1.0);
            for step in 0..limit {
                let [_, size] = passes.norms(a);
                self.product(a, y, product);
                half(product, a, y).add().run(member, scratch);
                if tall && step > 0 {
                    self.times(long, a, other, (1.0, Some(long.cast_const())));
                    (long, other) = (other, long);
                }
                let last = size.powi(if tall { 2 } else { 4 }) < 0.5 * eps;
                if !last {
                    half(a, a, free).run(member, scratch);
                }
                member.barrier();
                passes.skew(y);
                if last {
                    return Some(long);
                }
                passes.hermitian(free, 1.0, 0.0);
                (a, free) = (free, a);
            }
        }
        None
    }

    /// A Y to an array; ends with a barrier.
    unsafe fn product(&self, a: *const T, y: *const T, to: *mut T) {
        let n = self.n;
        let (a, y) = (Operand::new(a, n), Operand::new(y, n));
        // SAFETY: all are n x n matrices.
        unsafe { Product::new((n, n, n), a, y, to, n).run(self.passes.member, self.passes.scratch) };
        self.passes.member.barrier();
    }
}
