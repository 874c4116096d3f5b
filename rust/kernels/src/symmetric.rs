//! Eigenvalues and eigenvectors of a real symmetric matrix, A = Z^T diag(s) Z with the eigenvectors in the rows of Z.
//!
//! Reflections H_k = I - tau_k v_k v_k^T make it tridiagonal, A = Q T Q^T with Q = H_0 H_1 ..., and rotations of neighbouring rows
//! diagonalise T: implicit QL steps with Wilkinson's shift (EISPACK's tred2 and tql2). Every pass is along rows.
//!
//! ```text
//! w = p - tau/2 (p.v) v,    p = tau A v,    A <- A - v w^T - w v^T.
//! ```
//!
//! The eigenvalues are right up to some eps ||A||, and Z is orthogonal to rounding. A complex Hermitian matrix B + iC is the symmetric
//! matrix [[B, -C], [C, B]], of twice the size.

use crate::dispatch::{compiled, kernel};
use crate::householder::total;
use crate::scalar::Real;
use crate::simd::Simd;
use crate::stop::poll;

/// QL steps for each eigenvalue; two are the rule.
const STEPS: usize = 60;
/// Rows of Q that are formed together, while a vector of a reflection is in the cache.
const ROWS: usize = 8;

compiled! {
    /// Eigenvectors, compiled for each real type.
    SymmetricKernels: Real for f32, f64; {
        /// [`Symmetric`]
        fn symmetric(Symmetric) -> bool;
    }
}

/// Eigenvalues, in no order, and eigenvectors; false if the steps do not end, as for NaN.
///
/// # Safety
/// `a` and `z` have n n numbers, `values` n, `beside` n, `work` 2 n; nothing overlaps. `a` is symmetric, its entries between the roots
/// of the smallest and the largest number, or zero.
pub struct Symmetric<R: Real> {
    /// A; then the vectors v_k.
    pub a: *mut R,
    /// n
    pub n: usize,
    /// Z
    pub z: *mut R,
    /// s
    pub values: *mut f64,
    /// What stands beside the diagonal of T.
    pub beside: *mut f64,
    /// Workspace.
    pub work: *mut R,
}

kernel!(Symmetric::<R>, |own| -> bool {
    // SAFETY: the contract of `Symmetric`.
    unsafe {
        own.reduce::<S>();
        own.form::<S>();
        own.diagonalise::<S>()
    }
});

impl<R: Real> Symmetric<R> {
    /// T, the vectors v_k in the rows of A behind the diagonal, and tau in the first n numbers of the workspace.
    #[inline(always)]
    unsafe fn reduce<S: Simd<R = R>>(&self) {
        let Symmetric { a, n, values, beside, work, .. } = *self;
        let w = work.wrapping_add(n);
        // SAFETY: rows and columns behind k exist.
        unsafe {
            for k in 0..n {
                let v = a.add(k * n + k + 1);
                let len = n - k - 1;
                *values.add(k) = (*a.add(k * n + k)).f64();
                (*work.add(k), *beside.add(k)) = (R::zero(), if len > 0 { (*v).f64() } else { 0.0 });
                if len < 2 {
                    continue;
                }
                poll(2 * len * len);
                let first = (*v).f64();
                let tail2 = dot::<S>(v.add(1), v.add(1), len - 1).f64();
                // squares of anything smaller have lost their accuracy
                if tail2 <= (R::min_positive_value() / R::EPS).f64() {
                    continue;
                }
                let beta = -(first * first + tail2).sqrt().copysign(first);
                scale::<S>(v.add(1), R::of(1.0 / (first - beta)), len - 1);
                *v = R::one();
                let tau = R::of((beta - first) / beta);
                (*work.add(k), *beside.add(k)) = (tau, beta);
                for i in 0..len {
                    *w.add(i) = tau * dot::<S>(a.add((k + 1 + i) * n + k + 1), v, len);
                }
                let gamma = R::of(-0.5) * tau * dot::<S>(w, v, len);
                add::<S>(w, v, gamma, len);
                for i in 0..len {
                    let row = a.add((k + 1 + i) * n + k + 1);
                    add::<S>(row, w, -*v.add(i), len);
                    add::<S>(row, v, -*w.add(i), len);
                }
            }
        }
    }

    /// Z = Q^T: row i is H_0 ... H_{i-1} e_i.
    #[inline(always)]
    unsafe fn form<S: Simd<R = R>>(&self) {
        let Symmetric { a, n, z, work, .. } = *self;
        // SAFETY: all rows exist.
        unsafe {
            for i in 0..n * n {
                *z.add(i) = if i % (n + 1) == 0 { R::one() } else { R::zero() };
            }
            for rows in (0..n).step_by(ROWS).map(|first| first..(first + ROWS).min(n)) {
                poll(2 * ROWS * n * rows.end);
                for k in (0..rows.end - 1).rev() {
                    let (v, tau, len) = (a.add(k * n + k + 1).cast_const(), *work.add(k), n - k - 1);
                    for i in rows.start.max(k + 1)..rows.end {
                        let row = z.add(i * n + k + 1);
                        let sum = tau * dot::<S>(row, v, len);
                        add::<S>(row, v, -sum, len);
                    }
                }
            }
        }
    }

