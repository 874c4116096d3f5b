//! The passes of a rotational unit over the rows of one step: a = e + R h', the normalisation of a state, and both backward.
//!
//! Row b of the batch has its own rotation Q of e to tau. Without a memory R = Q. With one, R is the n x n matrix at
//! `memory`, R <- R Q: each of its rows is turned by Q^T. Backward applies the inverse, R <- R Q^T, so that
//! no step saves a matrix. With the cotangents c of a, and S of R after the step,
//!
//! ```text
//! h'_bar = R^T c,   S <- S + c h'^T,   S <- S Q^T,   e_bar = c + the gradient of the rotation's start,
//! ```
//!
//! where the gradient of Q is summed over the rows of the matrix before the step, all of which Q turned.
//! (Without a memory h' is the only row, h'_bar = Q^T c.)

use crate::dispatch::kernel;
use crate::rotation::{Frame, Pull, Turn, Vectors, combined, direction, dots, frame_len, scaled};
use crate::simd::Simd;
use std::ops::Range;

/// Numbers of scratch of [`Heard`] and [`HeardPull`]: a frame, sums, a row, and zeros in place of an absent h'.
pub const fn heard_len(n: usize) -> usize {
    frame_len(n) + 4 * n
}

/// a = e + R h', and R of the step where there is a memory.
///
/// # Safety
/// The pointers are at row 0 of the step and have the rows; h' and `memory` may be null, for zeros and for none; `scratch`
/// has [`heard_len`] numbers; what is written overlaps nothing else.
pub struct Heard<R> {
    /// n
    pub n: usize,
    /// Rows.
    pub rows: Range<usize>,
    /// e
    pub e: *const R,
    /// Rows of 2 n numbers, tau behind n others.
    pub gates: *const R,
    /// h'
    pub previous: *const R,
    /// R of each row, n x n.
    pub memory: *mut R,
    /// a
    pub out: *mut R,
    /// Scratch.
    pub scratch: *mut R,
}

/// [`Heard`] backward: writes the cotangents of tau and e to the bars, adds that of h' to `carry`, and
/// inverts the step on R and S.
///
/// # Safety
/// That of [`Heard`]; `memory_bar` is null where `memory` is.
pub struct HeardPull<R> {
    /// n
    pub n: usize,
    /// Rows.
    pub rows: Range<usize>,
    /// e
    pub e: *const R,
    /// Rows of 2 n numbers, tau behind n others.
    pub gates: *const R,
    /// h'
    pub previous: *const R,
    /// R after the step, then before it.
    pub memory: *mut R,
    /// S after the step, then before it.
    pub memory_bar: *mut R,
    /// c
    pub bar: *const R,
    /// The cotangent of h' is added here.
    pub carry: *mut R,
    /// Rows of `pitch` numbers: after n others the cotangents of tau, then of e.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// Scratch.
    pub scratch: *mut R,
}

/// h = eta h' / ||h'|| of rows; zero where h' is.
///
/// # Safety
/// h' and h have the rows, and may be the same.
pub struct Sphere<R> {
    /// n
    pub n: usize,
    /// Rows.
    pub rows: Range<usize>,
    /// eta
    pub eta: R,
    /// h'
    pub x: *const R,
    /// h
    pub out: *mut R,
}

/// h'_bar = (eta / ||h'||) (g - y (y.g)), y = h' / ||h'||, for the sum g of two arrays; zero where h' is.
///
/// # Safety
/// All have the rows; one part of g may be null for zeros. y replaces h', and h'_bar may be the first part of g that is given.
pub struct SpherePull<R> {
    /// n
    pub n: usize,
    /// Rows.
    pub rows: Range<usize>,
    /// eta
    pub eta: R,
    /// h', then y.
    pub x: *mut R,
    /// The parts of g.
    pub g: [*const R; 2],
    /// h'_bar
    pub out: *mut R,
}

/// out <- out + f x
#[inline(always)]
unsafe fn added<S: Simd>(n: usize, f: S::R, x: *const S::R, out: *mut S::R) {
    for at in (0..n).step_by(S::LANES) {
        let (to, live) = (out.wrapping_add(at), n - at);
        // SAFETY: both have n numbers.
        unsafe {
            S::store_n(to, S::mul_add(S::splat(f), S::load_n(x.add(at), live), S::load_n(to, live)), live)
        };
    }
}

/// Zeros.
#[inline(always)]
unsafe fn cleared<S: Simd>(n: usize, out: *mut S::R) {
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: n numbers.
        unsafe { S::store_n(out.add(at), S::zero(), n - at) };
    }
}

