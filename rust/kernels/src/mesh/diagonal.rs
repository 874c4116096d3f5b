//! The diagonal D = diag(d) behind the layers, and its gradient.

use super::{add_to, times};
use crate::dispatch::Kernel;
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;

/// y <- D y, or conj(D) y.
///
/// # Safety
/// d has n elements, y `rows` times as many; they do not overlap.
pub struct Turn<T> {
    /// d
    pub d: *const T,
    /// Whether conj(D) is applied.
    pub conj: bool,
    /// The rows.
    pub y: *mut T,
    /// n
    pub n: usize,
    /// Number of rows.
    pub rows: usize,
}

/// For c = D y and its cotangent g: g <- conj(D) g, and the gradient of the angles of D, sum of Im(g conj(y)) with the new g.
///
/// # Safety
/// d has n elements, y and g `rows` times as many, `sums` n numbers or is null; they do not overlap.
pub struct TurnPull<T: Scalar> {
    /// d
    pub d: *const T,
    /// y
    pub y: *const T,
    /// g
    pub g: *mut T,
    /// n
    pub n: usize,
    /// Number of rows.
    pub rows: usize,
    /// The gradient of the angles.
    pub sums: *mut T::Real,
}

/// Real parts of complex numbers in both their lanes, and imaginary parts, negated in the first, or with `conj` the second.
#[inline(always)]
unsafe fn split<S: Simd>(d: S::V, conj: bool) -> (S::V, S::V) {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let turn = S::R::of(if conj { 1.0 } else { -1.0 });
        let im = S::mul(S::permute(d, S::index(|lane| lane | 1)), S::alternate(turn, -turn));
        (S::permute(d, S::index(|lane| lane & !1)), im)
    }
}

impl<T: Scalar> Kernel<T::Real> for Turn<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(&self) {
        let width = self.n * T::PARTS;
        for col in (0..width).step_by(S::LANES) {
            let live = width - col;
            // SAFETY: the contract of `Turn`; the last vector is cut to the numbers that exist.
            unsafe {
                let d = S::load_n(self.d.cast::<S::R>().add(col), live);
                let (re, im) = if T::PARTS == 2 { split::<S>(d, self.conj) } else { (d, d) };
                for row in 0..self.rows {
                    let p = self.y.cast::<S::R>().add(row * width + col);
                    let y = S::load_n(p, live);
                    S::store_n(p, if T::PARTS == 2 { times::<S>(y, re, im) } else { S::mul(d, y) }, live);
                }
            }
        }
    }
}

impl<T: Scalar> Kernel<T::Real> for TurnPull<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(&self) {
        let width = self.n * T::PARTS;
        for col in (0..width).step_by(S::LANES) {
            let live = width - col;
            // SAFETY: the contract of `TurnPull`; the last vector is cut to the numbers that exist.
            unsafe {
                let d = S::load_n(self.d.cast::<S::R>().add(col), live);
                let (re, im) = if T::PARTS == 2 { split::<S>(d, true) } else { (d, d) };
                let mut sum = S::zero();
                for row in 0..self.rows {
                    let at = row * width + col;
                    let p = self.g.cast::<S::R>().add(at);
                    let mut g = S::load_n(p, live);
                    if T::PARTS == 2 {
                        g = times::<S>(g, re, im);
                        let y = S::load_n(self.y.cast::<S::R>().add(at), live);
                        sum = S::mul_add(g, S::swap_pairs(y), sum);
                    } else {
                        g = S::mul(d, g);
                    }
                    S::store_n(p, g, live);
                }
                if T::PARTS == 2 && !self.sums.is_null() {
                    // g_re y_im in even lanes, g_im y_re in odd ones
                    let own = S::permute(S::sub(S::swap_pairs(sum), sum), S::index(|j| 2 * j));
                    add_to::<S>(self.sums.add(col / 2), own, live.min(S::LANES) / 2);
                }
            }
        }
    }
}
