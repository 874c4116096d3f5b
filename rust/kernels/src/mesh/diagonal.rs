//! Rows on their way in and out of a block, multiplied by D = diag(d) if there is one, and its gradient.
//!
//! The rows of a block are `pitch` elements apart, so that equal columns share neither a set of the cache nor
//! the low bits of their addresses; the caller's rows are contiguous.

use super::{add_to, times};
use crate::dispatch::kernel;
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;

/// to <- D from, or conj(D) from; a copy without d.
///
/// # Safety
/// d has n elements or is null, the arrays have `rows` rows of n elements; they do not overlap.
pub struct Turn<T> {
    /// d
    pub d: *const T,
    /// Whether conj(D) is applied.
    pub conj: bool,
    /// The rows, and their distance.
    pub from: (*const T, usize),
    /// The target rows, and their distance.
    pub to: (*mut T, usize),
    /// n
    pub n: usize,
    /// Number of rows.
    pub rows: usize,
}

/// For c = D y and its cotangent g: g <- conj(D) g, and the gradient of the angles of D, sum of Im(g conj(y)) with the new g.
///
/// # Safety
/// d has n elements, the arrays have `rows` rows of n elements, `sums` n numbers or is null; they do not overlap.
pub struct TurnPull<T: Scalar> {
    /// d
    pub d: *const T,
    /// y
    pub y: *const T,
    /// g
    pub g: *mut T,
    /// Distance of the rows of y and g.
    pub pitch: usize,
    /// n
    pub n: usize,
    /// Number of rows.
    pub rows: usize,
    /// The gradient of the angles.
    pub sums: *mut T::Real,
}

/// d as factors of `times`: real parts in both lanes, and imaginary parts, negated in the first, or with `conj` the second. For
/// a real type d itself.
#[inline(always)]
unsafe fn entries<T: Scalar, S: Simd<R = T::Real>>(
    d: *const T,
    col: usize,
    live: usize,
    conj: bool,
) -> (S::V, S::V) {
    // SAFETY: the contract of `Turn`.
    unsafe {
        let d = S::load_n(d.cast::<S::R>().add(col), live);
        if T::PARTS == 1 {
            return (d, d);
        }
        let turn = S::R::of(if conj { 1.0 } else { -1.0 });
        let im = S::mul(S::permute(d, S::index(|lane| lane | 1)), S::alternate(turn, -turn));
        (S::permute(d, S::index(|lane| lane & !1)), im)
    }
}

// Row by row: the caller's rows are not in a cache yet, and prefetching follows a row.
kernel!(Turn::<T>, |own| {
    let width = own.n * T::PARTS;
    for row in 0..own.rows {
        let from = own.from.0.wrapping_add(row * own.from.1).cast::<S::R>();
        let to = own.to.0.wrapping_add(row * own.to.1).cast::<S::R>();
        // SAFETY: the contract of `Turn`; the last vector is cut to the numbers that exist.
        unsafe {
            if own.d.is_null() {
                std::ptr::copy_nonoverlapping(from, to, width);
                continue;
            }
            for col in (0..width).step_by(S::LANES) {
                let live = width - col;
                let (re, im) = entries::<T, S>(own.d, col, live, own.conj);
                let y = S::load_n(from.add(col), live);
                S::store_n(
                    to.add(col),
                    if T::PARTS == 2 { times::<S>(y, re, im) } else { S::mul(re, y) },
                    live,
                );
            }
        }
    }
});

kernel!(TurnPull::<T>, |kernel| {
    let (width, pitch) = (kernel.n * T::PARTS, kernel.pitch * T::PARTS);
    for col in (0..width).step_by(S::LANES) {
        let live = width - col;
        // SAFETY: the contract of `TurnPull`; the last vector is cut to the numbers that exist.
        unsafe {
            let (re, im) = entries::<T, S>(kernel.d, col, live, true);
            let mut sum = S::zero();
            for row in 0..kernel.rows {
                let at = kernel.g.cast::<S::R>().add(row * pitch + col);
                let mut g = S::load_n(at, live);
                if T::PARTS == 2 {
                    g = times::<S>(g, re, im);
                    let y = S::load_n(kernel.y.cast::<S::R>().add(row * pitch + col), live);
                    sum = S::mul_add(g, S::swap_pairs(y), sum);
                } else {
                    g = S::mul(re, g);
                }
                S::store_n(at, g, live);
            }
            if T::PARTS == 2 && !kernel.sums.is_null() {
                // g_re y_im in even lanes, g_im y_re in odd ones
                let own = S::permute(S::sub(S::swap_pairs(sum), sum), S::index(|j| 2 * j));
                add_to::<S>(kernel.sums.add(col / 2), own, live.min(S::LANES) / 2);
            }
        }
    }
});
