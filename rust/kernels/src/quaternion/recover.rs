//! Parameters of given rotations.
//!
//! With the quaternion q = (w, p) of length 1, 4 q q^T is linear in R: its diagonal is
//!
//! ```text
//! 1 + R_11 + R_22 + R_33,   1 + R_11 - R_22 - R_33,   1 - R_11 + R_22 - R_33,   1 - R_11 - R_22 + R_33,
//! ```
//!
//! so the row with the largest diagonal entry is accurate, and a multiple of q. D = diag(d) is det W times one of I and the half
//! turns about the axes, which exchange the components of q: the largest one becomes w, and no |p_i / w| exceeds 1.

use super::vector::{Vector, cross, dot, times};
use super::{Law, skew_upper};
use crate::lanes::{MOST, to_lanes};
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::One;

/// Reads matrices W, orthogonal to some tolerance; what it finds for others is to be discarded.
///
/// # Safety
/// The arrays hold `count` matrices.
pub struct Recover<R> {
    /// W
    pub w: *const R,
    /// n, 2 or 3.
    pub n: usize,
    /// Number of matrices.
    pub count: usize,
    /// The map; the principal logarithm of W for `Exponential`, which disregards `signs`.
    pub law: Law,
    /// The diagonals of D: written if `choose`, else read.
    pub signs: *mut R,
    /// Whether D is chosen.
    pub choose: bool,
    /// The upper triangles of A.
    pub upper: *mut R,
    /// max |W^T W - I| of each, NaN if W contains NaN.
    pub defects: *mut R,
    /// det W of each, to rounding.
    pub determinants: *mut R,
}

impl<R: Real> Recover<R> {
    #[inline(always)]
    pub(super) unsafe fn body<S: Simd<R = R>, const N: usize, const K: usize>(&self) {
        let Recover { w, n: _, count, law, signs, choose, upper, defects, determinants } = *self;
        let mut group = [R::zero(); 9 * MOST];
        // SAFETY: the contract of `Recover`.
        unsafe {
            let arrays = (super::Weave::<S, N>::new(), super::Weave::<S, K>::new());
            let (one, zero) = (S::splat(R::one()), S::zero());
            for first in (0..count).step_by(S::LANES) {
                let live = (count - first).min(S::LANES);
                to_lanes::<S>(w.add(first * N * N), N * N, N * N, live, group.as_mut_ptr(), (1, 1));
                // columns; of the plane with the third axis
                let mut m = [[zero; 3]; 3];
                m[2][2] = one;
                for i in 0..N {
                    for j in 0..N {
                        m[j][i] = S::load(group.as_ptr().add((i * N + j) * S::LANES));
                    }
                }
                S::store_n(defects.add(first), defect::<S>(m), live);
                let det = dot::<S>(m[0], cross::<S>(m[1], m[2]));
                S::store_n(determinants.add(first), det, live);
                // W times its determinant, in the plane W with the last column times that
                let sign = S::copysign(one, det);
                let mut d = [if N == 2 { one } else { sign }, sign, if N == 2 { one } else { sign }];
                if law == Law::Exponential {
                    d = [one; 3];
                } else if !choose {
                    let given = arrays.0.read(signs.add(first * N), live);
                    d[..N].copy_from_slice(&given);
                }
                for j in 0..3 {
                    for i in 0..3 {
                        m[j][i] = S::mul(d[j], m[j][i]);
                    }
                }
                let (q, largest) = quaternions::<S>(m);
                let a = match law {
                    Law::Exponential => logarithm::<S>(q),
                    Law::Cayley if choose => {
                        let (g, turn) = chosen::<S>(q, largest);
                        let d = times::<S>(d, turn);
                        let mut own = [zero; N];
                        own.copy_from_slice(&d[..N]);
                        arrays.0.write(own, signs.add(first * N), live);
                        g
                    }
                    Law::Cayley => {
                        let mut g = [zero; 3];
                        for i in 0..3 {
                            g[i] = S::div(S::sub(zero, q[i + 1]), q[0]);
                        }
                        g
                    }
                };
                let mut u = skew_upper::<S, K>(a);
                for i in 0..K {
                    // no -0
                    u[i] = S::add(u[i], zero);
                }
                arrays.1.write(u, upper.add(first * K), live);
            }
        }
    }
}

/// max |W^T W - I| from the columns
#[inline(always)]
unsafe fn defect<S: Simd>(m: [Vector<S>; 3]) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let mut most = S::zero();
        for i in 0..3 {
            for j in i..3 {
                let x = dot::<S>(m[i], m[j]);
                let x = S::abs(if i == j { S::sub(x, S::splat(S::R::one())) } else { x });
                // NaN persists
                most = S::add(S::select_gt(x, most, x, most), S::mul(S::zero(), x));
            }
        }
        most
    }
}

