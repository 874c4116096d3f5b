//! A group of rows, a row per lane: its elements, sums over them, and the passes on the rows' way in and out.
//!
//! # Safety
//! Of all functions: buffers have the elements of the plan, tables n pairs; the caller has the instruction set.

use super::passes::times;
use crate::dispatch::kernel;
use crate::simd::Simd;

/// Most lanes.
pub(crate) const LANES: usize = 16;

/// A vector of real and one of imaginary parts.
pub(crate) type Pair<S> = (<S as Simd>::V, <S as Simd>::V);

/// The pointer advanced by `at` numbers, or null.
pub(crate) fn moved<R>(array: *mut R, at: usize) -> *mut R {
    if array.is_null() { array } else { array.wrapping_add(at) }
}

/// Element j of a buffer.
#[inline(always)]
pub(crate) unsafe fn get<S: Simd>(x: *const S::R, j: usize) -> Pair<S> {
    // SAFETY: the buffer has the element.
    unsafe { (S::load(x.add(j * 2 * S::LANES)), S::load(x.add((2 * j + 1) * S::LANES))) }
}

/// Writes element j.
#[inline(always)]
pub(crate) unsafe fn set<S: Simd>(x: *mut S::R, j: usize, (re, im): Pair<S>) {
    // SAFETY: the buffer has the element.
    unsafe {
        S::store(x.add(j * 2 * S::LANES), re);
        S::store(x.add((2 * j + 1) * S::LANES), im);
    }
}

/// z times the j-th pair of a table, or its conjugate.
#[inline(always)]
pub(crate) unsafe fn turned<S: Simd>((re, im): Pair<S>, by: *const S::R, j: usize, conj: bool) -> Pair<S> {
    // SAFETY: the table has the pair.
    unsafe {
        let (c, d) = (*by.add(2 * j), *by.add(2 * j + 1));
        times::<S>(re, im, c, if conj { -d } else { d })
    }
}

/// z - w_j s
#[inline(always)]
pub(crate) unsafe fn less<S: Simd>((re, im): Pair<S>, w: *const S::R, j: usize, s: Pair<S>) -> Pair<S> {
    // SAFETY: the table has the pair.
    unsafe {
        let (c, d) = (S::splat(*w.add(2 * j)), S::splat(*w.add(2 * j + 1)));
        let re = S::mul_add(s.1, d, S::neg_mul_add(s.0, c, re));
        (re, S::neg_mul_add(s.0, d, S::neg_mul_add(s.1, c, im)))
    }
}

/// One block of columns of up to LANES rows, transposed: LANES / 2 elements as pairs of vectors.
#[inline(always)]
pub(crate) unsafe fn taken<S: Simd>(
    x: *const S::R,
    width: usize,
    rows: usize,
    column: usize,
    v: &mut [S::V; LANES],
) {
    let left = width - column;
    // SAFETY: the rows have `width` numbers.
    unsafe {
        for (row, v) in v[..S::LANES].iter_mut().enumerate() {
            *v = S::zero();
            if row < rows {
                let at = x.add(row * width + column);
                *v = if left >= S::LANES { S::load(at) } else { S::load_n(at, left) };
            }
        }
        S::transpose(&mut v[..S::LANES]);
    }
}

/// The inverse of [`taken`].
#[inline(always)]
pub(crate) unsafe fn given<S: Simd>(
    v: &mut [S::V; LANES],
    x: *mut S::R,
    width: usize,
    rows: usize,
    column: usize,
) {
    let left = width - column;
    // SAFETY: the rows have `width` numbers.
    unsafe {
        S::transpose(&mut v[..S::LANES]);
        for (row, v) in v[..S::LANES].iter().enumerate() {
            if row < rows {
                let at = x.add(row * width + column);
                if left >= S::LANES {
                    S::store(at, *v)
                } else {
                    S::store_n(at, *v, left)
                };
            }
        }
    }
}

/// Rows in, times a diagonal, if it is not null, or its conjugate. A function of its own, as are the other large passes: they have several callers.
pub(crate) struct Load<R> {
    pub x: *const R,
    /// n, and rows.
    pub size: (usize, usize),
    pub diagonal: *const R,
    pub conj: bool,
    pub to: *mut R,
}

