//! Sines and cosines of many angles at once.
//!
//! x = k pi/2 + r with |r| <= pi/4, pi/2 in parts whose multiples by k are exact; sin r and cos r are the minimax polynomials of
//! fdlibm; k mod 4 says which of the two is the sine, and the signs. Angles beyond the range of k are left to the standard library.

use crate::dispatch::{compiled, kernel};
use crate::lanes::MOST;
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::{Float, Zero};

compiled! {
    /// Sines and cosines, compiled for each real type.
    AngleKernels: Real for f32, f64; {
        /// [`Angles`]
        fn sines_cosines(Angles);
    }
}

/// `sin[i]` and `cos[i]` of `x[i]`.
///
/// # Safety
/// The arrays have `count` numbers each and do not overlap.
pub struct Angles<R> {
    /// The angles.
    pub x: *const R,
    /// Their sines.
    pub sin: *mut R,
    /// Their cosines.
    pub cos: *mut R,
    /// Number of angles.
    pub count: usize,
}

/// sin r = r + r^3 (S_0 + S_1 r^2 + ...)
const SIN: [f64; 6] = [
    -1.666_666_666_666_663_2e-1,
    8.333_333_333_322_49e-3,
    -1.984_126_982_985_795e-4,
    2.755_731_370_707_007e-6,
    -2.505_076_025_340_686_3e-8,
    1.589_690_995_211_55e-10,
];
/// cos r = 1 - r^2 / 2 + r^4 (C_0 + C_1 r^2 + ...)
const COS: [f64; 6] = [
    4.166_666_666_666_66e-2,
    -1.388_888_888_887_411e-3,
    2.480_158_728_947_673e-5,
    -2.755_731_435_139_066_3e-7,
    2.087_572_321_298_175e-9,
    -1.135_964_755_778_819_5e-11,
];

/// P(z) of these coefficients, the last `skip` left out.
#[inline(always)]
unsafe fn polynomial<S: Simd>(z: S::V, coefficients: &[f64; 6], skip: usize) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let mut sum = S::splat(S::R::of(coefficients[5 - skip]));
        for i in (0..5 - skip).rev() {
            sum = S::mul_add(sum, z, S::splat(S::R::of(coefficients[i])));
        }
        sum
    }
}

kernel!(Angles::<R>, |own| {
    for at in (0..own.count).step_by(S::LANES) {
        let live = own.count - at;
        // SAFETY: the contract of `Angles`; arithmetic of an instruction set that exists.
        unsafe {
            let (sin, cos) = sine_cosine::<S>(S::load_n(own.x.add(at), live));
            S::store_n(own.sin.add(at), sin, live);
            S::store_n(own.cos.add(at), cos, live);
        }
    }
});

/// sin x and cos x of each lane.
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(crate) unsafe fn sine_cosine<S: Simd>(x: S::V) -> (S::V, S::V) {
    let double = size_of::<S::R>() == 8;
    // The parts of pi/2, all but the last so short that their products with k are exact, the largest angle, and how many
    // terms lie below eps.
    let (half, largest, skip) = if double {
        (
            [
                1.570_796_326_734_125_6,
                6.077_100_506_303_966e-11,
                2.022_266_248_711_166_5e-21,
                8.478_427_660_368_9e-32,
            ],
            1e5,
            0,
        )
    } else {
        ([1.5703125, 4.837_512_969_970_703e-4, 7.549_789_948_768_648e-8, 0.0], 4e3, 2)
    };
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let c = |x: f64| S::splat(S::R::of(x));
        let k = S::round(S::mul(x, c(std::f64::consts::FRAC_2_PI)));
        let mut r = x;
        for part in half {
            r = S::neg_mul_add(k, c(part), r);
        }
        let z = S::mul(r, r);
        let sin = S::mul_add(S::mul(z, r), polynomial::<S>(z, &SIN, skip), r);
        let tail = S::mul(S::mul(z, z), polynomial::<S>(z, &COS, skip));
        let cos = S::add(S::neg_mul_add(c(0.5), z, c(1.0)), tail);
        // k mod 4, as -2, ..., 2
        let quarter = S::neg_mul_add(c(4.0), S::round(S::mul(k, c(0.25))), k);
        let odd = |yes, no| S::select_eq(S::abs(quarter), c(1.0), yes, no);
        let (a, b) = (odd(cos, sin), odd(sin, cos));
        let one = c(1.0);
        let back = S::select_gt(S::abs(quarter), c(1.5), c(-1.0), one);
        let down = S::select_eq(quarter, c(-1.0), c(-1.0), back);
        let left = S::select_eq(quarter, one, c(-1.0), back);
        let (sin, cos) = (S::mul(a, down), S::mul(b, left));
        let mut beyond = [S::R::zero(); MOST];
        S::store(beyond.as_mut_ptr(), S::select_gt(S::abs(x), c(largest), one, S::zero()));
        if beyond.iter().fold(S::R::zero(), |sum, &x| sum + x).is_zero() {
            return (sin, cos);
        }
        let [mut all, mut sines, mut cosines] = [[S::R::zero(); MOST]; 3];
        S::store(all.as_mut_ptr(), x);
        S::store(sines.as_mut_ptr(), sin);
        S::store(cosines.as_mut_ptr(), cos);
        for lane in 0..S::LANES {
            if !beyond[lane].is_zero() {
                (sines[lane], cosines[lane]) = (all[lane].sin(), all[lane].cos());
            }
        }
        (S::load(sines.as_ptr()), S::load(cosines.as_ptr()))
    }
}