/// A multiple of the quaternion, w >= 0, and the index of its largest component. `m` has the columns of R.
#[inline(always)]
unsafe fn quaternions<S: Simd>(m: [Vector<S>; 3]) -> ([S::V; 4], S::V) {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let (one, zero) = (S::splat(S::R::one()), S::zero());
        let (x, y, z) = (m[0][0], m[1][1], m[2][2]);
        let mut rows = [[zero; 4]; 4];
        rows[0][0] = S::add(S::add(one, x), S::add(y, z));
        rows[1][1] = S::add(S::sub(one, y), S::sub(x, z));
        rows[2][2] = S::add(S::sub(one, z), S::sub(y, x));
        rows[3][3] = S::add(S::sub(one, x), S::sub(z, y));
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            // R_kj - R_jk and R_ij + R_ji
            rows[0][i + 1] = S::sub(m[j][k], m[k][j]);
            rows[i + 1][0] = rows[0][i + 1];
            rows[i + 1][j + 1] = S::add(m[j][i], m[i][j]);
            rows[j + 1][i + 1] = rows[i + 1][j + 1];
        }
        let (mut q, mut most, mut largest) = (rows[0], rows[0][0], zero);
        for c in 1..4 {
            let own = rows[c][c];
            for e in 0..4 {
                q[e] = S::select_gt(own, most, rows[c][e], q[e]);
            }
            largest = S::select_gt(own, most, S::splat(S::R::of(c as f64)), largest);
            most = S::select_gt(own, most, own, most);
        }
        let sign = S::copysign(one, q[0]);
        for x in &mut q {
            *x = S::mul(sign, *x);
        }
        (q, largest)
    }
}

/// The a of the Cayley transform of R E, E the half turn that makes the largest component the first, and the diagonal of E.
#[inline(always)]
unsafe fn chosen<S: Simd>(q: [S::V; 4], largest: S::V) -> (Vector<S>, Vector<S>) {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let (one, zero) = (S::splat(S::R::one()), S::zero());
        let mut best = q[0];
        let mut p = [q[1], q[2], q[3]];
        let mut e = [one; 3];
        // q times the unit of axis i is (-q_i, w, q_k, -q_j) in the order (1, i, j, k)
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let axis = S::splat(S::R::of((i + 1) as f64));
            best = S::select_eq(largest, axis, S::sub(zero, q[i + 1]), best);
            p[i] = S::select_eq(largest, axis, q[0], p[i]);
            p[j] = S::select_eq(largest, axis, q[k + 1], p[j]);
            p[k] = S::select_eq(largest, axis, S::sub(zero, q[j + 1]), p[k]);
            e[j] = S::select_eq(largest, axis, S::sub(zero, one), e[j]);
            e[k] = S::select_eq(largest, axis, S::sub(zero, one), e[k]);
        }
        let less = S::sub(zero, one);
        for x in &mut p {
            *x = S::div(S::mul(less, *x), best);
        }
        (p, e)
    }
}

/// 2 atan2(|p|, w) / |p| p
#[inline(always)]
unsafe fn logarithm<S: Simd>(q: [S::V; 4]) -> Vector<S> {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let c = |x: f64| S::splat(S::R::of(x));
        let p = [q[1], q[2], q[3]];
        let square = dot::<S>(p, p);
        let size = S::sqrt(square);
        let by = S::div(angle::<S>(size, q[0]), size);
        let least = c(if size_of::<S::R>() == 8 { 1e-200 } else { 1e-30 });
        let by = S::select_gt(square, least, by, S::div(c(1.0), q[0]));
        super::scaled::<S>(S::mul(c(2.0), by), p)
    }
}

/// atan(y / x), both >= 0.
#[inline(always)]
unsafe fn angle<S: Simd>(y: S::V, x: S::V) -> S::V {
    /// atan z = z + z^3 P(z^2) / Q(z^2), of Cephes
    const P: [f64; 5] = [
        -8.750_608_600_031_904e-1,
        -1.615_753_718_733_365e1,
        -7.500_855_792_314_705e1,
        -1.228_866_684_490_136_2e2,
        -6.485_021_904_942_025e1,
    ];
    const Q: [f64; 6] = [
        1.0,
        2.485_846_490_142_306_3e1,
        1.650_270_098_316_988_5e2,
        4.328_810_604_912_902_7e2,
        4.853_903_996_359_137e2,
        1.945_506_571_482_614e2,
    ];
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let c = |x: f64| S::splat(S::R::of(x));
        let (low, high) = (S::select_gt(y, x, x, y), S::select_gt(y, x, y, x));
        // beyond tan(pi/8): atan(y / x) = pi/4 + atan((y - x) / (y + x))
        let wide = S::mul(c(std::f64::consts::SQRT_2 - 1.0), high);
        let over = |yes, no| S::select_gt(low, wide, yes, no);
        let z = S::div(over(S::sub(low, high), low), over(S::add(low, high), high));
        let z2 = S::mul(z, z);
        let (mut top, mut bottom) = (c(P[0]), c(Q[0]));
        for i in 1..P.len() {
            top = S::mul_add(top, z2, c(P[i]));
        }
        for q in &Q[1..] {
            bottom = S::mul_add(bottom, z2, c(*q));
        }
        let near = S::mul_add(S::mul(z, z2), S::div(top, bottom), z);
        // constants in two parts
        let quarter = [
            c(std::f64::consts::FRAC_PI_4),
            c(rest::<S>(std::f64::consts::FRAC_PI_4, 3.061_616_997_868_383e-17)),
        ];
        let half = [
            c(std::f64::consts::FRAC_PI_2),
            c(rest::<S>(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17)),
        ];
        let near = over(S::add(quarter[0], S::add(near, quarter[1])), near);
        let far = S::add(S::sub(half[0], near), half[1]);
        S::select_gt(y, x, far, near)
    }
}

/// What the nearest number of this type leaves of x + low.
#[inline(always)]
fn rest<S: Simd>(x: f64, low: f64) -> f64 {
    (x - S::R::of(x).f64()) + low
}
