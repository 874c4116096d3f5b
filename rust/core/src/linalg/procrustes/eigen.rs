//! What takes the eigenvectors of H = W^H A, H = V S V^H: the gradients that doublings leave,
//!
//! ```text
//! A_bar = W V Y V^H + (W_bar - W X) V S^-1 V^H,    Y_ij = (V^H (X - X^H) V)_ij / (s_i + s_j),
//! ```
//!
//! where what divides by zero, to rounding, is left out, and the direction that a nearest rotation turns. Complex matrices are computed as real
//! ones of twice the size ([`isometry_kernels::symmetric`]), on one thread.

use super::pull::Matrix;
use crate::kernels::{Operand, Product};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use isometry_kernels::symmetric::Symmetric;
use num_traits::{Float, Zero};

/// Real arrays of one matrix.
#[derive(Clone, Copy)]
pub(super) struct Eigen<T: Scalar> {
    /// H, then any product.
    h: Region<T::Real>,
    /// The eigenvectors in its rows.
    vectors: Region<T::Real>,
    y: Region<T::Real>,
    long: [Region<T::Real>; 2],
    values: Region<f64>,
    beside: Region<f64>,
    work: Region<T::Real>,
    scratch: Region<T::Real>,
}

impl<T: Scalar> Eigen<T> {
    pub fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        let size = n.saturating_mul(T::PARTS);
        Eigen {
            h: arena.take(&[size, size]),
            vectors: arena.take(&[size, size]),
            y: arena.take(&[size, size]),
            long: [if m > n { m } else { 0 }; 2].map(|m| arena.take(&[m, size])),
            values: arena.take(&[size]),
            beside: arena.take(&[size]),
            work: arena.take(&[2, size]),
            scratch: arena.take(&[Product::<T::Real>::scratch(m.max(size), size)]),
        }
    }

    /// [[B, -C], [C, B]] of B + iC, n x n.
    unsafe fn embed(from: *const T, n: usize, to: *mut T::Real) {
        let size = n * T::PARTS;
        for e in 0..n * n {
            // SAFETY: both matrices have these elements.
            unsafe {
                let (x, at) = (*from.add(e), to.add(e / n * size + e % n));
                *at = x.re();
                if T::PARTS == 2 {
                    (*at.add(n), *at.add(n * size), *at.add(n * size + n)) = (-x.im(), x.im(), x.re());
                }
            }
        }
    }

    /// Eigenvalues and eigenvectors of H, n x n; false if it is not finite.
    unsafe fn decompose(&self, h: *const T, n: usize) -> bool {
        let n = n * T::PARTS;
        let (a, z, work) = (self.h.ptr(), self.vectors.ptr(), self.work.ptr());
        // SAFETY: the arrays have these sizes.
        unsafe {
            Self::embed(h, n / T::PARTS, a);
            Symmetric { a, n, z, values: self.values.ptr(), beside: self.beside.ptr(), work }.call()
        }
    }
}

