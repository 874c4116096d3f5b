//! A layer whose partners lie in the same vector.

use super::{ADJOINT, FORWARD, Layer, Places, UNDO, add_to, times};
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;

/// Lane permutations; lane l is part l % PARTS of element l / PARTS.
pub(super) struct Lanes<S: Simd> {
    /// p of the pairs.
    distance: usize,
    /// The partner of each lane.
    partner: S::Index,
    /// From one number per pair, in the first lanes, to all lanes of the pair.
    spread: S::Index,
    /// From the first lane of element i of a pair to one number per pair.
    gather: S::Index,
    /// +1 in the lanes of i, -1 in those of j.
    sign: S::V,
    /// 1 and 0.
    first: S::V,
    /// 0 and 1.
    second: S::V,
}

impl<S: Simd> Lanes<S> {
    /// For pairs at a distance that is a power of two.
    #[inline(always)]
    pub(super) unsafe fn new<T: Scalar<Real = S::R>>(p: usize) -> Self {
        let (bits, low) = (p.trailing_zeros(), p - 1);
        let mut ones = [[S::R::of(0.0); 64]; 3];
        for lane in 0..S::LANES {
            let second = (lane / T::PARTS) & p != 0;
            ones[0][lane] = S::R::of(if second { -1.0 } else { 1.0 });
            ones[1 + usize::from(second)][lane] = S::R::of(1.0);
        }
        // SAFETY: the processor supports S, and no vector has more lanes.
        unsafe {
            Lanes {
                distance: p,
                partner: S::index(|lane| lane ^ (p * T::PARTS)),
                spread: S::index(|lane| {
                    ((lane / T::PARTS) >> (bits + 1) << bits) + ((lane / T::PARTS) & low)
                }),
                gather: S::index(|pair| ((pair >> bits << (bits + 1)) + (pair & low)) * T::PARTS),
                sign: S::load(ones[0].as_ptr()),
                first: S::load(ones[1].as_ptr()),
                second: S::load(ones[2].as_ptr()),
            }
        }
    }

    /// Whether they are the permutations for a distance.
    #[inline(always)]
    pub(super) fn fit(&self, distance: usize) -> bool {
        self.distance == distance
    }

    /// The numbers of the pairs in a vector, in all their lanes.
    #[inline(always)]
    unsafe fn numbers(&self, from: *const S::R, pairs: usize) -> S::V {
        // SAFETY: the caller ensures that the numbers exist.
        unsafe { S::permute(S::load_n(from, pairs), self.spread) }
    }
}

/// One layer on all rows.
#[inline(always)]
pub(super) unsafe fn layer<T: Scalar, S: Simd<R = T::Real>, const MODE: u8>(
    q: &Places<T>,
    layer: &Layer,
    lanes: &Lanes<S>,
) {
    let (table, pitch, parts) = (&q.of.table, q.of.pitch * T::PARTS, T::PARTS);
    // SAFETY: the contract of `Pass` or `Undo`; the last vector is cut to the pairs that exist.
    unsafe {
        for col in (0..2 * layer.pairs * parts).step_by(S::LANES) {
            let live = 2 * layer.pairs * parts - col;
            let (pair, pairs) = (layer.first + col / (2 * parts), live.min(S::LANES) / (2 * parts));
            let s = S::mul(lanes.numbers(table.sin.add(pair), pairs), lanes.sign);
            let c = lanes.numbers(table.cos.add(pair), pairs);
            let (mut re, mut im) = (s, s);
            if T::PARTS == 2 {
                // e on element i, 1 on j
                re = S::mul_add(lanes.numbers(table.re.add(pair), pairs), lanes.first, lanes.second);
                let turn = if MODE == FORWARD { 1.0 } else { -1.0 };
                let turn = S::mul(S::alternate(S::R::of(turn), S::R::of(-turn)), lanes.first);
                im = S::mul(lanes.numbers(table.im.add(pair), pairs), turn);
            }
            let (mut theta, mut phi) = (S::zero(), S::zero());
            let at = layer.start * parts + col;
            let (mut y, mut g) =
                (q.of.y.cast::<S::R>().wrapping_add(at), q.g.cast::<S::R>().wrapping_add(at));
            for _ in 0..q.of.rows {
                let mut x = S::load_n(y, live);
                if MODE == FORWARD && T::PARTS == 2 {
                    x = times::<S>(x, re, im);
                }
                let turned = S::permute(x, lanes.partner);
                let mut out = S::mul_add(s, x, S::mul(c, turned));
                if MODE == UNDO {
                    let bar = S::load_n(g, live);
                    theta = S::mul_add(bar, turned, theta);
                    let mut back = S::mul_add(s, bar, S::mul(c, S::permute(bar, lanes.partner)));
                    if T::PARTS == 2 {
                        phi = S::mul_add(back, S::swap_pairs(out), phi);
                        back = times::<S>(back, re, im);
                    }
                    S::store_n(g, back, live);
                    g = g.wrapping_add(pitch);
                }
                if (MODE == UNDO || MODE == ADJOINT) && T::PARTS == 2 {
                    out = times::<S>(out, re, im);
                }
                S::store_n(y, out, live);
                y = y.wrapping_add(pitch);
            }
            if MODE == UNDO {
                let mut sum = S::sub(theta, S::permute(theta, lanes.partner));
                if T::PARTS == 2 {
                    sum = S::add(sum, S::swap_pairs(sum));
                    let own = S::sub(phi, S::swap_pairs(phi));
                    add_to::<S>(q.phi_bar.add(pair), S::permute(own, lanes.gather), pairs);
                }
                add_to::<S>(q.theta_bar.add(pair), S::permute(sum, lanes.gather), pairs);
            }
        }
    }
}
