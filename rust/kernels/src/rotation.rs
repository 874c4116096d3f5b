//! The rotation R(a, b) of one direction to another in their plane, on rows: two reflections, O(n) per row.
//!
//! With ah = a / ||a||, bh = b / ||b||, v = ah + bh, w = v / ||v||
//!
//! ```text
//! R = H(w) H(ah) = I - 2 w w^T - 2 ah ah^T + 4 (w.ah) w ah^T.
//! ```
//!
//! For vectors of opposite directions, ||v|| <= 8 eps, w is the normalised part orthogonal to ah of the coordinate axis where
//! |ah_k| is smallest: a rotation by pi. If a or b is zero, or n = 1, ah = w = 0, so that R = I. Both have no gradient.
//! NaN gives NaN.
//!
//! For n = 2 nearly opposite directions are well conditioned: where v cancels, w is J (bh - ah) normalised, J
//! = [[0, -1], [1, 0]], which is w up to its sign, and R and the gradients do not depend on the sign.
//!
//! Gradient of y = R x with cotangent g, from the two reflections; the sums over all rows are
//!
//! ```text
//! p = H(ah) x,  q = H(w) g,  alpha = 2 ah.x,  beta = 2 ah.q,  gamma = 2 w.p,  delta = 2 w.g,
//! s = -alpha q - beta x + alpha beta ah,    t = -gamma g - delta p + gamma delta w,    v_bar = t / ||v||,
//! a_bar = (I - ah ah^T) (s + v_bar) / ||a||,    b_bar = (I - bh bh^T) v_bar / ||b||,    x_bar = R^T g.
//! ```
//!
//! For n = 2 the angle of w is the mean of those of ah and bh, so that ||v|| drops out:
//!
//! ```text
//! tau = t.Jw / 2,    a_bar = (s.J ah + tau) J ah / ||a||,    b_bar = tau J bh / ||b||.
//! ```
//!
//! Four kernels in this order: [`Frame`] once per pair, [`Turn`] or [`Pull`] for its rows, [`Vectors`] for the gradients of a and b.

use crate::dispatch::{compiled, kernel};
use crate::householder::total;
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::{Float, One, Zero};

/// Numbers that a frame needs for vectors of n numbers: ah, w, w.ah, 1 / ||v||, 1 / ||a||, 1 / ||b||.
pub const fn frame_len(n: usize) -> usize {
    2 * n + 4
}

/// Prepares the rotation of a to b: writes its frame.
///
/// # Safety
/// a and b have n numbers, `frame` has [`frame_len`] of n.
pub struct Frame<R> {
    /// n
    pub n: usize,
    /// a
    pub start: *const R,
    /// b
    pub end: *const R,
    /// The frame.
    pub frame: *mut R,
}

/// R x or R^T x of rows.
///
/// # Safety
/// [`Frame`] wrote the frame for this n; x and out have `rows` rows of n numbers, and are the same or do not overlap.
pub struct Turn<R> {
    /// n
    pub n: usize,
    /// The frame.
    pub frame: *const R,
    /// Whether R is applied, not R^T.
    pub forward: bool,
    /// Number of rows.
    pub rows: usize,
    /// x
    pub x: *const R,
    /// Result.
    pub out: *mut R,
}

/// Adds (s, t) of rows to `sums`, and writes x_bar, for x and the cotangents of what [`Turn`] writes.
///
/// # Safety
/// [`Frame`] wrote the frame for this n; x, ct and x_bar have `rows` rows of n numbers, `sums` has 2 n. x_bar may be ct; nothing else
/// overlaps.
pub struct Pull<R> {
    /// n
    pub n: usize,
    /// The frame.
    pub frame: *const R,
    /// Whether the cotangents are those of R x, not of R^T x.
    pub forward: bool,
    /// Number of rows.
    pub rows: usize,
    /// x
    pub x: *const R,
    /// g
    pub ct: *const R,
    /// s, then t; null if not wanted.
    pub sums: *mut R,
    /// x_bar; null if not wanted.
    pub x_bar: *mut R,
}

