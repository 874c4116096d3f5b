//! A layer whose partners lie in two vectors at a distance of whole vectors.

use super::{ADJOINT, FORWARD, Layer, Places, UNDO, add_to, times};
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;

/// The numbers of the pairs in a vector, in all their lanes.
#[inline(always)]
unsafe fn numbers<T: Scalar, S: Simd<R = T::Real>>(from: *const S::R, spread: S::Index) -> S::V {
    // SAFETY: the caller ensures that the numbers exist.
    unsafe {
        if T::PARTS == 1 { S::load(from) } else { S::permute(S::load_n(from, S::LANES / T::PARTS), spread) }
    }
}

/// One layer on all rows.
#[inline(always)]
pub(super) unsafe fn layer<T: Scalar, S: Simd<R = T::Real>, const MODE: u8>(q: &Places<T>, layer: &Layer) {
    let (table, pitch, parts) = (&q.of.table, q.of.pitch * T::PARTS, T::PARTS);
    let (apart, pairs) = (layer.distance * parts, S::LANES / parts);
    // SAFETY: the contract of `Pass` or `Undo`; `apart` is a multiple of a vector.
    unsafe {
        let (spread, gather) = (S::index(|lane| lane / parts), S::index(|pair| pair * parts));
        for own in (0..layer.pairs).step_by(pairs) {
            let pair = layer.first + own;
            let (s, c) =
                (numbers::<T, S>(table.sin.add(pair), spread), numbers::<T, S>(table.cos.add(pair), spread));
            let (mut re, mut im) = (s, s);
            if T::PARTS == 2 {
                let turn = S::R::of(if MODE == FORWARD { 1.0 } else { -1.0 });
                re = numbers::<T, S>(table.re.add(pair), spread);
                im = S::mul(numbers::<T, S>(table.im.add(pair), spread), S::alternate(turn, -turn));
            }
            let (mut theta, mut phi) = (S::zero(), S::zero());
            let at = (layer.start + own / layer.distance * 2 * layer.distance + own % layer.distance) * parts;
            let (mut y, mut g) =
                (q.of.y.cast::<S::R>().wrapping_add(at), q.g.cast::<S::R>().wrapping_add(at));
            for _ in 0..q.of.rows {
                let (mut i, j) = (S::load(y), S::load(y.add(apart)));
                if MODE == FORWARD && T::PARTS == 2 {
                    i = times::<S>(i, re, im);
                }
                let mut out = S::mul_add(s, i, S::mul(c, j));
                S::store(y.add(apart), S::neg_mul_add(s, j, S::mul(c, i)));
                if MODE == UNDO {
                    let (a, b) = (S::load(g), S::load(g.add(apart)));
                    theta = S::neg_mul_add(b, i, S::mul_add(a, j, theta));
                    let mut back = S::mul_add(s, a, S::mul(c, b));
                    if T::PARTS == 2 {
                        phi = S::mul_add(back, S::swap_pairs(out), phi);
                        back = times::<S>(back, re, im);
                    }
                    S::store(g, back);
                    S::store(g.add(apart), S::neg_mul_add(s, b, S::mul(c, a)));
                    g = g.wrapping_add(pitch);
                }
                if (MODE == UNDO || MODE == ADJOINT) && T::PARTS == 2 {
                    out = times::<S>(out, re, im);
                }
                S::store(y, out);
                y = y.wrapping_add(pitch);
            }
            if MODE == UNDO {
                if T::PARTS == 2 {
                    theta = S::permute(S::add(theta, S::swap_pairs(theta)), gather);
                    let own = S::permute(S::sub(phi, S::swap_pairs(phi)), gather);
                    add_to::<S>(q.phi_bar.add(pair), own, pairs);
                }
                add_to::<S>(q.theta_bar.add(pair), theta, pairs);
            }
        }
    }
}