impl<T: Scalar> Matrix<'_, T> {
    /// Whether the gradient was found.
    ///
    /// # Safety
    /// As [`Self::prepare`], by one member.
    pub unsafe fn by_eigenvectors(
        &self,
        (a, w, ct): (*const T, *const T, *const T),
        eigen: &Eigen<T>,
        out: *mut T,
    ) -> bool {
        let Self { m, n, wide, .. } = *self;
        let (size, tall) = (n * T::PARTS, m > n);
        let [h, z, y] = [eigen.h, eigen.vectors, eigen.y].map(|region| region.ptr());
        let [long, other] = eigen.long.map(|region| region.ptr());
        // C = A B of real matrices
        let product = |(m, n, k), a: Operand<T::Real>, b: Operand<T::Real>, c: *mut T::Real| {
            // SAFETY: the arrays have these sizes.
            unsafe { Product::new((m, n, k), a, b, c, n).run(self.passes.member, eigen.scratch.ptr()) };
        };
        let of = |at: *mut T::Real| Operand::new(at.cast_const(), size);
        // element e of an m x n array of this matrix, or of its adjoint, is in this row and column
        let place = |e: usize| if wide { (e % m, e / m) } else { (e / n, e % n) };
        // SAFETY: the arrays have these elements, and one member uses them.
        unsafe {
            let scale = self.prepare((a, w, ct));
            if !(0..n * n).all(|e| (*self.space.h.ptr().add(e)).finite()) {
                self.each(|e| *out.add(e) = T::new(T::Real::nan(), T::Real::nan()));
                return true;
            }
            if !eigen.decompose(self.space.h.ptr(), n) {
                return false;
            }
            let s = std::slice::from_raw_parts(eigen.values.ptr().cast_const(), size);
            let least = m as f64 * T::Real::EPS.f64() * s.iter().fold(0.0, |most, s| s.abs().max(most));
            let inverse = |s: f64| if s.abs() > least { T::Real::of(s.recip()) } else { T::Real::zero() };
            Eigen::<T>::embed(self.space.y.ptr(), n, y);
            product((size, size, size), of(z), of(y), h);
            product((size, size, size), of(h), of(z).h(), y);
            for i in 0..size {
                for j in 0..=i {
                    // skew to the last bit: the diagonal of a real matrix divides by nothing
                    let (x, t) = (y.add(i * size + j), y.add(j * size + i));
                    *x = (*x - *t) * T::Real::of(0.5) * inverse(s[i] + s[j]);
                    *t = -*x;
                }
            }
            product((size, size, size), of(z).h(), of(y), h);
            product((size, size, size), of(h), of(z), y);
            for e in 0..n * n {
                let at = y.add(e / n * size + e % n);
                let im = if T::PARTS == 2 { *at.add(n * size) } else { T::Real::zero() };
                *self.space.y.ptr().add(e) = T::new(*at, im);
            }
            let outside = self.space.long[0].ptr();
            if tall {
                for e in 0..m * n {
                    let ((i, j), x) = (place(e), *outside.add(e));
                    let at = long.add(i * size + j);
                    *at = x.re();
                    if T::PARTS == 2 {
                        // of the adjoint of a wide matrix
                        *at.add(n) = if wide { x.im() } else { -x.im() };
                    }
                }
                product((m, size, size), of(long), of(z).h(), other);
                for e in 0..m * size {
                    *other.add(e) *= inverse(s[e % size]);
                }
                product((m, size, size), of(other), of(z), long);
                for e in 0..m * n {
                    let (i, j) = place(e);
                    let at = long.add(i * size + j);
                    let im = if T::PARTS == 2 { *at.add(n) } else { T::Real::zero() };
                    *outside.add(e) = T::new(*at, if wide { im } else { -im });
                }
            }
            self.finish((w, self.space.y.ptr(), outside), scale, out);
        }
        true
    }

    /// W <- W (I - 2 v v^T) of a real matrix, for the eigenvector v of the smallest eigenvalue of H; whether it was found.
    ///
    /// # Safety
    /// As [`Self::prepare`], by one member.
    pub unsafe fn turn(&self, a: *const T, w: *mut T, eigen: &Eigen<T>) -> bool {
        let (n, h) = (self.n, self.space.h.ptr());
        // SAFETY: the arrays have these elements, and one member uses them.
        unsafe {
            self.prepare((a, w, w));
            if !eigen.decompose(h, n) {
                return false;
            }
            let value = |&j: &usize| *eigen.values.ptr().add(j);
            let least = (0..n).min_by(|i, j| value(i).total_cmp(&value(j))).unwrap_or(0);
            let v = std::slice::from_raw_parts(eigen.vectors.ptr().add(least * n).cast_const(), n);
            let norm2 = v.iter().map(|x| x.f64() * x.f64()).sum::<f64>();
            for row in std::slice::from_raw_parts_mut(w, n * n).chunks_exact_mut(n) {
                let along = row.iter().zip(v).map(|(x, v)| x.re().f64() * v.f64()).sum::<f64>();
                for (x, v) in row.iter_mut().zip(v) {
                    *x -= T::real(T::Real::of(2.0 * along / norm2 * v.f64()));
                }
            }
        }
        true
    }
}
