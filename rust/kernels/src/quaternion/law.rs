//! From parameters to quaternions, and the gradients back.

use super::vector::{Vector, added, cross, dot, scaled};
use crate::angles::sine_cosine;
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::One;

/// The map from a skew A to a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// (I + A)^{-1} (I - A)
    Cayley,
    /// exp(A)
    Exponential,
}

/// (w, p), of a length between 1 and 2, and what the gradient needs beside it.
#[derive(Clone, Copy)]
pub(super) struct Quaternion<S: Simd> {
    pub(super) w: S::V,
    pub(super) p: Vector<S>,
    /// b = s a, s = 1 unless |a|^2 would overflow. Zero for a Cayley transform.
    b: Vector<S>,
    /// |b|^2
    square: S::V,
    /// p = k b
    k: S::V,
    /// s
    scale: S::V,
}

/// What a cotangent M of a rotation is in terms of p: tr M, the v with <M, [p]> = v . p, and S p, S = (M + M^T) / 2.
#[derive(Clone, Copy)]
pub(super) struct Pulled<S: Simd> {
    pub(super) trace: S::V,
    pub(super) axial: Vector<S>,
    pub(super) symmetric: Vector<S>,
}

/// (cos(t/2) / 2 - sin(t/2) / t) / t^2 as a series in t^2: the terms j / ((2 j + 1)! (-4)^j), j = 1, ..., 8.
const NEAR: [f64; 8] = [
    -1.0 / 24.0,
    1.0 / 960.0,
    -1.0 / 107_520.0,
    1.0 / 23_224_320.0,
    -1.0 / 8_174_960_640.0,
    1.0 / 4_250_979_532_800.0,
    -1.0 / 3_060_705_263_616_000.0,
    1.0 / 2_913_791_410_962_432_000.0,
];

/// The quaternion of the A with A x = a cross x.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn quaternion<S: Simd>(law: Law, a: Vector<S>) -> Quaternion<S> {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let c = |x: f64| S::splat(S::R::of(x));
        let (one, zero) = (c(1.0), S::zero());
        let mut most = zero;
        for i in 0..3 {
            let size = S::abs(a[i]);
            most = S::select_gt(size, most, size, most);
        }
        if law == Law::Cayley {
            // quotients: 1 / m may be too small for a number
            let m = S::select_gt(most, one, most, one);
            let mut p = a;
            for x in &mut p {
                *x = S::div(S::sub(zero, *x), m);
            }
            return Quaternion { w: S::div(one, m), p, b: [zero; 3], square: zero, k: zero, scale: one };
        }
        // powers of two: where to scale, by how much, and where cos(t/2) is 1
        let [far, small, least] = if size_of::<S::R>() == 8 { [500, -520, -200] } else { [60, -66, -80] };
        let far = c(2f64.powi(far));
        let scale = S::select_gt(most, far, c(2f64.powi(small)), one);
        let back = S::select_gt(most, far, c(2f64.powi(-small)), one);
        let b = scaled::<S>(scale, a);
        let square = dot::<S>(b, b);
        let size = S::sqrt(square);
        let half = c(0.5);
        let (sin, w) = sine_cosine::<S>(S::mul(S::mul(half, size), back));
        let k = S::select_gt(square, c(2f64.powi(least)), S::div(sin, size), S::mul(half, scale));
        Quaternion { w, p: scaled::<S>(k, b), b, square, k, scale }
    }
}

