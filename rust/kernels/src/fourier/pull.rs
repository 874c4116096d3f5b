//! The gradients of W x.

use super::FourierFactors;
use super::permutation::{permuted, scattered};
use crate::dispatch::{kernel, on_half};
use crate::simd::Simd;
use crate::transform::{
    LANES, Load, Plan, Store, Transform, add_lanes, dot, get, given, inner, less, moved, outer, set, taken,
    turned,
};

/// Adds the gradients of phases and vectors from (x, ct), ct the cotangent of W x, to `sums`, and writes x_bar and W x where
/// they are not null. Sums are theta1 (n), theta2 permuted (n: index `permutation[i]` holds that of i), theta3 (n), then
/// (n pairs each) for R1 and R2, with the vectors w of [`FourierFactors`],
///
/// ```text
/// Re(conj(b) a) w - conj(a) y_bar - conj(b) x,     a = w^H x, b = w^H y_bar, for y = R x.
/// ```
///
/// # Safety
/// That of [`FourierFactors`]; the arrays have `rows` rows; outputs overlap nothing that is read; `scratch` has as much as
/// [`super::scratch`] says.
pub struct Pull<R> {
    /// The operator.
    pub factors: FourierFactors<R>,
    /// x
    pub x: *const R,
    /// The cotangent of W x.
    pub ct: *const R,
    /// Number of rows.
    pub rows: usize,
    /// [`super::sums`] numbers.
    pub sums: *mut R,
    /// The cotangent of x, or null.
    pub x_bar: *mut R,
    /// W x, or null.
    pub y: *mut R,
    /// Scratch.
    pub scratch: *mut R,
}

kernel!(Pull::<R>, |own| {
    let FourierFactors { plan, diagonals: [d1, d2, d3], reflections: [w1, w2], permutation } = own.factors;
    // SAFETY: the contract above.
    unsafe {
        let plan: &Plan<R> = &*plan;
        let n = plan.len();
        let room = |i: usize| own.scratch.wrapping_add(i * plan.room() * 2 * S::LANES);
        let sum = |i: usize| own.sums.wrapping_add(i * n);
        for row in (0..own.rows).step_by(S::LANES) {
            let at = row * 2 * n;
            let rest = Pull {
                x: own.x.add(at),
                ct: own.ct.add(at),
                x_bar: moved(own.x_bar, at),
                y: moved(own.y, at),
                rows: own.rows - row,
                ..*own
            };
            if 2 * rest.rows <= S::LANES && on_half::<S, _>(&rest) {
                return;
            }
            let size = (n, rest.rows.min(S::LANES));
            // forward: f before R1, g before R2
            S::outlined(&Load { x: rest.x, size, diagonal: d1, conj: false, to: room(0) });
            let f = S::outlined(&Transform { plan, x: room(0), other: room(1), inverse: false });
            let spare = if f == room(0) { room(1) } else { room(0) };
            permuted::<S>(f, (w1, dot::<S>(w1, f, n)), permutation, d2, room(2), n);
            let g = S::outlined(&Transform { plan, x: room(2), other: spare, inverse: true });
            let spare = if g == spare { room(2) } else { spare };
            if !rest.y.is_null() {
                S::outlined(&Store { z: g, w: w2, size, diagonal: d3, conj: false, x: rest.y });
            }
            // backward, the cotangents in the other two buffers
            S::outlined(&Load { x: rest.ct, size, diagonal: d3, conj: true, to: spare });
            S::outlined(&Couple { z: spare, x: g, w: w2, n, phases: sum(2), vector: sum(5) });
            let z = S::outlined(&Transform { plan, x: spare, other: room(3), inverse: false });
            let y = if z == spare { room(3) } else { spare };
            scattered::<S>(z, permutation, d2, y, n);
            S::outlined(&Couple { z: y, x: f, w: w1, n, phases: sum(1), vector: sum(3) });
            let z = S::outlined(&Transform { plan, x: y, other: z, inverse: true });
            finish::<S>(z, rest.x, size, d1, sum(0), rest.x_bar);
        }
    }
});

/// Backward through R = I - w w^H: z, the cotangent of y = R x, becomes R z; adds Im(z conj(y)) and the gradient of w.
struct Couple<R> {
    z: *mut R,
    x: *const R,
    w: *const R,
    n: usize,
    phases: *mut R,
    vector: *mut R,
}

kernel!(Couple::<R>, |&Couple { z, x, w, n, phases, vector }| {
    // SAFETY: see `passes`; the sums have n numbers and n pairs.
    unsafe {
        let (a, b) = (dot::<S>(w, x, n), dot::<S>(w, z, n));
        let both = inner::<S>(b, a);
        let (mut t, mut v) = ([S::zero(); LANES], [S::zero(); 2 * LANES]);
        for first in (0..n).step_by(S::LANES) {
            let many = (n - first).min(S::LANES);
            for i in 0..many {
                let j = first + i;
                let (x, y_bar) = (get::<S>(x, j), get::<S>(z, j));
                t[i] = outer::<S>(y_bar, less::<S>(x, w, j, a));
                set::<S>(z, j, less::<S>(y_bar, w, j, b));
                let (c, d) = (S::splat(*w.add(2 * j)), S::splat(*w.add(2 * j + 1)));
                // conj(a) y_bar = (a.re y.re + a.im y.im) + i (a.re y.im - a.im y.re)
                let re = S::add(inner::<S>(a, y_bar), inner::<S>(b, x));
                let im = S::add(outer::<S>(y_bar, a), outer::<S>(x, b));
                v[2 * i] = S::sub(S::mul(both, c), re);
                v[2 * i + 1] = S::sub(S::mul(both, d), im);
            }
            add_lanes::<S>(&mut t, phases.add(first), many);
            let (low, high) = v.split_at_mut(S::LANES);
            add_lanes::<S>(low, vector.add(2 * first), 2 * many);
            if 2 * many > S::LANES {
                add_lanes::<S>(high, vector.add(2 * first + S::LANES), 2 * many - S::LANES);
            }
        }
    }
});

/// Backward through D1: x_bar = conj(D1) z where it is wanted; adds Im(x_bar conj(x)).
#[inline(always)]
unsafe fn finish<S: Simd>(
    z: *const S::R,
    x: *const S::R,
    (n, rows): (usize, usize),
    diagonal: *const S::R,
    phases: *mut S::R,
    x_bar: *mut S::R,
) {
    // SAFETY: see `passes`; the sums have n numbers.
    unsafe {
        let (mut v, mut t) = ([S::zero(); LANES], [S::zero(); LANES]);
        let half = S::LANES / 2;
        for first in (0..n).step_by(S::LANES) {
            for start in [first, first + half] {
                if start < n {
                    taken::<S>(x, 2 * n, rows, 2 * start, &mut v);
                    for i in 0..half.min(n - start) {
                        let own = turned::<S>(get::<S>(z, start + i), diagonal, start + i, true);
                        t[start - first + i] = outer::<S>(own, (v[2 * i], v[2 * i + 1]));
                        (v[2 * i], v[2 * i + 1]) = own;
                    }
                    if !x_bar.is_null() {
                        given::<S>(&mut v, x_bar, 2 * n, rows, 2 * start);
                    }
                }
            }
            add_lanes::<S>(&mut t, phases.add(first), (n - first).min(S::LANES));
        }
    }
}