/// Writes a_bar and b_bar from the sums of all rows.
///
/// # Safety
/// [`Frame`] wrote the frame for this n; `sums` has 2 n numbers, `start_bar` and `end_bar` have n; nothing overlaps.
pub struct Vectors<R> {
    /// n
    pub n: usize,
    /// The frame.
    pub frame: *const R,
    /// The sums; changed.
    pub sums: *mut R,
    /// a_bar; null if not wanted.
    pub start_bar: *mut R,
    /// b_bar; null if not wanted.
    pub end_bar: *mut R,
}

compiled! {
    /// Rotations, compiled for each real type.
    RotationKernels: Real for f32, f64; {
        /// [`Frame`]
        fn frame(Frame);
        /// [`Turn`]
        fn turn(Turn);
        /// [`Pull`]
        fn pull_turn(Pull);
        /// [`Vectors`]
        fn turn_vectors(Vectors);
    }
}

/// The inner products of two vectors with C others: [the first's, the second's].
#[inline(always)]
pub(crate) unsafe fn dots<S: Simd, const C: usize>(
    n: usize,
    left: [*const S::R; 2],
    right: [*const S::R; C],
) -> [[S::R; C]; 2] {
    // SAFETY: all vectors have n numbers.
    unsafe {
        let mut acc = [[[S::zero(); 2]; C]; 2];
        for at in (0..n).step_by(2 * S::LANES) {
            for half in 0..2 {
                let at = at + half * S::LANES;
                if at < n {
                    let (a, b) = (S::load_n(left[0].add(at), n - at), S::load_n(left[1].add(at), n - at));
                    for c in 0..C {
                        let x = S::load_n(right[c].add(at), n - at);
                        S::accumulate(&mut acc[0][c][half], a, x);
                        S::accumulate(&mut acc[1][c][half], b, x);
                    }
                }
            }
        }
        let mut sums = [[S::R::zero(); C]; 2];
        for i in 0..2 {
            for c in 0..C {
                let (even, odd) = total::<S>(S::add(acc[i][c][0], acc[i][c][1]));
                sums[i][c] = even + odd;
            }
        }
        sums
    }
}

/// out <- f x
#[inline(always)]
pub(crate) unsafe fn scaled<S: Simd>(n: usize, f: S::R, x: *const S::R, out: *mut S::R) {
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: both have n numbers.
        unsafe { S::store_n(out.add(at), S::mul(S::splat(f), S::load_n(x.add(at), n - at)), n - at) };
    }
}

/// out <- base + f x + g y
#[inline(always)]
pub(crate) unsafe fn combined<S: Simd>(
    n: usize,
    base: *const S::R,
    (f, x): (S::R, *const S::R),
    (g, y): (S::R, *const S::R),
    out: *mut S::R,
) {
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: all have n numbers.
        unsafe {
            let sum = S::mul_add(S::splat(f), S::load_n(x.add(at), n - at), S::load_n(base.add(at), n - at));
            let sum = S::mul_add(S::splat(g), S::load_n(y.add(at), n - at), sum);
            S::store_n(out.add(at), sum, n - at);
        }
    }
}

/// Writes x / ||x||, and returns 1 / ||x||; None for a zero vector. Squares may leave the range of the type.
#[inline(always)]
pub(crate) unsafe fn direction<S: Simd>(n: usize, x: *const S::R, out: *mut S::R) -> Option<S::R> {
    let (one, tiny) = (S::R::one(), S::R::min_positive_value());
    // SAFETY: both have n numbers.
    unsafe {
        let [[square], _] = dots::<S, 1>(n, [x, x], [x]);
        if square.is_nan() || (square <= S::R::max_value() && square >= tiny / (S::R::EPS * S::R::EPS)) {
            let inverse = one / Float::sqrt(square);
            scaled::<S>(n, inverse, x, out);
            return Some(inverse);
        }
        let mut most = S::R::zero();
        for i in 0..n {
            most = Float::max(most, Float::abs(*x.add(i)));
        }
        if most == S::R::zero() {
            return None;
        }
        for i in 0..n {
            *out.add(i) = *x.add(i) / most;
        }
        let [[square], _] = dots::<S, 1>(n, [out, out], [out]);
        let len = Float::sqrt(square);
        scaled::<S>(n, one / len, out, out);
        (most * len >= tiny || square.is_nan()).then(|| one / (most * len))
    }
}

