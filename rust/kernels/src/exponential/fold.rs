//! A Hermitian or skew-Hermitian matrix from another, whose lower triangle is the mirror image of its upper one: both are
//! written at once, in blocks transposed in registers.

use crate::dispatch::kernel;
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;
use num_traits::{One, Zero};

/// Rows of a call; a multiple of every number of lanes.
pub const BLOCK: usize = 16;

/// V_ij = c_0 M_ij + c_1 conj(M_ji) on and above the diagonal, V_ji = sign conj(V_ij) below it, in a block of rows and
/// the block of columns below it. With c_1 = 0 the lower triangle of M is not read.
///
/// # Safety
/// The matrices have n rows; `to` may be `from`.
pub struct Fold<T: Scalar> {
    /// M
    pub from: *const T,
    /// V
    pub to: *mut T,
    /// V is added to this one as well.
    pub sum: Option<*mut T>,
    /// Row stride of all.
    pub pitch: usize,
    /// n
    pub n: usize,
    /// First of up to [`BLOCK`] rows.
    pub row: usize,
    /// c_0 and c_1
    pub by: [T::Real; 2],
    /// 1 or -1
    pub sign: T::Real,
}

kernel!(Fold::<T>, |own| {
    let (n, step) = (own.n, S::LANES / T::PARTS);
    let end = (own.row + BLOCK).min(n);
    // SAFETY: the contract of `Fold`; a block is read before it is written.
    unsafe {
        for i in (own.row..end).step_by(step) {
            own.diagonal(i, (i + step).min(end));
            for j in (i + step..n).step_by(step) {
                own.block::<S>(i, j);
            }
        }
    }
});

impl<T: Scalar> Fold<T> {
    /// The block on the diagonal.
    #[inline(always)]
    unsafe fn diagonal(&self, start: usize, end: usize) {
        let Fold { from, to, sum, pitch, by, sign, .. } = *self;
        let both = !by[1].is_zero();
        // SAFETY: the contract of `Fold`.
        unsafe {
            for i in start..end {
                for j in i..end {
                    let (right, below) = (i * pitch + j, j * pitch + i);
                    let mut v = (*from.add(right)).scale(by[0]);
                    if both {
                        v += (*from.add(below)).conj().scale(by[1]);
                    }
                    if i == j {
                        v = (v + v.conj().scale(sign)).scale(T::Real::of(0.5));
                    }
                    let w = v.conj().scale(sign);
                    *to.add(right) = v;
                    *to.add(below) = w;
                    if let Some(sum) = sum {
                        *sum.add(right) += v;
                        if i < j {
                            *sum.add(below) += w;
                        }
                    }
                }
            }
        }
    }

    /// A block to the right of the diagonal, which has all its rows, and its mirror image.
    #[inline(always)]
    unsafe fn block<S: Simd<R = T::Real>>(&self, i: usize, j: usize) {
        let Fold { from, to, sum, pitch, n, by, sign, .. } = *self;
        let (step, live) = (S::LANES / T::PARTS, (n - j).min(S::LANES / T::PARTS));
        let width = live * T::PARTS;
        // SAFETY: the contract of `Fold`; rows j.. are those that exist.
        unsafe {
            let right = |m: *const T, q: usize| m.wrapping_add((i + q) * pitch + j).cast::<S::R>();
            let below = |m: *const T, q: usize| m.wrapping_add((j + q) * pitch + i).cast::<S::R>();
            let mut v = [S::zero(); 16];
            if !by[1].is_zero() {
                for q in 0..live {
                    v[q] = S::load(below(from, q));
                }
                turned::<T, S>(&mut v, by[1]);
            }
            for q in 0..step {
                v[q] = S::mul_add(S::splat(by[0]), S::load_n(right(from, q), width), v[q]);
                S::store_n(right(to, q).cast_mut(), v[q], width);
                if let Some(sum) = sum {
                    let at = right(sum, q);
                    S::store_n(at.cast_mut(), S::add(S::load_n(at, width), v[q]), width);
                }
            }
            turned::<T, S>(&mut v, sign);
            for q in 0..live {
                S::store(below(to, q).cast_mut(), v[q]);
                if let Some(sum) = sum {
                    let at = below(sum, q);
                    S::store(at.cast_mut(), S::add(S::load(at), v[q]));
                }
            }
        }
    }
}

/// c times the conjugate transpose of a block.
#[inline(always)]
unsafe fn turned<T: Scalar, S: Simd<R = T::Real>>(v: &mut [S::V; 16], c: S::R) {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        let by = if T::PARTS == 1 {
            S::transpose(&mut v[..S::LANES]);
            S::splat(c)
        } else {
            S::transpose_pairs(&mut v[..S::LANES / 2]);
            S::alternate(c, -c)
        };
        if T::PARTS == 1 && c == S::R::one() {
            return;
        }
        for q in 0..S::LANES / T::PARTS {
            v[q] = S::mul(v[q], by);
        }
    }
}
