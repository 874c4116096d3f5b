//! Rotations of the plane and of space from their skew matrices, one per lane, with their gradients.
//!
//! A skew A of R^3 is a cross product, A = `[a]` with `[a] x = a x x`, and a rotation is a quaternion (w, p) of any length:
//!
//! ```text
//! R = I + f (w [p] + [p]^2),   f = 2 / (w^2 + |p|^2),   D = diag(signs),   W = R D,
//!
//! exp(A):                 w = cos(t/2),  p = sin(t/2) / t a,  t = |a|
//! (I + A)^{-1} (I - A):   w = 1 / m,     p = -a / m,          m = max(1, |a_i|)
//! ```
//!
//! Neither divides by a number near zero at any angle. A rotation of the plane is one about the third axis. The gradient from a
//! cotangent M of R needs tr M, the vector v with `<M, [p]> = v . p`, and (M + M^T) p alone; that of W x is M = c z^T.

mod law;
mod recover;
mod rodrigues;
mod vector;
mod weave;

pub use law::Law;
pub use recover::Recover;
pub use rodrigues::Rodrigues;

use crate::dispatch::{Kernel, compiled};
use crate::lanes::{MOST, from_lanes, to_lanes};
use crate::scalar::Real;
use crate::simd::Simd;
use law::{Pulled, Quaternion, quaternion};
use num_traits::One;
use vector::{Vector, added, cross, dot, scaled, times};
use weave::Weave;

/// Consecutive rotations of R^n, n = 2 or 3.
#[derive(Clone, Copy, Debug)]
pub struct Stack<R> {
    /// The strict upper triangles of A.
    pub upper: *const R,
    /// The diagonals of D, n each; None for D = I.
    pub signs: Option<*const R>,
    /// The map.
    pub law: Law,
    /// n
    pub n: usize,
    /// Number of rotations.
    pub count: usize,
}

/// Writes the matrices W.
///
/// # Safety
/// The arrays hold `count` rotations.
pub struct Matrices<R> {
    /// The rotations.
    pub of: Stack<R>,
    /// W
    pub out: *mut R,
}

/// The gradients of the parameters from those of the matrices.
///
/// # Safety
/// As [`Matrices`].
pub struct PullMatrices<R> {
    /// The rotations.
    pub of: Stack<R>,
    /// W_bar
    pub ct: *const R,
    /// upper_bar
    pub upper: *mut R,
}

/// W x or W^T x, one vector for each rotation.
///
/// # Safety
/// As [`Matrices`].
pub struct Turn<R> {
    /// The rotations.
    pub of: Stack<R>,
    /// The vectors.
    pub x: *const R,
    /// Whether W^T is applied.
    pub adjoint: bool,
    /// The results.
    pub out: *mut R,
}

/// The gradients of [`Turn`].
///
/// # Safety
/// As [`Matrices`].
pub struct PullTurn<R> {
    /// The call.
    pub of: Turn<R>,
    /// The cotangents of its results, which are not written.
    pub ct: *const R,
    /// upper_bar
    pub upper: Option<*mut R>,
    /// x_bar
    pub x_bar: Option<*mut R>,
}

compiled! {
    /// Rotations by quaternions, compiled for each real type.
    QuaternionKernels: Real for f32, f64; {
        /// [`Matrices`]
        fn quaternion_matrices(Matrices);
        /// [`PullMatrices`]
        fn quaternion_pull_matrices(PullMatrices);
        /// [`Turn`]
        fn quaternion_turn(Turn);
        /// [`PullTurn`]
        fn quaternion_pull_turn(PullTurn);
        /// [`Recover`]
        fn quaternion_recover(Recover);
        /// [`Rodrigues`]
        fn quaternion_rodrigues(Rodrigues) -> bool;
    }
}

/// `self.body::<S, n, n (n - 1) / 2>()`
macro_rules! by_size {
    ($($kernel:ident: $n:expr;)+) => {
        $(impl<R: Real> Kernel<R> for $kernel<R> {
            #[inline(always)]
            unsafe fn run<S: Simd<R = R>>(&self) {
                // SAFETY: the contract of the kernel.
                unsafe { if $n(self) == 2 { self.body::<S, 2, 1>() } else { self.body::<S, 3, 3>() } }
            }
        })+
    };
}