kernel!(Frame::<R>, |own| {
    let (n, ah, zero, one) = (own.n, own.frame, R::zero(), R::one());
    // SAFETY: the contract of `Frame`.
    unsafe {
        let (w, numbers) = (ah.add(n), ah.add(2 * n));
        let lengths = (direction::<S>(n, own.start, ah), direction::<S>(n, own.end, w));
        let (Some(a), Some(b), true) = (lengths.0, lengths.1, n > 1) else {
            let lost = [lengths.0, lengths.1].into_iter().flatten().any(|length| length.is_nan());
            for i in 0..frame_len(n) {
                *ah.add(i) = if lost { R::nan() } else { zero };
            }
            return;
        };
        let plane = n == 2;
        let across = if plane { [*ah.add(1) - *w.add(1), *w - *ah] } else { [zero; 2] };
        combined::<S>(n, w, (one, ah), (zero, ah), w);
        let [[square], _] = dots::<S, 1>(n, [w, w], [w]);
        let length = Float::sqrt(square);
        let opposite = length <= R::of(8.0) * R::EPS;
        if opposite {
            let mut k = 0;
            for i in 1..n {
                if Float::abs(*ah.add(i)) < Float::abs(*ah.add(k)) {
                    k = i;
                }
            }
            scaled::<S>(n, -*ah.add(k), ah, w);
            *w.add(k) += one;
            let [[square], _] = dots::<S, 1>(n, [w, w], [w]);
            scaled::<S>(n, one / Float::sqrt(square), w, w);
        } else if plane && square < R::of(2.0) {
            let length = Float::sqrt(across[0] * across[0] + across[1] * across[1]);
            (*w, *w.add(1)) = (across[0] / length, across[1] / length);
        } else {
            scaled::<S>(n, one / length, w, w);
        }
        let [[overlap], _] = dots::<S, 1>(n, [ah, ah], [w]);
        let gradients = if opposite { [zero; 3] } else { [one / length, a, b] };
        *numbers = overlap;
        for (i, number) in gradients.into_iter().enumerate() {
            *numbers.add(1 + i) = number;
        }
    }
});

kernel!(Turn::<R>, |own| {
    let (n, two) = (own.n, R::of(2.0));
    // SAFETY: the contract of `Turn`.
    unsafe {
        let (ah, w, overlap) = (own.frame, own.frame.add(n), *own.frame.add(2 * n));
        let (first, second) = if own.forward { (ah, w) } else { (w, ah) };
        for row in 0..own.rows {
            let x = own.x.add(row * n);
            let [[f], [s]] = dots::<S, 1>(n, [first, second], [x]);
            let f = two * f;
            let s = two * (s - f * overlap);
            combined::<S>(n, x, (-f, first), (-s, second), own.out.add(row * n));
        }
    }
});

