//! Passes over matrices as rows of real numbers, where an element is one number, two, or one or two vectors
//! of lanes.

use crate::dispatch::kernel;
use crate::scalar::Real;
use std::ops::Range;

/// The most terms of a combination.
pub const TERMS: usize = 3;

/// out = unit I + sum of c_k M_k, in some rows.
///
/// # Safety
/// The matrices have the rows; `out` may be one of them.
pub struct Combine<R: Real> {
    /// The result.
    pub out: *mut R,
    /// c_k and M_k; null after the last.
    pub terms: [(R, *const R); TERMS],
    /// The multiple of the identity.
    pub unit: R,
    /// Rows.
    pub rows: Range<usize>,
    /// Row stride, in numbers.
    pub pitch: usize,
    /// Numbers of an element, and how many of them are real parts.
    pub element: (usize, usize),
}

kernel!(Combine::<R>, |&Combine { out, terms, unit, ref rows, pitch, element }| {
    // SAFETY: the rows exist (contract of `Combine`).
    unsafe {
        let (start, end) = (rows.start * pitch, rows.end * pitch);
        for at in (start..end).step_by(S::LANES) {
            let live = end - at;
            let mut sum = S::zero();
            for (c, m) in terms {
                if !m.is_null() {
                    sum = S::mul_add(S::splat(c), S::load_n(m.add(at), live), sum);
                }
            }
            S::store_n(out.add(at), sum, live);
        }
        if !unit.is_zero() {
            for i in rows.clone() {
                for e in 0..element.1 {
                    *out.add(i * pitch + i * element.0 + e) += unit;
                }
            }
        }
    }
});

/// to = from in the lanes whose level exceeds a number.
///
/// # Safety
/// `len` numbers exist in both, a multiple of the lanes; a level for each lane.
pub struct Keep<R: Real> {
    /// The matrix to be replaced.
    pub to: *mut R,
    /// The matrix to copy.
    pub from: *const R,
    /// Numbers.
    pub len: usize,
    /// One for each lane.
    pub levels: *const R,
    /// The number.
    pub level: R,
}

kernel!(Keep::<R>, |&Keep { to, from, len, levels, level }| {
    // SAFETY: the contract of `Keep`.
    unsafe {
        let (levels, level) = (S::load(levels), S::splat(level));
        for at in (0..len).step_by(S::LANES) {
            let (new, old) = (S::load(from.add(at)), S::load(to.add(at)));
            S::store(to.add(at), S::select_gt(levels, level, new, old));
        }
    }
});

/// Every lane times its own two factors.
///
/// # Safety
/// `len` numbers exist, a multiple of the lanes; a factor of both kinds for each lane.
pub struct Scale<R: Real> {
    /// The numbers.
    pub x: *mut R,
    /// Number of them.
    pub len: usize,
    /// The factors: their product may be too small for a number.
    pub by: [*const R; 2],
}

kernel!(Scale::<R>, |&Scale { x, len, by }| {
    // SAFETY: the contract of `Scale`.
    unsafe {
        let by = [S::load(by[0]), S::load(by[1])];
        for at in (0..len).step_by(S::LANES) {
            S::store(x.add(at), S::mul(S::mul(S::load(x.add(at)), by[0]), by[1]));
        }
    }
});

/// For some rows of a matrix: the sums of |x| scale and of x^2 over the numbers of each.
///
/// # Safety
/// The rows exist, and room for two sums of each row.
pub struct Measure<R: Real> {
    /// The matrix.
    pub m: *const R,
    /// Rows.
    pub rows: Range<usize>,
    /// Row stride, in numbers.
    pub pitch: usize,
    /// Numbers of a row.
    pub width: usize,
    /// Keeps the sum from overflowing.
    pub scale: R,
    /// Sums of |x| scale, and of squares.
    pub sums: [*mut R; 2],
}

kernel!(Measure::<R>, |&Measure { m, ref rows, pitch, width, scale, sums }| {
    // SAFETY: the contract of `Measure`.
    unsafe {
        for i in rows.clone() {
            let (mut sum, mut squares) = (S::zero(), S::zero());
            for at in (0..width).step_by(S::LANES) {
                let x = S::load_n(m.add(i * pitch + at), width - at);
                sum = S::mul_add(S::abs(x), S::splat(scale), sum);
                squares = S::mul_add(x, x, squares);
            }
            for (to, v) in sums.into_iter().zip([sum, squares]) {
                let mut lanes = [R::zero(); 16];
                S::store(lanes.as_mut_ptr(), v);
                *to.add(i) = lanes.iter().fold(R::zero(), |sum, &x| sum + x);
            }
        }
    }
});
