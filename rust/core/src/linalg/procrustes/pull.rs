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
//! the condition are two doublings more. Where they do not end, since H is nearly singular or not positive definite, nothing is
//! computed.

use super::passes::{BLOCK, LANCZOS, Passes, Sums, scales};
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Buffer, InverseOwn, Operand, Product, Triangle, inverse_shared, invert, reserved};
use crate::parallel::Shared;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;

/// What the members of a matrix share.
#[derive(Clone, Copy)]
struct Space<T: Scalar> {
    /// A, scaled; then the part of A_bar outside the columns of W, in one of these.
    long: [Region<T>; 2],
    h: Region<T>,
    y: Region<T>,
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

/// The gradients of matrices (batch, rows, columns), min(rows, columns) > 0, and a list of those that were not computed.
pub(super) fn gradients<T: Scalar>(
    (a, w, ct): (&[T], &[T], &[T]),
    (batch, rows, columns): (usize, usize, usize),
    out: Shared<T>,
    threads: usize,
) -> Result<Vec<usize>> {
    let (m, n) = (rows.max(columns), rows.min(columns));
    let mut left = reserved(batch)?;
    let mut done = Buffer::<u32>::zeroed(batch)?;
    let done_at = Shared(done.as_mut_ptr());
    let cost = work(&[4, n, n, m + 4 * n]);
    Batch::new::<T>(batch, cost, 80 + n / 64).split(threads).run(
        |arena| Space::<T>::carve(arena, m, n),
        |arena| -> (InverseOwn<T>, Region<T::Real>) {
            (InverseOwn::carve(arena, n), arena.take(&[Product::<T>::scratch(m.max(n), m)]))
        },
        |member, b, space, (own, scratch)| {
            let passes = Passes { member, n, sums: space.sums, scratch: scratch.ptr() };
            let matrix = Matrix { passes, m, n, wide: columns > rows, space: *space, own: *own };
            let at = b * m * n;
            let [a, w, ct] = [a, w, ct].map(|array| array[at..].as_ptr());
            // SAFETY: the arrays have the matrix, and all members that compute it make this call; one says how it ended.
            unsafe {
                let found = matrix.gradient((a, w, ct), out.at(at));
                if member.id == 0 {
                    *done_at.at(b) = u32::from(found);
                }
            }
        },
    )?;
    left.extend((0..batch).filter(|&b| done[b] == 0));
    Ok(left)
}

/// The arrays are m x n, or their adjoints where A is wide.
struct Matrix<'a, T: Scalar> {
    passes: Passes<'a, T>,
    m: usize,
    n: usize,
    wide: bool,
    space: Space<T>,
    own: InverseOwn<T>,
}

impl<T: Scalar> Matrix<'_, T> {
    /// Whether the gradient was found: alike on all members.
    ///
    /// # Safety
    /// The arrays have m n elements; the space is common to all members, all of which make the call.
    unsafe fn gradient(&self, (a, w, ct): (*const T, *const T, *const T), out: *mut T) -> bool {
        let Self { passes, m, n, space, .. } = self;
        let ([long, other], [h, y, x]) =
            (space.long.map(|to| to.ptr()), [space.h, space.y, space.product].map(|to| to.ptr()));
        // SAFETY: barriers separate writes from reads by other members.
        unsafe {
            let by = scales::<T>(passes.largest(a, *m));
            self.scaled(a, by, long);
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
                self.scaled(long, by, other);
            }
            let Some(outside) = self.doubled() else { return false };
            passes.skew(y, by);
            self.times(w, y, out, (1.0, (m > n).then_some(outside.cast_const())));
            passes.member.barrier();
        }
        true
    }

    /// by A, to an array; ends with a barrier.
    unsafe fn scaled(&self, a: *const T, by: [T::Real; 2], to: *mut T) {
        for i in self.passes.member.share(self.m, BLOCK) {
            for e in i * self.n..(i + 1) * self.n {
                // SAFETY: both have m n elements; members write disjoint ones.
                unsafe { *to.add(e) = (*a.add(e)).scale(by[0]).scale(by[1]) };
            }
        }
        self.passes.member.barrier();
    }

    /// C = W^H B
    unsafe fn inner(&self, w: *const T, b: *const T, c: *mut T) {
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

    /// Y of X - X^H in the same place, and the array of the part outside the columns of W; none if the sums do not end.
    unsafe fn doubled(&self) -> Option<*mut T> {
        let Self { passes, m, n, space, own, .. } = self;
        let (n, tall, member, scratch) = (*n, m > n, passes.member, passes.scratch);
        let [mut a, y, product, mut free] = [space.h, space.y, space.product, space.z].map(|to| to.ptr());
        let [mut other, mut long] = space.long.map(|to| to.ptr());
        let eps = T::Real::EPS.f64();
        let least = *m as f64 * eps;
        // a condition of 1 / least takes as many, with p as it should be
        let limit = (-0.5 * eps.ln() / least.sqrt()).log2().ceil().max(1.0) as usize;
        // C <- base + alpha A B, of which the triangle above the diagonal is wanted
        let half = |a: *mut T, b: *mut T, c: *mut T| {
            let (a, b) = (Operand::new(a.cast_const(), n), Operand::new(b.cast_const(), n));
            Product::new((n, n, n), a, b, c, n).shapes(Triangle::Full, Triangle::Full, Triangle::Upper)
        };
        let one = [T::Real::of(1.0); 2];
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
            passes.skew(y, one);
            passes.hermitian(a, -2.0 * p, 1.0);
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
                passes.skew(y, one);
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