by_size! {
    Matrices: |kernel: &Self| kernel.of.n;
    PullMatrices: |kernel: &Self| kernel.of.n;
    Turn: |kernel: &Self| kernel.of.n;
    PullTurn: |kernel: &Self| kernel.of.of.n;
    Recover: |kernel: &Self| kernel.n;
}

/// What reads and writes the arrays of rotations of R^N, K = N (N - 1) / 2.
struct Arrays<S: Simd, const N: usize, const K: usize> {
    of: Stack<S::R>,
    triangle: Weave<S, K>,
    vector: Weave<S, N>,
}

impl<S: Simd, const N: usize, const K: usize> Arrays<S, N, K> {
    #[inline(always)]
    unsafe fn new(of: Stack<S::R>) -> Self {
        // SAFETY: the caller ensures that the processor supports S.
        unsafe { Arrays { of, triangle: Weave::new(), vector: Weave::new() } }
    }

    /// The quaternions, and the diagonals of D, of the lanes from a rotation on.
    #[inline(always)]
    unsafe fn rotations(&self, first: usize, live: usize) -> (Quaternion<S>, Vector<S>) {
        // SAFETY: the arrays hold the rotations.
        unsafe {
            let mut signs = [S::splat(S::R::one()); 3];
            if let Some(from) = self.of.signs {
                signs = self.vectors(from, first, live);
            }
            let u = self.triangle.read(self.of.upper.add(first * K), live);
            (quaternion::<S>(self.of.law, skew::<S, N, K>(u)), signs)
        }
    }

    /// Vectors, with a third component zero in the plane.
    #[inline(always)]
    unsafe fn vectors(&self, from: *const S::R, first: usize, live: usize) -> Vector<S> {
        // SAFETY: the caller ensures that the array has the vectors.
        unsafe {
            let x = self.vector.read(from.add(first * N), live);
            [x[0], x[1], if N == 3 { x[N - 1] } else { S::zero() }]
        }
    }

    #[inline(always)]
    unsafe fn write(&self, x: Vector<S>, to: *mut S::R, first: usize, live: usize) {
        let mut own = [x[0]; N];
        own.copy_from_slice(&x[..N]);
        // SAFETY: the caller ensures that there is room for the vectors.
        unsafe { self.vector.write(own, to.add(first * N), live) }
    }

    #[inline(always)]
    unsafe fn write_upper(&self, a: Vector<S>, to: *mut S::R, first: usize, live: usize) {
        // SAFETY: the caller ensures that there is room for the triangles.
        unsafe { self.triangle.write(skew_upper::<S, K>(a), to.add(first * K), live) }
    }
}

/// a of [a] = A from the upper triangle.
#[inline(always)]
unsafe fn skew<S: Simd, const N: usize, const K: usize>(u: [S::V; K]) -> Vector<S> {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let zero = S::zero();
        let last = S::sub(zero, u[0]);
        if N == 2 { [zero, zero, last] } else { [S::sub(zero, u[K - 1]), u[K / 2], last] }
    }
}

/// The upper triangle of `[a]`.
#[inline(always)]
unsafe fn skew_upper<S: Simd, const K: usize>(a: Vector<S>) -> [S::V; K] {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe {
        let mut u = [S::sub(S::zero(), a[2]); K];
        if K == 3 {
            (u[K / 2], u[K - 1]) = (a[1], S::sub(S::zero(), a[0]));
        }
        u
    }
}

impl<R: Real> Matrices<R> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = R>, const N: usize, const K: usize>(&self) {
        let Matrices { of, out } = *self;
        let mut group = [R::zero(); 9 * MOST];
        // SAFETY: the contract of `Matrices`.
        unsafe {
            let arrays = Arrays::<S, N, K>::new(of);
            for first in (0..of.count).step_by(S::LANES) {
                let live = (of.count - first).min(S::LANES);
                let (q, signs) = arrays.rotations(first, live);
                let rows = q.rows();
                for i in 0..N {
                    let row = times::<S>(rows[i], signs);
                    for j in 0..N {
                        S::store(group.as_mut_ptr().add((i * N + j) * S::LANES), row[j]);
                    }
                }
                from_lanes::<S>(group.as_ptr(), N * N, out.add(first * N * N), N * N, live);
            }
        }
    }
}

