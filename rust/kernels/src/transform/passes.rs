//! The transform of a group of rows, a row per lane.

use super::plan::{PRIME, Pass, Plan};
use crate::dispatch::Kernel;
use crate::scalar::Real;
use crate::simd::Simd;

/// x -> F x, or F^-1 x, without the factor n^-1/2; the result is in x or in `other`, and is returned.
///
/// # Safety
/// Both have room for the elements of the plan, apart from each other.
pub(crate) struct Transform<'a, R> {
    pub plan: &'a Plan<R>,
    pub x: *mut R,
    pub other: *mut R,
    /// F^-1 x is F of x with real and imaginary parts exchanged, exchanged again.
    pub inverse: bool,
}

impl<R: Real> Kernel<R, *mut R> for Transform<'_, R> {
    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) -> *mut R {
        let Transform { plan, x, other, inverse } = *self;
        // SAFETY: the contract above.
        unsafe {
            if plan.m == plan.n {
                return S::outlined(&Passes { plan, x, other, inverse });
            }
            multiplied::<S>(&plan.chirp, x, inverse);
            for at in (plan.n * 2 * S::LANES..plan.m * 2 * S::LANES).step_by(S::LANES) {
                S::store(x.add(at), S::zero());
            }
            let y = S::outlined(&Passes { plan, x, other, inverse });
            multiplied::<S>(&plan.spectrum, y, inverse);
            let rest = if y == x { other } else { x };
            let z = S::outlined(&Passes { plan, x: y, other: rest, inverse: !inverse });
            multiplied::<S>(&plan.chirp, z, inverse);
            z
        }
    }
}

/// The offsets of the parts of an element.
#[inline(always)]
fn planes<S: Simd>(inverse: bool) -> (usize, usize) {
    if inverse { (S::LANES, 0) } else { (0, S::LANES) }
}

/// x times (c + i d).
#[inline(always)]
pub(super) unsafe fn times<S: Simd>(re: S::V, im: S::V, c: S::R, d: S::R) -> (S::V, S::V) {
    // SAFETY: arithmetic only; the caller has the instruction set.
    unsafe {
        let (c, d) = (S::splat(c), S::splat(d));
        (S::neg_mul_add(im, d, S::mul(re, c)), S::mul_add(im, c, S::mul(re, d)))
    }
}

/// x_j <- x_j times the j-th pair.
#[inline(always)]
unsafe fn multiplied<S: Simd>(by: &[S::R], x: *mut S::R, inverse: bool) {
    let (r, i) = planes::<S>(inverse);
    for (j, pair) in by.chunks_exact(2).enumerate() {
        // SAFETY: the caller has this many elements.
        unsafe {
            let at = x.add(j * 2 * S::LANES);
            let (re, im) = times::<S>(S::load(at.add(r)), S::load(at.add(i)), pair[0], pair[1]);
            S::store(at.add(r), re);
            S::store(at.add(i), im);
        }
    }
}

/// All passes of a plan.
struct Passes<'a, R> {
    plan: &'a Plan<R>,
    x: *mut R,
    other: *mut R,
    inverse: bool,
}

impl<R: Real> Kernel<R, *mut R> for Passes<'_, R> {
    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) -> *mut R {
        let (mut x, mut y) = (self.x, self.other);
        let planes = planes::<S>(self.inverse);
        for pass in &self.plan.passes {
            let numbers = self.plan.numbers.as_ptr();
            // SAFETY: the contract of `Transform`; the plan holds the numbers of its passes.
            unsafe {
                match pass.radix {
                    2 => even::<S, 2>(pass, numbers, x, y, planes),
                    4 => even::<S, 4>(pass, numbers, x, y, planes),
                    8 => even::<S, 8>(pass, numbers, x, y, planes),
                    _ => odd::<S>(pass, numbers, x, y, planes),
                }
            }
            (x, y) = (y, x);
        }
        x
    }
}

/// A pass of radix 2, 4 or 8.
#[inline(always)]
unsafe fn even<S: Simd, const N: usize>(
    pass: &Pass,
    numbers: *const S::R,
    x: *const S::R,
    y: *mut S::R,
    (r, i): (usize, usize),
) {
    let wide = 2 * S::LANES;
    let (apart, further) = (wide * pass.stride * pass.count, wide * pass.stride);
    for p in 0..pass.count {
        for q in 0..pass.stride {
            // SAFETY: both arrays have radix x count x stride elements, and the twiddles count x (radix - 1) pairs.
            unsafe {
                let w = numbers.add(pass.twiddles + 2 * p * (N - 1));
                let from = x.add(wide * (q + pass.stride * p));
                let to = y.add(wide * (q + pass.stride * N * p));
                let (mut re, mut im) = ([S::zero(); N], [S::zero(); N]);
                for j in 0..N {
                    re[j] = S::load(from.add(j * apart + r));
                    im[j] = S::load(from.add(j * apart + i));
                }
                match N {
                    2 => pair::<S>(&mut re, &mut im, 0, 1),
                    4 => four::<S>(&mut re, &mut im, [0, 1, 2, 3]),
                    _ => eight::<S>(&mut re, &mut im),
                }
                S::store(to.add(r), re[0]);
                S::store(to.add(i), im[0]);
                for k in 1..N {
                    let (mut a, mut b) = (re[k], im[k]);
                    if p > 0 {
                        (a, b) = times::<S>(a, b, *w.add(2 * k - 2), *w.add(2 * k - 1));
                    }
                    S::store(to.add(k * further + r), a);
                    S::store(to.add(k * further + i), b);
                }
            }
        }
    }
}