impl<S: Simd> Quaternion<S> {
    /// |a| of an exponential.
    ///
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn angle(&self) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { S::div(S::sqrt(self.square), self.scale) }
    }

    /// 2 / (w^2 + |p|^2)
    ///
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn factor(&self) -> S::V {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { S::div(S::splat(S::R::of(2.0)), S::mul_add(self.w, self.w, dot::<S>(self.p, self.p))) }
    }

    /// R x, or R^T x: x + f (w (p x x) + p x (p x x)).
    ///
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn turn(&self, x: Vector<S>, adjoint: bool) -> Vector<S> {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let w = if adjoint { S::sub(S::zero(), self.w) } else { self.w };
            let across = cross::<S>(self.p, x);
            added::<S>(self.factor(), added::<S>(w, across, cross::<S>(self.p, across)), x)
        }
    }

    /// The rows of R.
    ///
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn rows(&self) -> [Vector<S>; 3] {
        let Quaternion { w, p, .. } = *self;
        let mut rows = [p; 3];
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let f = self.factor();
            for i in 0..3 {
                let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                let others = S::mul_add(p[j], p[j], S::mul(p[k], p[k]));
                rows[i][i] = S::neg_mul_add(f, others, S::splat(S::R::one()));
                let (both, turn) = (S::mul(p[i], p[j]), S::mul(w, p[k]));
                rows[i][j] = S::mul(f, S::sub(both, turn));
                rows[j][i] = S::mul(f, S::add(both, turn));
            }
        }
        rows
    }

    /// The gradient of a.
    ///
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn pull(&self, law: Law, m: &Pulled<S>) -> Vector<S> {
        // SAFETY: the caller ensures that the processor supports S.
        unsafe { if law == Law::Cayley { self.pull_cayley(m) } else { self.pull_exponential(m) } }
    }

    /// With g = p / w, what remains of the derivative of R(1, g) / (1 + |g|^2) when equal terms of opposite sign are left out:
    ///
    /// g_bar = 2 w / N^2 (w^3 v + 2 w^2 (S p - p tr M) + w (|p|^2 v - 2 p (p . v)) - 2 p x (p x S p)),   N = w^2 + |p|^2.
    #[inline(always)]
    unsafe fn pull_cayley(&self, m: &Pulled<S>) -> Vector<S> {
        let (Quaternion { w, p, .. }, Pulled { trace, axial, symmetric }) = (*self, *m);
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let two = S::splat(S::R::of(2.0));
            let less = S::sub(S::zero(), two);
            let w2 = S::mul(w, w);
            let p2 = dot::<S>(p, p);
            let mut g = scaled::<S>(S::mul(w, S::add(w2, p2)), axial);
            g = added::<S>(S::mul(two, w2), symmetric, g);
            let along = S::mul_add(w, trace, dot::<S>(p, axial));
            g = added::<S>(S::mul(S::mul(less, w), along), p, g);
            g = added::<S>(less, cross::<S>(p, cross::<S>(p, symmetric)), g);
            let f = self.factor();
            scaled::<S>(S::mul(S::mul(S::splat(S::R::of(-0.5)), w), S::mul(f, f)), g)
        }
    }

    /// By the quaternion: w_bar = 2 (w tr M + p . v), p_bar = 2 (w v - p tr M) + 4 S p, and, c = (w/2 - k) / |a|^2,
    ///
    /// a_bar = k p_bar + a (a . p_bar) c - w_bar p / 2.
    #[inline(always)]
    unsafe fn pull_exponential(&self, m: &Pulled<S>) -> Vector<S> {
        let Quaternion { w, p, b, square, k, scale } = *self;
        let Pulled { trace, axial, symmetric } = *m;
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe {
            let c = |x: f64| S::splat(S::R::of(x));
            let half_w_bar = S::mul_add(w, trace, dot::<S>(p, axial));
            let p_bar = added::<S>(S::mul(c(-2.0), trace), p, scaled::<S>(S::mul(c(2.0), w), axial));
            let p_bar = added::<S>(c(4.0), symmetric, p_bar);
            let own = S::mul(scale, k);
            let mut near = c(NEAR[7]);
            for i in (0..7).rev() {
                near = S::mul_add(near, square, c(NEAR[i]));
            }
            let far = S::div(S::sub(S::mul(c(0.5), w), own), square);
            let by = S::select_gt(c(1.0), square, near, far);
            // a scaled |a| below 1 stems from a large one
            let by = S::select_eq(scale, c(1.0), by, far);
            let a_bar = added::<S>(S::mul(by, dot::<S>(b, p_bar)), b, scaled::<S>(own, p_bar));
            added::<S>(S::sub(S::zero(), half_w_bar), p, a_bar)
        }
    }
}
