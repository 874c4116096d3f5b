//! The inverse of one small upper triangular block, by back substitution on the identity.

use crate::dispatch::{Kernel, compiled};
use crate::scalar::{Scalar, c32, c64};
use crate::simd::Simd;
use num_traits::{Float, One, Zero};
use std::mem::MaybeUninit;

/// Rows of the largest block.
pub const BASE: usize = 64;

/// Replaces an upper triangular block of at most [`BASE`] rows by its inverse; entries below the diagonal become zero.
///
/// # Safety
/// The block is valid for reads and writes.
pub struct Upper<T> {
    /// The block.
    pub t: *mut T,
    /// Row stride.
    pub stride: usize,
    /// Number of rows.
    pub n: usize,
}

compiled! {
    /// Triangular inverses, compiled for each element type.
    UpperKernels: Scalar for f32, f64, c32, c64; {
        /// [`Upper`]
        fn upper(Upper);
    }
}

impl<T: Scalar> Kernel<T::Real> for Upper<T> {
    type Output = ();

    /// From the last row up: x_i = x_i / t_ii, then x_j -= t_ji x_i for all rows j above, where X starts as the identity.
    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(&self) {
        let (n, width) = (self.n, self.n * T::PARTS);
        let pitch = width.next_multiple_of(S::LANES);
        let mut room = [MaybeUninit::<S::R>::uninit(); BASE * BASE * 2];
        let x = room.as_mut_ptr().cast::<S::R>();
        let (one, zero) = (S::R::one(), S::R::zero());
        // SAFETY: the buffer has room for n rows of `pitch` numbers: at most BASE rows of BASE PARTS numbers, a multiple
        // of LANES.
        unsafe {
            for i in 0..n {
                for v in (0..pitch).step_by(S::LANES) {
                    S::store(x.add(i * pitch + v), S::zero());
                }
                *x.add(i * pitch + i * T::PARTS) = one;
            }
            for i in (0..n).rev() {
                let r = reciprocal(*self.t.add(i * self.stride + i));
                let first = i * T::PARTS / S::LANES * S::LANES;
                for v in (first..pitch).step_by(S::LANES) {
                    let at = x.add(i * pitch + v);
                    let own = S::load(at);
                    let mut row = S::mul(own, S::splat(r.re()));
                    if T::PARTS == 2 {
                        row = S::mul_add(S::swap_pairs(own), S::alternate(-r.im(), r.im()), row);
                    }
                    S::store(at, row);
                    let turned = S::mul(S::swap_pairs(row), S::alternate(-one, one));
                    for j in 0..i {
                        let (f, at) = (*self.t.add(j * self.stride + i), x.add(j * pitch + v));
                        let mut above = S::neg_mul_add(S::splat(f.re()), row, S::load(at));
                        if T::PARTS == 2 {
                            above = S::neg_mul_add(S::splat(f.im()), turned, above);
                        }
                        S::store(at, above);
                    }
                }
            }
            for i in 0..n {
                let out = self.t.add(i * self.stride).cast::<S::R>();
                for v in (0..width).step_by(S::LANES) {
                    S::store_n(out.add(v), S::load(x.add(i * pitch + v)), width - v);
                }
                for j in 0..i {
                    *self.t.add(i * self.stride + j) = T::real(zero);
                }
            }
        }
    }
}

/// 1 / z by Smith's method: |z|^2 of a complex diagonal may overflow or underflow where 1 / z does not.
#[inline(always)]
fn reciprocal<T: Scalar>(z: T) -> T {
    let (x, y) = (z.re(), z.im());
    if Float::abs(x) >= Float::abs(y) {
        let (ratio, one) = (y / x, T::Real::one());
        let scale = one / (x + y * ratio);
        T::new(scale, -ratio * scale)
    } else {
        let (ratio, one) = (x / y, T::Real::one());
        let scale = one / (x * ratio + y);
        T::new(ratio * scale, -one * scale)
    }
}