    /// QL steps on T, and their rotations of the rows of Z.
    #[inline(always)]
    unsafe fn diagonalise<S: Simd<R = R>>(&self) -> bool {
        let Symmetric { n, z, values: d, beside: e, .. } = *self;
        // SAFETY: d and e have n numbers, Z has n rows.
        unsafe {
            let size = (0..n).map(|i| (*d.add(i)).abs() + (*e.add(i)).abs()).fold(0.0, f64::max);
            let least = 0.25 * R::EPS.f64() * size;
            for l in 0..n {
                for step in 0.. {
                    let small = |&m: &usize| (*e.add(m)).abs() <= least;
                    let m = (l..n - 1).find(small).unwrap_or(n - 1);
                    if m == l {
                        break;
                    }
                    if step == STEPS {
                        return false;
                    }
                    poll(4 * n * (m - l));
                    let zeta = (*d.add(l + 1) - *d.add(l)) / (2.0 * *e.add(l));
                    let root = (zeta * zeta + 1.0).sqrt();
                    let mut g = *d.add(m) - *d.add(l) + *e.add(l) / (zeta + root.copysign(zeta));
                    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
                    let mut whole = true;
                    for i in (l..m).rev() {
                        let (f, b) = (s * *e.add(i), c * *e.add(i));
                        let r = (f * f + g * g).sqrt();
                        *e.add(i + 1) = r;
                        if r == 0.0 {
                            // T has split here
                            *d.add(i + 1) -= p;
                            whole = false;
                            break;
                        }
                        (s, c) = (f / r, g / r);
                        let moved = *d.add(i + 1) - p;
                        let turn = (*d.add(i) - moved) * s + 2.0 * c * b;
                        p = s * turn;
                        *d.add(i + 1) = moved + p;
                        g = c * turn - b;
                        rotate::<S>(z.add(i * n), z.add((i + 1) * n), (R::of(c), R::of(s)), n);
                    }
                    *e.add(m) = 0.0;
                    if whole {
                        *d.add(l) -= p;
                        *e.add(l) = g;
                    }
                }
            }
            (0..n).all(|i| (*d.add(i)).is_finite())
        }
    }
}

/// x.y
#[inline(always)]
unsafe fn dot<S: Simd>(x: *const S::R, y: *const S::R, len: usize) -> S::R {
    // SAFETY: both have `len` numbers.
    unsafe {
        let mut sums = [S::zero(); 4];
        let whole = len / (4 * S::LANES) * (4 * S::LANES);
        for at in (0..whole).step_by(4 * S::LANES) {
            for (j, sum) in sums.iter_mut().enumerate() {
                let at = at + j * S::LANES;
                *sum = S::mul_add(S::load(x.add(at)), S::load(y.add(at)), *sum);
            }
        }
        for at in (whole..len).step_by(S::LANES) {
            sums[0] = S::mul_add(S::load_n(x.add(at), len - at), S::load_n(y.add(at), len - at), sums[0]);
        }
        let (even, odd) = total::<S>(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])));
        even + odd
    }
}

/// x <- x + by y
#[inline(always)]
unsafe fn add<S: Simd>(x: *mut S::R, y: *const S::R, by: S::R, len: usize) {
    // SAFETY: both have `len` numbers.
    unsafe {
        let factor = S::splat(by);
        for at in (0..len).step_by(S::LANES) {
            let (old, more) = (S::load_n(x.add(at), len - at), S::load_n(y.add(at), len - at));
            S::store_n(x.add(at), S::mul_add(more, factor, old), len - at);
        }
    }
}

/// x <- by x
#[inline(always)]
unsafe fn scale<S: Simd>(x: *mut S::R, by: S::R, len: usize) {
    // SAFETY: x has `len` numbers.
    unsafe {
        let factor = S::splat(by);
        for at in (0..len).step_by(S::LANES) {
            S::store_n(x.add(at), S::mul(S::load_n(x.add(at), len - at), factor), len - at);
        }
    }
}

/// x, y <- c x - s y, s x + c y
#[inline(always)]
unsafe fn rotate<S: Simd>(x: *mut S::R, y: *mut S::R, (c, s): (S::R, S::R), len: usize) {
    // SAFETY: both have `len` numbers.
    unsafe {
        let (c, s) = (S::splat(c), S::splat(s));
        for at in (0..len).step_by(S::LANES) {
            let (first, second) = (S::load_n(x.add(at), len - at), S::load_n(y.add(at), len - at));
            S::store_n(x.add(at), S::neg_mul_add(s, second, S::mul(c, first)), len - at);
            S::store_n(y.add(at), S::mul_add(s, first, S::mul(c, second)), len - at);
        }
    }
}
