//! W of matrices too large for a lane: Halley's iteration with weights, by products and an inverse (QDWH),
//!
//! ```text
//! G = X^H X,    Z = I + c G,    X <- X (b/c I + (a - b/c) Z^-1),    s <- s (a + b s^2) / (1 + c s^2)
//! a = h(l),  b = (a - 1)^2 / 4,  c = a + b - 1,    h(l) = sqrt(1 + d) + sqrt(8 - 4 d + 8 (2 - l^2) / (l^2 sqrt(1 + d))) / 2,
//! d = (4 (1 - l^2) / l^4)^(1/3),
//! ```
//!
//! where all singular values are in \[l, 1\] (Nakatsukasa, Bai, Gygi 2010). Z is positive definite, so its inverse needs no pivots, and
//! l is kept from below [`LEAST`], so that the condition of Z, at most 1 + c, costs no more than a digit; the smallest singular
//! values then grow by a = h(LEAST) per iteration. Z^-1 tells when they have arrived: its largest eigenvalue is
//! 1 / (1 + c s_n^2). At the end X (3 I - G) / 2.
//!
//! A singular value that is exactly zero does not grow. A matrix that has not arrived after [`LIMIT`] iterations therefore starts
//! again with a perturbation of the size of rounding: where it is singular, the nearest matrix is not unique.

use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{InverseOwn, Operand, Product, inverse_shared, invert};
use crate::parallel::{Member, Shared};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Frame, Region};
use crate::sizes::work;

/// The smallest l of the weights: a = 11, c = 35.
const LEAST: f64 = 0.055;
/// Iterations: enough for singular values of the size of rounding.
const LIMIT: usize = 26;
/// Rows of a block.
const BLOCK: usize = 16;
/// Steps of the power iteration for the largest eigenvalue of Z^-1.
const POWER: usize = 4;

/// What the members of a matrix share.
#[derive(Clone, Copy)]
struct Space<T: Scalar> {
    x: Region<T>,
    y: Region<T>,
    g: Region<T>,
    inverse: Frame,
    /// Vectors of the power iteration.
    vectors: Region<T>,
    /// What member 0 measured.
    measured: Region<f64>,
}

impl<T: Scalar> Space<T> {
    fn carve(arena: &mut Arena, m: usize, n: usize) -> Self {
        Space {
            x: arena.take(&[m, n]),
            y: arena.take(&[m, n]),
            g: arena.take(&[n, n]),
            inverse: inverse_shared::<T>(arena, n),
            vectors: arena.take(&[2, n]),
            measured: arena.take(&[2]),
        }
    }
}

/// W of a (batch, rows, columns), min(rows, columns) > 0.
pub(super) fn nearest<T: Scalar>(
    a: &[T],
    (batch, rows, columns): (usize, usize, usize),
    out: Shared<T>,
    threads: usize,
) -> Result<()> {
    let (m, n) = (rows.max(columns), rows.min(columns));
    let cost = work(&[8, n, n, 2 * m + n]);
    Batch::new::<T>(batch, cost, 8 * (12 + n / 64)).split(threads).run(
        |arena| Space::<T>::carve(arena, m, n),
        |arena| -> (InverseOwn<T>, Region<T::Real>) {
            (InverseOwn::carve(arena, n), arena.take(&[Product::<T>::scratch(m.max(n), m)]))
        },
        |member, b, space, (own, scratch)| {
            let from = a[b * m * n..].as_ptr();
            let matrix = Matrix { member, m, n, space: *space, own: *own, scratch: scratch.ptr() };
            // SAFETY: the arrays have the matrix, and all members that compute it make this call.
            unsafe { matrix.nearest((from, columns > rows), out.at(b * m * n)) };
        },
    )
}

/// A, or A^H where A is wide: m x n.
struct Matrix<'a, T: Scalar> {
    member: &'a Member<'a>,
    m: usize,
    n: usize,
    space: Space<T>,
    own: InverseOwn<T>,
    scratch: *mut T::Real,
}

/// The weights for singular values in [l, 1].
fn weights(l: f64) -> [f64; 3] {
    let l2 = l * l;
    let d = (4.0 * (1.0 - l2) / (l2 * l2)).cbrt();
    let root = (1.0 + d).sqrt();
    let a = root + (8.0 - 4.0 * d + 8.0 * (2.0 - l2) / (l2 * root)).max(0.0).sqrt() / 2.0;
    let b = (a - 1.0) * (a - 1.0) / 4.0;
    [a, b, a + b - 1.0]
}

