//! The inverse of one small upper triangular block, by back substitution on the identity.

use crate::dispatch::{compiled, kernel};
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

// From the last row up: x_i = x_i / t_ii, then x_j -= t_ji x_i for all rows j above, where X starts as the identity. Two
// rows i at a time, so that the rows above are read and written half as often.
kernel!(Upper::<T>, |own| {
    let (n, width) = (own.n, own.n * T::PARTS);
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
        let mut end = n;
        while end > 0 {
            // rows low and end - 1, in the same vectors; the same row first where n is odd
            let low = if end.is_multiple_of(2) { end - 2 } else { end - 1 };
            let first = low * T::PARTS / S::LANES * S::LANES;
            let r = [
                reciprocal(*own.t.add(low * own.stride + low)),
                reciprocal(*own.t.add((end - 1) * own.stride + end - 1)),
            ];
            for v in (first..pitch).step_by(S::LANES) {
                let (at, below) = (x.add(low * pitch + v), x.add((end - 1) * pitch + v));
                let mut last = [S::zero(); 2];
                if low + 1 < end {
                    last = divided::<T, S>(S::load(below), r[1]);
                    S::store(below, last[0]);
                    S::store(at, minus::<T, S>(S::load(at), *own.t.add(low * own.stride + low + 1), last));
                }
                let row = divided::<T, S>(S::load(at), r[0]);
                S::store(at, row[0]);
                for j in 0..low {
                    let (f, at) = (own.t.add(j * own.stride + low), x.add(j * pitch + v));
                    let mut above = S::load(at);
                    if low + 1 < end {
                        above = minus::<T, S>(above, *f.add(1), last);
                    }
                    S::store(at, minus::<T, S>(above, *f, row));
                }
            }
            end = low;
        }
        for i in 0..n {
            let out = own.t.add(i * own.stride).cast::<S::R>();
            for v in (0..width).step_by(S::LANES) {
                S::store_n(out.add(v), S::load(x.add(i * pitch + v)), width - v);
            }
            for j in 0..i {
                *own.t.add(i * own.stride + j) = T::real(zero);
            }
        }
    }
});

/// x r, and that times i.
#[inline(always)]
unsafe fn divided<T: Scalar, S: Simd<R = T::Real>>(x: S::V, r: T) -> [S::V; 2] {
    let one = S::R::one();
    // SAFETY: arithmetic only; the caller ensures that the processor supports it.
    unsafe {
        let mut row = S::mul(x, S::splat(r.re()));
        if T::PARTS == 2 {
            row = S::mul_add(S::swap_pairs(x), S::alternate(-r.im(), r.im()), row);
        }
        [row, S::mul(S::swap_pairs(row), S::alternate(-one, one))]
    }
}

/// x - f row
#[inline(always)]
unsafe fn minus<T: Scalar, S: Simd<R = T::Real>>(x: S::V, f: T, row: [S::V; 2]) -> S::V {
    // SAFETY: arithmetic only; the caller ensures that the processor supports it.
    unsafe {
        let x = S::neg_mul_add(S::splat(f.re()), row[0], x);
        if T::PARTS == 2 { S::neg_mul_add(S::splat(f.im()), row[1], x) } else { x }
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