kernel!(Load::<R>, |&Load { x, size: (n, rows), diagonal, conj, to }| {
    // SAFETY: see the module.
    unsafe {
        let mut v = [S::zero(); LANES];
        for column in (0..2 * n).step_by(S::LANES) {
            taken::<S>(x, 2 * n, rows, column, &mut v);
            let first = column / 2;
            for t in 0..(S::LANES / 2).min(n - first) {
                let z = (v[2 * t], v[2 * t + 1]);
                let z = if diagonal.is_null() { z } else { turned::<S>(z, diagonal, first + t, conj) };
                set::<S>(to, first + t, z);
            }
        }
    }
});

/// Rows out: z less w (w^H z), times a diagonal or its conjugate; without the reflection where w is null, and without the
/// diagonal where that is null.
pub(crate) struct Store<R> {
    pub z: *const R,
    pub w: *const R,
    /// n, and rows.
    pub size: (usize, usize),
    pub diagonal: *const R,
    pub conj: bool,
    pub x: *mut R,
}

kernel!(Store::<R>, |&Store { z, w, size: (n, rows), diagonal, conj, x }| {
    // SAFETY: see the module.
    unsafe {
        let s = if w.is_null() { (S::zero(), S::zero()) } else { dot::<S>(w, z, n) };
        let mut v = [S::zero(); LANES];
        for column in (0..2 * n).step_by(S::LANES) {
            let first = column / 2;
            for t in 0..(S::LANES / 2).min(n - first) {
                let j = first + t;
                let mut z = get::<S>(z, j);
                if !w.is_null() {
                    z = less::<S>(z, w, j, s);
                }
                if !diagonal.is_null() {
                    z = turned::<S>(z, diagonal, j, conj);
                }
                (v[2 * t], v[2 * t + 1]) = z;
            }
            given::<S>(&mut v, x, 2 * n, rows, column);
        }
    }
});

/// w^H z
#[inline(always)]
pub(crate) unsafe fn dot<S: Simd>(w: *const S::R, z: *const S::R, n: usize) -> Pair<S> {
    // SAFETY: see the module.
    unsafe {
        // eight chains of sums
        let mut sums = [[S::zero(); 4]; 2];
        for j in (0..n).step_by(2) {
            for u in 0..2 {
                if j + u < n {
                    let (re, im) = get::<S>(z, j + u);
                    let at = w.add(2 * (j + u));
                    let (c, d) = (S::splat(*at), S::splat(*at.add(1)));
                    sums[u][0] = S::mul_add(re, c, sums[u][0]);
                    sums[u][1] = S::mul_add(im, d, sums[u][1]);
                    sums[u][2] = S::mul_add(im, c, sums[u][2]);
                    sums[u][3] = S::mul_add(re, d, sums[u][3]);
                }
            }
        }
        let re = S::add(S::add(sums[0][0], sums[1][0]), S::add(sums[0][1], sums[1][1]));
        (re, S::sub(S::add(sums[0][2], sums[1][2]), S::add(sums[0][3], sums[1][3])))
    }
}

/// z <- z - w s
#[inline(always)]
pub(crate) unsafe fn reflect<S: Simd>(z: *mut S::R, w: *const S::R, s: Pair<S>, n: usize) {
    for j in 0..n {
        // SAFETY: see the module.
        unsafe { set::<S>(z, j, less::<S>(get::<S>(z, j), w, j, s)) };
    }
}

/// Adds the sum over the lanes of each of LANES vectors to `sums`, the first `count` of them.
#[inline(always)]
pub(crate) unsafe fn add_lanes<S: Simd>(v: &mut [S::V], sums: *mut S::R, count: usize) {
    // SAFETY: `sums` has `count` numbers.
    unsafe {
        S::transpose(&mut v[..S::LANES]);
        let mut many = S::LANES / 2;
        while many > 0 {
            for i in 0..many {
                v[i] = S::add(v[i], v[i + many]);
            }
            many /= 2;
        }
        S::store_n(sums, S::add(S::load_n(sums, count), v[0]), count);
    }
}

/// Re(conj(a) b)
#[inline(always)]
pub(crate) unsafe fn inner<S: Simd>(a: Pair<S>, b: Pair<S>) -> S::V {
    // SAFETY: arithmetic only; the caller has the instruction set.
    unsafe { S::mul_add(a.0, b.0, S::mul(a.1, b.1)) }
}

/// Im(a conj(b))
#[inline(always)]
pub(crate) unsafe fn outer<S: Simd>(a: Pair<S>, b: Pair<S>) -> S::V {
    // SAFETY: arithmetic only; the caller has the instruction set.
    unsafe { S::neg_mul_add(a.0, b.1, S::mul(a.1, b.0)) }
}