impl<T: Scalar> Matrix<'_, T> {
    /// # Safety
    /// `from` and `out` have m n elements; the space is common to all members, all of which make the call.
    unsafe fn nearest(&self, (from, wide): (*const T, bool), out: *mut T) {
        // SAFETY: barriers separate writes from reads by other members.
        unsafe {
            let size = self.largest(from);
            for perturbed in [false, true] {
                self.load((from, wide), size, perturbed);
                if let Some(x) = self.iterate(perturbed) {
                    return self.store(x, (out, wide));
                }
            }
        }
    }

    /// The largest |part| of the elements, on all members alike.
    unsafe fn largest(&self, from: *const T) -> f64 {
        let measured = self.space.measured.ptr();
        // SAFETY: the array has m n elements, and member 0 alone writes the measure.
        unsafe {
            if self.member.id == 0 {
                let part = |x: T| x.re().f64().abs().max(x.im().f64().abs());
                *measured = (0..self.m * self.n).map(|e| part(*from.add(e))).fold(0.0, f64::max);
            }
            self.member.barrier();
            let size = *measured;
            self.member.barrier();
            size
        }
    }

    /// X <- A over a power of two, its largest part in [1, 2), with signs of the size of rounding where they are asked for.
    unsafe fn load(&self, (from, wide): (*const T, bool), size: f64, perturbed: bool) {
        let Self { member, m, n, .. } = *self;
        let power = if size > 0.0 && size.is_finite() { -(size.log2().floor() as i32) } else { 0 };
        let by = [power / 2, power - power / 2].map(|power| T::Real::of(2f64.powi(power)));
        let small = match (perturbed, size > 0.0) {
            (false, _) => 0.0,
            (true, true) => 4.0 * T::Real::EPS.f64(),
            (true, false) => 1.0,
        };
        for i in member.share(m, BLOCK) {
            for j in 0..n {
                let at = if wide { j * m + i } else { i * n + j };
                // SAFETY: the array and X have m n elements; members write disjoint rows.
                unsafe {
                    let x = (*from.add(at)).scale(by[0]).scale(by[1]);
                    let sign = if hash(at) >> 63 == 0 { small } else { -small };
                    let x = x + T::real(T::Real::of(sign));
                    *self.space.x.ptr().add(i * n + j) = if wide { x.conj() } else { x };
                }
            }
        }
        member.barrier();
    }

    /// W from X, in one of the two arrays, or nothing if the singular values have not arrived. The last try always has a result.
    unsafe fn iterate(&self, last: bool) -> Option<*mut T> {
        let Self { member, m, n, space, own, scratch } = *self;
        let eps = T::Real::EPS.f64();
        let (mut x, mut y, g) = (space.x.ptr(), space.y.ptr(), space.g.ptr());
        let near = (0.3 * eps.sqrt()).max(4.0 * eps * n as f64);
        let (mut l, mut size) = (LEAST, 1.0);
        for step in 0.. {
            let ax = Operand::new(x.cast_const(), n);
            let ag = Operand::new(g.cast_const(), n);
            // SAFETY: barriers separate dependent passes; each writes this member's part.
            unsafe {
                Product::new((n, n, m), ax.h(), ax, g, n).run(member, scratch);
                member.barrier();
                let [error, norm] = self.measure();
                if step == 0 {
                    // ||X||_2^2 <= ||G||_F
                    size = 1.0 / norm.sqrt();
                }
                let done = error < near && step > 0;
                if !last && !done && (step == LIMIT || norm == 0.0) {
                    return None;
                }
                if done || step == LIMIT || !error.is_finite() {
                    self.map(-0.5, 1.5);
                    Product::new((m, n, n), ax, ag, y, n).run(member, scratch);
                    member.barrier();
                    return Some(y);
                }
                let [a, b, c] = weights(l);
                self.map(c * size * size, 1.0);
                invert(member, g, n, n, space.inverse, own);
                let top = self.power(step);
                // s_n from below; a coarse estimate as soon as the small ones stand out, else they still grow
                let least = ((1.0 / top - 1.0).max(0.0) / c).sqrt();
                let least = if least < 0.1 { 0.0 } else { (0.7 * least).min(1.0) };
                l = (least * (a + b * least * least) / (1.0 + c * least * least)).clamp(LEAST, 1.0);
                self.map((a - b / c) * size, b / c * size);
                Product::new((m, n, n), ax, ag, y, n).run(member, scratch);
                member.barrier();
                size = 1.0;
            }
            (x, y) = (y, x);
        }
        None
    }

    /// ||G - I||_F and ||G||_F, on all members alike.
    unsafe fn measure(&self) -> [f64; 2] {
        let (n, g, measured) = (self.n, self.space.g.ptr(), self.space.measured.ptr());
        // SAFETY: member 0 alone writes the measures.
        unsafe {
            if self.member.id == 0 {
                let (mut all, mut error) = (0.0, 0.0);
                for i in 0..n {
                    for j in 0..n {
                        let x = *g.add(i * n + j);
                        all += x.abs2().f64();
                        if i == j {
                            error += (x - T::one()).abs2().f64() - x.abs2().f64();
                        }
                    }
                }
                // the difference cancels near the end, where the sum is taken by itself
                error += all;
                if error < 1e-2 {
                    error = 0.0;
                    for i in 0..n {
                        for j in 0..n {
                            let one = if i == j { T::one() } else { T::zero() };
                            error += (*g.add(i * n + j) - one).abs2().f64();
                        }
                    }
                }
                *measured = error.sqrt();
                *measured.add(1) = all.sqrt();
            }
            self.member.barrier();
            let found = [*measured, *measured.add(1)];
            self.member.barrier();
            found
        }
    }

    /// G <- by G + add I
    unsafe fn map(&self, by: f64, add: f64) {
        let (n, g) = (self.n, self.space.g.ptr());
        let (by, add) = (T::Real::of(by), T::real(T::Real::of(add)));
        for i in self.member.share(n, BLOCK) {
            // SAFETY: members write disjoint rows.
            unsafe {
                for j in 0..n {
                    let x = g.add(i * n + j);
                    *x = (*x).scale(by);
                }
                *g.add(i * n + i) += add;
            }
        }
        self.member.barrier();
    }

    /// The largest eigenvalue of the matrix in G, from below, on all members alike.
    unsafe fn power(&self, seed: usize) -> f64 {
        let (n, g, measured) = (self.n, self.space.g.ptr(), self.space.measured.ptr());
        let (mut v, mut w) = (self.space.vectors.ptr(), self.space.vectors.ptr().wrapping_add(n));
        // SAFETY: member 0 alone writes the vectors and the measure.
        unsafe {
            if self.member.id == 0 {
                for j in 0..n {
                    let x = (hash(seed * n + j) >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
                    *v.add(j) = T::real(T::Real::of(x));
                }
                let mut top = 1.0;
                for _ in 0..POWER {
                    let length = (0..n).map(|j| (*v.add(j)).abs2().f64()).sum::<f64>().sqrt();
                    let by = T::Real::of(1.0 / length);
                    let mut along = 0.0;
                    for j in 0..n {
                        *v.add(j) = (*v.add(j)).scale(by);
                    }
                    for i in 0..n {
                        let mut sum = T::zero();
                        for j in 0..n {
                            sum += *g.add(i * n + j) * *v.add(j);
                        }
                        *w.add(i) = sum;
                        along += (sum * (*v.add(i)).conj()).re().f64();
                    }
                    top = along;
                    (v, w) = (w, v);
                }
                *measured = top.clamp(f64::MIN_POSITIVE, 1.0);
            }
            self.member.barrier();
            let top = *measured;
            self.member.barrier();
            top
        }
    }

    /// Writes W, or W^H.
    unsafe fn store(&self, x: *const T, (out, wide): (*mut T, bool)) {
        let Self { member, m, n, .. } = *self;
        for i in member.share(m, BLOCK) {
            for j in 0..n {
                // SAFETY: both have m n elements; members write disjoint elements.
                unsafe {
                    let x = *x.add(i * n + j);
                    if wide { *out.add(j * m + i) = x.conj() } else { *out.add(i * n + j) = x }
                }
            }
        }
        member.barrier();
    }
}

/// Bits that look random.
fn hash(x: usize) -> u64 {
    let x = (x as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (x >> 32)
}