kernel!(Heard::<R>, |own| {
    let (n, frame, two) = (own.n, own.scratch, R::of(2.0));
    // SAFETY: the contract of `Heard`.
    unsafe {
        let zeros = frame.add(frame_len(n) + 3 * n);
        cleared::<S>(n, zeros);
        for row in own.rows.clone() {
            let (e, out) = (own.e.add(row * n), own.out.add(row * n));
            let h = if own.previous.is_null() { zeros.cast_const() } else { own.previous.add(row * n) };
            S::outlined(&Frame { n, start: e, end: own.gates.add((2 * row + 1) * n), frame });
            if own.memory.is_null() {
                S::outlined(&Turn { n, frame, forward: true, rows: 1, x: h, out });
                added::<S>(n, R::one(), e, out);
                continue;
            }
            // z = r - f w - s ah for a row r, hence z.h = r.h - f w.h - s ah.h
            let (ah, w, overlap) = (frame.cast_const(), frame.add(n).cast_const(), *frame.add(2 * n));
            let [[of_ah], [of_w]] = dots::<S, 1>(n, [ah, w], [h]);
            for i in (0..n).step_by(2) {
                let r = [i, (i + 1).min(n - 1)].map(|i| own.memory.add((row * n + i) * n));
                let sums = dots::<S, 3>(n, r.map(<*mut R>::cast_const), [ah, w, h]);
                for k in 0..(n - i).min(2) {
                    let [a, b, c] = sums[k];
                    let f = two * b;
                    let s = two * (a - f * overlap);
                    combined::<S>(n, r[k], (-f, w), (-s, ah), r[k]);
                    *out.add(i + k) = *e.add(i + k) + (c - f * of_w - s * of_ah);
                }
            }
        }
    }
});

kernel!(HeardPull::<R>, |own| {
    let (n, frame, one) = (own.n, own.scratch, R::one());
    // SAFETY: the contract of `HeardPull`; the parts of the scratch follow each other.
    unsafe {
        let sums = frame.add(frame_len(n));
        let (turned, zeros) = (sums.add(2 * n), sums.add(3 * n));
        cleared::<S>(n, zeros);
        for row in own.rows.clone() {
            let h = if own.previous.is_null() { zeros.cast_const() } else { own.previous.add(row * n) };
            let (start, end) = (own.e.add(row * n), own.gates.add((2 * row + 1) * n));
            let (bar, tau_bar) = (own.bar.add(row * n), own.bars.add(row * own.pitch + n));
            let e_bar = tau_bar.add(n);
            S::outlined(&Frame { n, start, end, frame });
            cleared::<S>(3 * n, sums);
            if own.memory.is_null() {
                S::outlined(&Pull { n, frame, forward: true, rows: 1, x: h, ct: bar, sums, x_bar: turned });
            } else {
                for i in 0..n {
                    let at = (row * n + i) * n;
                    let (r, s) = (own.memory.add(at), own.memory_bar.add(at));
                    added::<S>(n, *bar.add(i), r, turned);
                    added::<S>(n, *bar.add(i), h, s);
                    S::outlined(&Turn { n, frame, forward: true, rows: 1, x: r, out: r });
                    S::outlined(&Pull { n, frame, forward: false, rows: 1, x: r, ct: s, sums, x_bar: s });
                }
            }
            S::outlined(&Vectors { n, frame, sums, start_bar: e_bar, end_bar: tau_bar });
            added::<S>(n, one, bar, e_bar);
            added::<S>(n, one, turned, own.carry.add(row * n));
        }
    }
});

kernel!(Sphere::<R>, |own| {
    let n = own.n;
    for row in own.rows.clone() {
        // SAFETY: the contract of `Sphere`.
        unsafe {
            let out = own.out.add(row * n);
            match direction::<S>(n, own.x.add(row * n), out) {
                Some(_) => scaled::<S>(n, own.eta, out, out),
                None => cleared::<S>(n, out),
            }
        }
    }
});

kernel!(SpherePull::<R>, |own| {
    let n = own.n;
    for row in own.rows.clone() {
        // SAFETY: the contract of `SpherePull`.
        unsafe {
            let (y, out) = (own.x.add(row * n), own.out.add(row * n));
            let Some(inverse) = direction::<S>(n, y, y) else {
                cleared::<S>(n, out);
                continue;
            };
            let at = |g: *const R| if g.is_null() { g } else { g.add(row * n) };
            let [first, second] = own.g.map(at);
            let (g, other) = if first.is_null() { (second, first) } else { (first, second) };
            scaled::<S>(n, R::one(), g, out);
            if !other.is_null() {
                added::<S>(n, R::one(), other, out);
            }
            let [[along], _] = dots::<S, 1>(n, [y, y], [out]);
            let factor = own.eta * inverse;
            scaled::<S>(n, factor, out, out);
            added::<S>(n, -along * factor, y, out);
        }
    }
});