/// (a, b) <- (a + b, a - b)
#[inline(always)]
unsafe fn pair<S: Simd>(re: &mut [S::V], im: &mut [S::V], a: usize, b: usize) {
    // SAFETY: arithmetic only; the caller has the instruction set.
    unsafe {
        (re[a], re[b]) = (S::add(re[a], re[b]), S::sub(re[a], re[b]));
        (im[a], im[b]) = (S::add(im[a], im[b]), S::sub(im[a], im[b]));
    }
}

/// The transform of four elements, in place and in order.
#[inline(always)]
unsafe fn four<S: Simd>(re: &mut [S::V], im: &mut [S::V], [a, b, c, d]: [usize; 4]) {
    // SAFETY: arithmetic only; the caller has the instruction set.
    unsafe {
        pair::<S>(re, im, a, c);
        pair::<S>(re, im, b, d);
        // b + d is in b, b - d in d, times -i
        (re[d], im[d]) = (im[d], S::sub(S::zero(), re[d]));
        pair::<S>(re, im, a, b);
        pair::<S>(re, im, c, d);
        // now b holds element 2, c element 1
        (re[b], re[c]) = (re[c], re[b]);
        (im[b], im[c]) = (im[c], im[b]);
    }
}

/// The transform of eight elements, in place and in order.
#[inline(always)]
unsafe fn eight<S: Simd>(re: &mut [S::V], im: &mut [S::V]) {
    // SAFETY: arithmetic only; the caller has the instruction set.
    unsafe {
        for j in 0..4 {
            pair::<S>(re, im, j, j + 4);
        }
        let half = S::splat(S::R::of(std::f64::consts::FRAC_1_SQRT_2));
        let (x, y) = (re[5], im[5]);
        (re[5], im[5]) = (S::mul(S::add(x, y), half), S::mul(S::sub(y, x), half));
        (re[6], im[6]) = (im[6], S::sub(S::zero(), re[6]));
        let (x, y) = (re[7], im[7]);
        let minus = S::sub(S::zero(), half);
        (re[7], im[7]) = (S::mul(S::sub(y, x), half), S::mul(S::add(x, y), minus));
        four::<S>(re, im, [0, 1, 2, 3]);
        four::<S>(re, im, [4, 5, 6, 7]);
        let (a, b): ([S::V; 8], [S::V; 8]) = (
            [re[0], re[4], re[1], re[5], re[2], re[6], re[3], re[7]],
            [im[0], im[4], im[1], im[5], im[2], im[6], im[3], im[7]],
        );
        re[..8].copy_from_slice(&a);
        im[..8].copy_from_slice(&b);
    }
}

/// A pass of an odd radix: with s_j = x_j + x_{r-j}, d_j = x_j - x_{r-j}
///
/// ```text
/// X_k, X_{r-k} = x_0 + sum_j s_j cos(2 pi j k / r) -+ i sum_j d_j sin(2 pi j k / r),     1 <= j, k <= (r - 1) / 2.
/// ```
#[inline(always)]
unsafe fn odd<S: Simd>(
    pass: &Pass,
    numbers: *const S::R,
    x: *const S::R,
    y: *mut S::R,
    (r, i): (usize, usize),
) {
    const HALF: usize = PRIME / 2 + 1;
    let radix = pass.radix;
    let wide = 2 * S::LANES;
    let (apart, further, half) = (wide * pass.stride * pass.count, wide * pass.stride, radix / 2);
    for p in 0..pass.count {
        for q in 0..pass.stride {
            // SAFETY: both arrays have radix x count x stride elements, the twiddles count x (radix - 1) pairs, the roots
            // radix pairs.
            unsafe {
                let (w, roots) = (numbers.add(pass.twiddles + 2 * p * (radix - 1)), numbers.add(pass.roots));
                let from = x.add(wide * (q + pass.stride * p));
                let to = y.add(wide * (q + pass.stride * radix * p));
                let (mut sums, mut differences) = ([[S::zero(); 2]; HALF], [[S::zero(); 2]; HALF]);
                sums[0] = [S::load(from.add(r)), S::load(from.add(i))];
                let mut all = sums[0];
                for j in 1..=half {
                    let (a, b) = (from.add(j * apart), from.add((radix - j) * apart));
                    for (part, at) in [r, i].into_iter().enumerate() {
                        let (a, b) = (S::load(a.add(at)), S::load(b.add(at)));
                        sums[j][part] = S::add(a, b);
                        differences[j][part] = S::sub(a, b);
                        all[part] = S::add(all[part], sums[j][part]);
                    }
                }
                S::store(to.add(r), all[0]);
                S::store(to.add(i), all[1]);
                for k in 1..=half {
                    let ([mut a, mut b], mut c, mut d) = (sums[0], S::zero(), S::zero());
                    let mut turn = 0;
                    for j in 1..=half {
                        turn += k;
                        turn -= if turn >= radix { radix } else { 0 };
                        let (cos, sin) = (S::splat(*roots.add(2 * turn)), S::splat(*roots.add(2 * turn + 1)));
                        a = S::mul_add(sums[j][0], cos, a);
                        b = S::mul_add(sums[j][1], cos, b);
                        c = S::mul_add(differences[j][0], sin, c);
                        d = S::mul_add(differences[j][1], sin, d);
                    }
                    // -i (c + i d) = d - i c
                    let found = [(k, S::add(a, d), S::sub(b, c)), (radix - k, S::sub(a, d), S::add(b, c))];
                    for (k, re, im) in found {
                        let (re, im) = times::<S>(re, im, *w.add(2 * k - 2), *w.add(2 * k - 1));
                        S::store(to.add(k * further + r), re);
                        S::store(to.add(k * further + i), im);
                    }
                }
            }
        }
    }
}