kernel!(Pull::<R>, |own| {
    let (n, two) = (own.n, R::of(2.0));
    // SAFETY: the contract of `Pull`.
    unsafe {
        let (ah, w, overlap) = (own.frame, own.frame.add(n), *own.frame.add(2 * n));
        // <g, R^T x> = <x, R g>: the same sums with x and g exchanged
        let (x, g) = if own.forward { (own.x, own.ct) } else { (own.ct, own.x) };
        for row in 0..own.rows {
            let (x, g) = (x.add(row * n), g.add(row * n));
            let [[ax, ag], [wx, wg]] = dots::<S, 2>(n, [ah, w], [x, g]);
            let (alpha, delta) = (two * ax, two * wg);
            let gamma = two * (wx - alpha * overlap);
            let beta = two * (ag - delta * overlap);
            // s = -alpha g + alpha delta w - beta x + alpha beta ah,  t = -gamma g - delta x + alpha delta ah + gamma delta w
            let of_s = [-alpha, -beta, alpha * beta, alpha * delta];
            let of_t = [-gamma, -delta, alpha * delta, gamma * delta];
            for at in (0..if own.sums.is_null() { 0 } else { n }).step_by(S::LANES) {
                let live = n - at;
                let vectors = [
                    S::load_n(g.add(at), live),
                    S::load_n(x.add(at), live),
                    S::load_n(ah.add(at), live),
                    S::load_n(w.add(at), live),
                ];
                let (to_s, to_t) = (own.sums.add(at), own.sums.add(n + at));
                let (mut s, mut t) = (S::load_n(to_s, live), S::load_n(to_t, live));
                for i in 0..4 {
                    s = S::mul_add(S::splat(of_s[i]), vectors[i], s);
                    t = S::mul_add(S::splat(of_t[i]), vectors[i], t);
                }
                S::store_n(to_s, s, live);
                S::store_n(to_t, t, live);
            }
            if !own.x_bar.is_null() {
                let out = own.x_bar.add(row * n);
                if own.forward {
                    combined::<S>(n, g, (-delta, w), (-beta, ah), out);
                } else {
                    combined::<S>(n, x, (-alpha, ah), (-gamma, w), out);
                }
            }
        }
    }
});

kernel!(Vectors::<R>, |own| {
    let (n, zero, one) = (own.n, R::zero(), R::one());
    // SAFETY: the contract of `Vectors`.
    unsafe {
        let (ah, w, numbers) = (own.frame, own.frame.add(n), own.frame.add(2 * n));
        let (inverse, a, b) = (*numbers.add(1), *numbers.add(2), *numbers.add(3));
        let (sum, v_bar) = (own.sums, own.sums.add(n));
        if inverse == zero {
            // degenerate: no gradient, whatever the cotangents
            for bar in [own.start_bar, own.end_bar] {
                for i in 0..if bar.is_null() { 0 } else { n } {
                    *bar.add(i) = zero;
                }
            }
            return;
        }
        if n == 2 {
            let two = R::of(2.0);
            // x.Ju
            let turned = |u: [R; 2], x: *const R| u[0] * *x.add(1) - u[1] * *x;
            let (ah, w, overlap) = ([*ah, *ah.add(1)], [*w, *w.add(1)], *numbers);
            let bh = [two * overlap * w[0] - ah[0], two * overlap * w[1] - ah[1]];
            let tau = turned(w, v_bar) / two;
            for (bar, u, f) in [(own.start_bar, ah, a * (turned(ah, sum) + tau)), (own.end_bar, bh, b * tau)]
            {
                if !bar.is_null() {
                    (*bar, *bar.add(1)) = (-f * u[1], f * u[0]);
                }
            }
            return;
        }
        scaled::<S>(n, inverse, v_bar, v_bar);
        if !own.start_bar.is_null() {
            combined::<S>(n, sum, (one, v_bar), (zero, ah), sum);
            let [[along], _] = dots::<S, 1>(n, [ah, ah], [sum]);
            combined::<S>(n, sum, (-along, ah), (zero, ah), sum);
            scaled::<S>(n, a, sum, own.start_bar);
        }
        if !own.end_bar.is_null() {
            // bh = ||v|| w - ah
            let [[with_ah], [with_w]] = dots::<S, 1>(n, [ah, w], [v_bar]);
            let length = one / inverse;
            let along = length * with_w - with_ah;
            combined::<S>(n, v_bar, (-along * length, w), (along, ah), v_bar);
            scaled::<S>(n, b, v_bar, own.end_bar);
        }
    }
});
