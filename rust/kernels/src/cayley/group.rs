//! One matrix per lane: the formulas of a single matrix on a whole group, padded to a multiple of 4 with the identity.

use super::Targets;
use super::check::{Limits, probe, probe_norm2};
use super::triangle;
use crate::dispatch::kernel;
pub use crate::lanes::MOST;
use crate::lanes::{
    Element, Left, add, conj, from_lanes, inverse_lanes, load, mul, product_lanes, scale, store, sub,
    to_lanes,
};
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;
use num_traits::{One, Zero};

/// Real numbers of scratch for one group, forward or backward.
pub fn scratch<T: Scalar>(n: usize) -> usize {
    let pad = n.div_ceil(4) * 4;
    // matrices, packed triangle, D, diagonal
    MOST * T::PARTS * (3 * pad * pitch(pad) + triangle::len(n) + 2 * n)
}

/// Row stride: never a multiple of a quarter of the first-level cache's ways, at which columns would evict each other.
#[inline(always)]
fn pitch(pad: usize) -> usize {
    if pad < 16 { pad } else { pad + 4 }
}

/// Writes W of `count` consecutive matrices, at most one per lane; bit b of the result is set if matrix b fails the
/// check.
///
/// # Safety
/// The arrays hold `count` matrices, `scratch` the numbers of [`scratch`].
pub struct Forward<T: Scalar> {
    /// The strict upper triangles.
    pub upper: *const T,
    /// Imaginary parts of the diagonals.
    pub diagonal: Option<*const T::Real>,
    /// The factors d, n per matrix; None for D = I.
    pub last: Option<*const T>,
    /// n
    pub n: usize,
    /// Number of matrices.
    pub count: usize,
    /// W
    pub out: *mut T,
    /// Scratch.
    pub scratch: *mut T::Real,
    /// Bounds that each W must satisfy.
    pub limits: Limits,
}

kernel!(Forward::<T>, |own| -> u32 {
    // SAFETY: the contract of `Forward`; for the smallest n, known at compile time, matrices stay in registers.
    unsafe {
        match T::PARTS {
            1 => match own.n {
                4 => own.body::<S, 1>(4),
                8 => own.body::<S, 1>(8),
                n => own.body::<S, 1>(n),
            },
            _ => own.body::<S, 2>(own.n),
        }
    }
});

impl<T: Scalar> Forward<T> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = T::Real>, const P: usize>(&self, n: usize) -> u32 {
        let Forward { upper, diagonal: skew, last, count, out, scratch, limits, .. } = *self;
        let (pad, len, v) = (n.div_ceil(4) * 4, triangle::len(n), P * S::LANES);
        let ld = pitch(pad);
        // SAFETY: `scratch` has room for all parts.
        unsafe {
            let m = scratch;
            let packed = m.add(pad * ld * v);
            let factors = packed.add(len * v);
            let diagonal = factors.add(n * v);
            let at = |i: usize, j: usize| m.wrapping_add((i * ld + j) * v);

            to_lanes::<S>(upper.cast(), len * P, len * P, count, packed, (1, 1));
            if let Some(d) = skew {
                to_lanes::<S>(d, n, n, count, diagonal, (1, 1));
            }
            if let Some(d) = last {
                to_lanes::<S>(d.cast(), n * P, n * P, count, factors, (1, 1));
            }

            // I + A
            let (one, zero) = (S::splat(S::R::one()), S::zero());
            let mut size = zero;
            let mut e = packed;
            for i in 0..pad {
                let mut x = [zero; P];
                x[0] = one;
                if P == 2 && i < n && skew.is_some() {
                    x[1] = S::load(diagonal.add(i * S::LANES));
                    size = S::mul_add(x[1], x[1], size);
                }
                store::<S, P>(at(i, i), x);
                for j in i + 1..pad {
                    let mut x = [zero; P];
                    if j < n {
                        x = load::<S, P>(e);
                        e = e.add(v);
                    }
                    store::<S, P>(at(i, j), x);
                    for part in 0..P {
                        size = S::mul_add(x[part], x[part], size);
                    }
                    x[0] = S::sub(zero, x[0]);
                    store::<S, P>(at(j, i), x);
                }
            }
            inverse_lanes::<S, P>(m, pad, ld);

            // W = (2 S - I) D, compacted to rows of n
            let mut z = [zero; 32];
            for j in 0..n {
                z[j] = S::splat(probe(j));
            }
            let (mut worst, mut probes) = (zero, zero);
            let mut to = m;
            for i in 0..n {
                let mut norm = S::sub(zero, one);
                let mut along = [zero; P];
                for j in 0..n {
                    let mut x = load::<S, P>(at(i, j));
                    x = add::<S, P>(x, x);
                    if i == j {
                        x[0] = S::sub(x[0], one);
                    }
                    for part in 0..P {
                        norm = S::mul_add(x[part], x[part], norm);
                        along[part] = S::mul_add(x[part], z[j], along[part]);
                    }
                    if last.is_some() {
                        x = mul::<S, P>(x, load::<S, P>(factors.add(j * v)));
                    }
                    store::<S, P>(to, x);
                    to = to.add(v);
                }
                let norm = S::abs(norm);
                worst = S::select_gt(worst, norm, worst, norm);
                for part in 0..P {
                    probes = S::mul_add(along[part], along[part], probes);
                }
            }
            from_lanes::<S>(m, n * n * P, out.cast(), n * n * P, count);

            // the same rule for every lane, whether or not another matrix of the group fails
            let limit = S::splat(S::R::of(limits.deviation));
            let probes = S::mul_add(probes, S::splat(S::R::of(1.0 / probe_norm2(n))), S::splat(-S::R::one()));
            let mut bad = S::select_gt(limit, worst, zero, one);
            bad = S::select_gt(limit, S::abs(probes), bad, one);
            bad = S::select_gt(S::splat(S::R::of(limits.size)), size, bad, one);
            let mut verdict = [S::R::zero(); MOST];
            S::store(verdict.as_mut_ptr(), bad);
            if verdict.iter().fold(S::R::zero(), |sum, &x| sum + x).is_zero() {
                return 0;
            }
            let mut sizes = [S::R::zero(); MOST];
            S::store(sizes.as_mut_ptr(), size);
            let mut failed = 0;
            for lane in 0..count {
                // NaN cannot be repaired
                let fails = !verdict[lane].is_zero() && !sizes[lane].f64().is_nan();
                failed |= u32::from(fails) << lane;
            }
            failed
        }
    }
}