impl<R: Real> PullMatrices<R> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = R>, const N: usize, const K: usize>(&self) {
        let PullMatrices { of, ct, upper } = *self;
        let mut group = [R::zero(); 9 * MOST];
        // SAFETY: the contract of `PullMatrices`.
        unsafe {
            let arrays = Arrays::<S, N, K>::new(of);
            for first in (0..of.count).step_by(S::LANES) {
                let live = (of.count - first).min(S::LANES);
                let (q, signs) = arrays.rotations(first, live);
                to_lanes::<S>(ct.add(first * N * N), N * N, N * N, live, group.as_mut_ptr(), (1, 1));
                let mut m = [[S::zero(); 3]; 3];
                for i in 0..N {
                    for j in 0..N {
                        let x = S::load(group.as_ptr().add((i * N + j) * S::LANES));
                        m[i][j] = S::mul(x, signs[j]);
                    }
                }
                let (mut axial, mut symmetric) = ([S::zero(); 3], [S::zero(); 3]);
                let half = S::splat(R::of(0.5));
                for i in 0..3 {
                    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                    axial[i] = S::sub(m[k][j], m[j][k]);
                    for j in 0..3 {
                        symmetric[i] =
                            S::mul_add(S::mul(half, S::add(m[i][j], m[j][i])), q.p[j], symmetric[i]);
                    }
                }
                let trace = S::add(S::add(m[0][0], m[1][1]), m[2][2]);
                let a_bar = q.pull(of.law, &Pulled { trace, axial, symmetric });
                arrays.write_upper(a_bar, upper, first, live);
            }
        }
    }
}

impl<R: Real> Turn<R> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = R>, const N: usize, const K: usize>(&self) {
        let Turn { of, x, adjoint, out } = *self;
        // SAFETY: the contract of `Turn`.
        unsafe {
            let arrays = Arrays::<S, N, K>::new(of);
            for first in (0..of.count).step_by(S::LANES) {
                let live = (of.count - first).min(S::LANES);
                let (q, signs) = arrays.rotations(first, live);
                let x = arrays.vectors(x, first, live);
                let y = if adjoint {
                    times::<S>(signs, q.turn(x, true))
                } else {
                    q.turn(times::<S>(signs, x), false)
                };
                arrays.write(y, out, first, live);
            }
        }
    }
}

impl<R: Real> PullTurn<R> {
    /// The result is R (D x), or D (R^T x); so M = y_bar (D x)^T, or x (D y_bar)^T.
    #[inline(always)]
    unsafe fn body<S: Simd<R = R>, const N: usize, const K: usize>(&self) {
        let PullTurn { of: Turn { of, x, adjoint, .. }, ct, upper, x_bar } = *self;
        // SAFETY: the contract of `PullTurn`.
        unsafe {
            let arrays = Arrays::<S, N, K>::new(of);
            for first in (0..of.count).step_by(S::LANES) {
                let live = (of.count - first).min(S::LANES);
                let (q, signs) = arrays.rotations(first, live);
                let (x, ct) = (arrays.vectors(x, first, live), arrays.vectors(ct, first, live));
                let (c, z) = if adjoint { (x, times::<S>(signs, ct)) } else { (ct, times::<S>(signs, x)) };
                if let Some(x_bar) = x_bar {
                    let back = if adjoint { q.turn(z, false) } else { times::<S>(signs, q.turn(c, true)) };
                    arrays.write(back, x_bar, first, live);
                }
                if let Some(upper) = upper {
                    let half = S::splat(R::of(0.5));
                    let along = scaled::<S>(S::mul(half, dot::<S>(z, q.p)), c);
                    let symmetric = added::<S>(S::mul(half, dot::<S>(c, q.p)), z, along);
                    let pulled = Pulled { trace: dot::<S>(c, z), axial: cross::<S>(z, c), symmetric };
                    arrays.write_upper(q.pull(of.law, &pulled), upper, first, live);
                }
            }
        }
    }
}
