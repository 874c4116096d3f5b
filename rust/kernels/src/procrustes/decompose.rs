//! A = U S V^H of a group: rotations of pairs of columns, then the reflections whose product is U.

use super::group::{Group, MOST};
use crate::lanes::{Element, conj, conj_mul_add, load, mul, scale, store};
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::{Float, One, Zero};

/// Sweeps over all pairs; some six are needed.
const SWEEPS: usize = 24;

impl<S: Simd, const P: usize> Group<S, P> {
    /// B becomes the reflections, and V, S and D are written.
    ///
    /// # Safety
    /// B is A, scaled; the processor supports S.
    #[inline(always)]
    pub(super) unsafe fn decompose(&self) {
        // SAFETY: all elements exist.
        unsafe {
            for i in 0..self.n {
                for j in 0..self.n {
                    let mut x = [S::zero(); P];
                    x[0] = S::splat(if i == j { S::R::one() } else { S::R::zero() });
                    store::<S, P>(self.v.at(i, j), x);
                }
            }
            for _ in 0..SWEEPS {
                let mut turned = S::zero();
                for p in 0..self.n {
                    for q in p + 1..self.n {
                        turned = S::add(turned, self.rotate(p, q));
                    }
                }
                let mut any = [S::R::zero(); MOST];
                S::store(any.as_mut_ptr(), turned);
                if any.iter().all(|&any| any == S::R::zero()) {
                    break;
                }
            }
            self.factor();
        }
    }

    /// Rotates columns p and q in the lanes where they are not orthogonal, or not in descending order: 1 there, else 0.
    #[inline(always)]
    unsafe fn rotate(&self, p: usize, q: usize) -> S::V {
        // SAFETY: all elements exist.
        unsafe {
            let (zero, one) = (S::zero(), S::splat(S::R::one()));
            let (mut alpha, mut beta, mut gamma) = (zero, zero, [zero; P]);
            for i in 0..self.m {
                let (x, y) = (load::<S, P>(self.b.at(i, p)), load::<S, P>(self.b.at(i, q)));
                for part in 0..P {
                    alpha = S::mul_add(x[part], x[part], alpha);
                    beta = S::mul_add(y[part], y[part], beta);
                }
                gamma = conj_mul_add::<S, P>(x, y, gamma);
            }
            let size2 = square::<S, P>(gamma);
            let limit = S::R::EPS * S::R::of((self.m as f64).sqrt().max(2.0));
            // a |gamma|^2 without its accuracy has no phase either: columns that are both zero to rounding stay as they are
            let least = S::splat(S::R::min_positive_value() / S::R::EPS);
            let bound = S::mul(S::mul(alpha, S::splat(limit * limit)), beta);
            let bound = S::select_gt(least, bound, least, bound);
            let turns = S::select_gt(size2, bound, one, zero);
            // of real columns the sign of gamma takes the place of its phase
            let size = if P == 1 { gamma[0] } else { S::sqrt(size2) };
            let zeta = S::div(S::sub(beta, alpha), S::add(size, size));
            let root = S::sqrt(S::mul_add(zeta, zeta, one));
            let t = S::copysign(S::div(one, S::add(S::abs(zeta), root)), zeta);
            let t = S::select_gt(size2, bound, t, zero);
            let inner = S::div(one, S::sqrt(S::mul_add(t, t, one)));
            let outer = S::mul(t, inner);
            // columns of norms that are equal to rounding stay where they are
            let ahead = S::mul(alpha, S::splat(S::R::one() + S::R::of(8.0) * limit));
            let c = S::select_gt(beta, ahead, outer, inner);
            let s = S::select_gt(beta, ahead, S::sub(zero, inner), outer);
            let mut phase = [zero; P];
            phase[0] = one;
            if P == 2 {
                for part in 0..P {
                    phase[part] = S::select_gt(size2, bound, S::div(gamma[part], size), phase[part]);
                }
                phase = conj::<S, P>(phase);
            }
            for (matrix, rows) in [(self.b, self.m), (self.v, self.n)] {
                for i in 0..rows {
                    let (at, other) = (matrix.at(i, p), matrix.at(i, q));
                    let (mut x, mut y) = (load::<S, P>(at), load::<S, P>(other));
                    if P == 2 {
                        y = mul::<S, P>(phase, y);
                    }
                    for part in 0..P {
                        let (first, second) = (x[part], y[part]);
                        x[part] = S::neg_mul_add(s, second, S::mul(c, first));
                        y[part] = S::mul_add(s, first, S::mul(c, second));
                    }
                    store::<S, P>(at, x);
                    store::<S, P>(other, y);
                }
            }
            S::select_gt(beta, ahead, one, turns)
        }
    }

    /// B = Q R by reflections, and the phases of the diagonal of R. The determinant of U is the product of the phases of
    /// the diagonal of B, since those of V and of the rotations are 1.
    #[inline(always)]
    unsafe fn factor(&self) {
        // SAFETY: all elements exist.
        unsafe {
            let (zero, one) = (S::zero(), S::splat(S::R::one()));
            // squares of anything smaller have lost their accuracy
            let least = S::splat(S::R::min_positive_value() / (S::R::EPS * S::R::EPS));
            let mut unit = [zero; P];
            unit[0] = one;
            let mut sign = one;
            for j in 0..self.n {
                let (x, mut tail) = (load::<S, P>(self.b.at(j, j)), zero);
                for i in j + 1..self.m {
                    tail = S::add(tail, square::<S, P>(load::<S, P>(self.b.at(i, j))));
                }
                let own2 = square::<S, P>(x);
                let norm2 = S::add(own2, tail);
                let (size, norm) = (S::sqrt(own2), S::sqrt(norm2));
                let mut phase = unit;
                for part in 0..P {
                    phase[part] = S::select_gt(own2, least, S::div(x[part], size), phase[part]);
                }
                sign = S::mul(sign, phase[0]);
                let last = j + 1 == self.m;
                let reflects =
                    |yes: S::V, no: S::V| if last { no } else { S::select_gt(norm2, least, yes, no) };
                let factor = S::div(one, S::mul(norm, S::add(norm, size)));
                let turned = scale::<S, P>(phase, S::add(size, norm));
                let mut diagonal = scale::<S, P>(phase, S::splat(-S::R::one()));
                let mut start = x;
                for part in 0..P {
                    diagonal[part] = reflects(diagonal[part], phase[part]);
                    start[part] = reflects(turned[part], x[part]);
                }
                // NaN of a column that is
                diagonal[0] = S::mul_add(norm2, zero, diagonal[0]);
                if self.special() && j + 1 == self.n {
                    diagonal[0] = S::mul(diagonal[0], sign);
                }
                store::<S, P>(self.phases.add(j * P * S::LANES), diagonal);
                store::<S, P>(self.b.at(j, j), start);
                S::store(self.factors.add(j * P * S::LANES), reflects(factor, zero));
                let value = if self.special() && j + 1 == self.n { S::mul(norm, sign) } else { norm };
                S::store(self.values.add(j * P * S::LANES), value);
                for k in j + 1..self.n {
                    self.reflection(j, self.b, k);
                }
            }
        }
    }
}

/// |x|^2
#[inline(always)]
unsafe fn square<S: Simd, const P: usize>(x: Element<S, P>) -> S::V {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        let mut sum = S::mul(x[0], x[0]);
        if P == 2 {
            sum = S::mul_add(x[P - 1], x[P - 1], sum);
        }
        sum
    }
}