/// The gradients of `count` consecutive matrices from their W and W_bar.
///
/// # Safety
/// The arrays and the targets hold `count` matrices, `scratch` the numbers of [`scratch`].
pub struct Backward<T: Scalar> {
    /// W
    pub w: *const T,
    /// W_bar
    pub ct: *const T,
    /// The factors d, n per matrix; None for D = I.
    pub last: Option<*const T>,
    /// n
    pub n: usize,
    /// Number of matrices.
    pub count: usize,
    /// Outputs of the gradients.
    pub to: Targets<T>,
    /// Scratch.
    pub scratch: *mut T::Real,
}

kernel!(Backward::<T>, |own| {
    // SAFETY: the arrays hold `count` matrices, `scratch` the numbers of [`scratch`] (contract of `Backward`).
    unsafe {
        match T::PARTS {
            1 => match own.n {
                4 => own.body::<S, 1>(4),
                8 => own.body::<S, 1>(8),
                n => own.body::<S, 1>(n),
            },
            _ => own.body::<S, 2>(own.n),
        }
    }
});

impl<T: Scalar> Backward<T> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = T::Real>, const P: usize>(&self, n: usize) {
        let Backward { w, ct, last, count, to, scratch, .. } = *self;
        let (pad, len, v) = (n.div_ceil(4) * 4, triangle::len(n), P * S::LANES);
        let ld = pitch(pad);
        // SAFETY: `scratch` has room for all parts.
        unsafe {
            let (c, g, y) = (scratch, scratch.add(pad * ld * v), scratch.add(2 * pad * ld * v));
            let packed = scratch.add(3 * pad * ld * v);
            let factors = packed.add(len * v);
            let line = factors.add(n * v);
            let place = |i: usize, j: usize| (i * ld + j) * v;
            let zero = S::zero();
            if n < pad {
                for e in 0..2 * pad * ld {
                    store::<S, P>(c.add(e * v), [zero; P]);
                }
            }
            to_lanes::<S>(w.cast(), n * n * P, n * n * P, count, c, (n * P, ld * P));
            to_lanes::<S>(ct.cast(), n * n * P, n * n * P, count, g, (n * P, ld * P));
            if let Some(d) = last {
                to_lanes::<S>(d.cast(), n * P, n * P, count, factors, (1, 1));
            }
            if let (2, Some(phases)) = (P, to.phases) {
                for j in 0..n {
                    let mut sum = zero;
                    for i in 0..n {
                        let (x, y) = (load::<S, P>(g.add(place(i, j))), load::<S, P>(c.add(place(i, j))));
                        sum = S::neg_mul_add(x[0], y[P - 1], S::mul_add(x[P - 1], y[0], sum));
                    }
                    S::store(line.add(j * S::LANES), sum);
                }
                from_lanes::<S>(line, n, phases, n, count);
            }
            if to.upper.is_none() && to.diagonal.is_none() {
                return;
            }
            let mut one = [zero; P];
            one[0] = S::splat(S::R::one());
            for j in 0..n {
                let d = if last.is_some() { load::<S, P>(factors.add(j * v)) } else { one };
                let p = c.add(place(j, j));
                store::<S, P>(p, add::<S, P>(load::<S, P>(p), d));
            }
            product_lanes::<S, P>(Left::Adjoint, g, c, y, pad, ld);
            product_lanes::<S, P>(Left::Plain, c, y, g, pad, ld);

            let half = S::splat(S::R::of(0.5));
            let d = |j: usize| last.is_some().then(|| factors.wrapping_add(j * v).cast_const());
            if let Some(diagonal) = to.diagonal {
                for j in 0..n {
                    let x = without_last::<S, P>(g.add(place(j, j)), d(j));
                    S::store(line.add(j * S::LANES), S::mul(half, x[P - 1]));
                }
                from_lanes::<S>(line, n, diagonal, n, count);
            }
            if let Some(upper) = to.upper {
                let mut e = packed;
                for i in 0..n {
                    for j in i + 1..n {
                        let x = without_last::<S, P>(g.add(place(i, j)), d(j));
                        let y = conj::<S, P>(without_last::<S, P>(g.add(place(j, i)), d(i)));
                        store::<S, P>(e, scale::<S, P>(sub::<S, P>(x, y), half));
                        e = e.add(v);
                    }
                }
                from_lanes::<S>(packed, len * P, upper.cast(), len * P, count);
            }
        }
    }
}

/// The element at z times conj(d).
// A function, not a closure: closures do not inherit target features.
#[inline(always)]
unsafe fn without_last<S: Simd, const P: usize>(z: *const S::R, d: Option<*const S::R>) -> Element<S, P> {
    // SAFETY: z points to an element, and so does d.
    unsafe {
        let x = load::<S, P>(z);
        match d {
            Some(d) => mul::<S, P>(x, conj::<S, P>(load::<S, P>(d))),
            None => x,
        }
    }
}
