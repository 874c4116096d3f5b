//! The nearest matrix with orthonormal columns of small matrices A (m x n, n <= m), one matrix per lane.
//!
//! ```text
//! A = U S V^H,    W = U V^H,    s_1 >= s_2 >= ... >= 0,
//! X = U^H W_bar V,    Y_ij = (X_ij - conj(X_ji)) / (s_i + s_j),
//! A_bar = U Y V^H + (I - U U^H) W_bar V S^-1 V^H.
//! ```
//!
//! One-sided Jacobi: plane rotations of pairs of columns, gathered in V, until the columns of B = A V are orthogonal and
//! their norms s descend. With gamma = b_p^H b_q, alpha = ||b_p||^2, beta = ||b_q||^2
//!
//! ```text
//! zeta = (beta - alpha) / (2 |gamma|),  t = sign(zeta) / (|zeta| + sqrt(1 + zeta^2)),  c = 1 / sqrt(1 + t^2),  s = t c.
//! ```
//!
//! U = Q D is taken from the reflections of B = Q R, D the phases of the diagonal of R: so it is orthonormal to rounding where A
//! is singular too, and a column of zeros gets a direction of its own. The nearest rotation of a real A with det A < 0 has the
//! last column of U, and s_n, negated.

mod decompose;
mod group;

use crate::dispatch::{compiled, kernel};
use crate::scalar::{Real, Scalar, c32, c64};
use crate::simd::Simd;
use group::Group;

/// What [`lifted`] numbers are multiplied by: 2^64.
pub const LIFT: f64 = 18_446_744_073_709_551_616.0;

/// Matrices whose largest part is smaller are lifted, since calls take denormal numbers for zero.
pub fn small<R: Real>() -> R {
    R::min_positive_value() * R::of(LIFT)
}

/// x times [`LIFT`], of denormal numbers too.
pub fn lifted<R: Real>(x: R) -> R {
    if !x.is_finite() {
        return x;
    }
    let (mantissa, exponent, sign) = x.integer_decode();
    let part = f64::from(sign) * mantissa as f64;
    R::of(part * 2f64.powi(i32::from(exponent) + 64))
}

/// Two factors whose product is the power of two that brings a positive normal `size` to \[1, 2); of any other, 1. One alone may be out
/// of range.
#[inline(always)]
pub fn normal(size: f64) -> [f64; 2] {
    let power = if size.is_normal() { 1023 - (size.to_bits() >> 52) as i64 } else { 0 };
    [power / 2, power - power / 2].map(|power| f64::from_bits(((1023 + power) as u64) << 52))
}

/// A group of matrices, at most one per lane.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix; may exceed the rows, in which case the rows of W are orthonormal.
    pub columns: usize,
    /// Number of matrices.
    pub count: usize,
    /// Whether the determinant of W is 1; only of real, square matrices.
    pub special: bool,
}

impl Sizes {
    /// (m, n) of A or A^H, whichever is not wide.
    fn tall(self) -> (usize, usize) {
        (self.rows.max(self.columns), self.rows.min(self.columns))
    }

    /// Size of a kernel's workspace, in real numbers, for vectors of this many lanes.
    pub fn work<T: Scalar>(self, lanes: usize) -> usize {
        let (m, n) = self.tall();
        (3 * m * n + 2 * n * n + 3 * n) * T::PARTS * lanes
    }
}

/// W of a group.
///
/// # Safety
/// `a` and `out` have the matrices, row-major one after another, `work` the numbers of [`Sizes::work`]; `out` may be `a`.
pub struct Nearest<T: Scalar> {
    /// The matrices.
    pub a: *const T,
    /// Sizes.
    pub sizes: Sizes,
    /// W
    pub out: *mut T,
    /// Workspace.
    pub work: *mut T::Real,
}

/// The gradients of a group from the matrices and the cotangents of W. A term whose s_i + s_j is zero to rounding is left out.
///
/// # Safety
/// As [`Nearest`]; `ct` has the matrices too, and `out` may be either of the others.
pub struct PullNearest<T: Scalar> {
    /// The matrices.
    pub a: *const T,
    /// W_bar
    pub ct: *const T,
    /// Sizes.
    pub sizes: Sizes,
    /// A_bar
    pub out: *mut T,
    /// Workspace.
    pub work: *mut T::Real,
}

compiled! {
    /// Nearest matrices, compiled for each element type.
    ProcrustesKernels: Scalar for f32, f64, c32, c64; {
        /// [`Nearest`]
        fn nearest(Nearest);
        /// [`PullNearest`]
        fn pull_nearest(PullNearest);
    }
}

kernel!(Nearest::<T>, |own| {
    // SAFETY: the contract of `Nearest`.
    unsafe { if T::PARTS == 1 { own.body::<S, 1>() } else { own.body::<S, 2>() } }
});

impl<T: Scalar> Nearest<T> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = T::Real>, const P: usize>(&self) {
        // SAFETY: the contract of `Nearest`; the workspace is that of a group.
        unsafe {
            let group = Group::<S, P>::new(self.sizes, self.work);
            group.load_scaled(self.a.cast(), group.b);
            group.decompose();
            group.start(group.c, true);
            group.reflect(group.c);
            group.write(group.c, self.out.cast());
        }
    }
}

kernel!(PullNearest::<T>, |own| {
    // SAFETY: the contract of `PullNearest`.
    unsafe { if T::PARTS == 1 { own.body::<S, 1>() } else { own.body::<S, 2>() } }
});

impl<T: Scalar> PullNearest<T> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = T::Real>, const P: usize>(&self) {
        // SAFETY: the contract of `PullNearest`; the workspace is that of a group.
        unsafe {
            let group = Group::<S, P>::new(self.sizes, self.work);
            let scales = group.load_scaled(self.a.cast(), group.b);
            group.decompose();
            group.start(group.c, false);
            group.reflect(group.c);
            group.load(self.ct.cast(), group.g);
            group.pull();
            group.scale(group.g, scales);
            group.write(group.g, self.out.cast());
        }
    }
}
