//! One axis of a Kronecker product: small products C = A B of matrices in memory, many of one size, without packing, and
//! the sums C += A B^H and C += A^H B of the gradient.
//!
//! Vectors lie along the columns of B and C. A complex product is a b = a_re b + a_im (i b), where i b is b with its pairs
//! swapped and the sign of every even number turned.

use crate::dispatch::{compiled, kernel};
use crate::scalar::{Real, Scalar, c32, c64};
use crate::simd::Simd;

/// Rows of a tile of C.
const ROWS: usize = 4;

/// `count` products C = A B with A (m, k), B (k, n), all row-major without gaps; consecutive products are
/// `steps` elements apart in A, B and C.
///
/// # Safety
/// The matrices exist; C overlaps neither A nor B.
#[derive(Clone, Copy)]
pub struct Small<T: Scalar> {
    /// Number of products.
    pub count: usize,
    /// (m, n, k)
    pub sizes: (usize, usize, usize),
    /// A
    pub a: *const T,
    /// B
    pub b: *const T,
    /// C
    pub c: *mut T,
    /// Distances of A, B and C from one product to the next.
    pub steps: [usize; 3],
}

/// `count` sums C += A B^H with A (m, n), B (k, n), all row-major without gaps, into one C (m, k).
///
/// # Safety
/// The matrices exist; C overlaps neither A nor B.
#[derive(Clone, Copy)]
pub struct Outer<T: Scalar> {
    /// Number of terms.
    pub count: usize,
    /// (m, k, n)
    pub sizes: (usize, usize, usize),
    /// A
    pub a: *const T,
    /// B
    pub b: *const T,
    /// C
    pub c: *mut T,
}

/// C += A^H B with A (k, m), B (k, n), C (m, n), all row-major without gaps.
///
/// # Safety
/// The matrices exist; C overlaps neither A nor B.
#[derive(Clone, Copy)]
pub struct Inner<T: Scalar> {
    /// (m, n, k)
    pub sizes: (usize, usize, usize),
    /// A
    pub a: *const T,
    /// B
    pub b: *const T,
    /// C
    pub c: *mut T,
}

compiled! {
    /// The axes of Kronecker products, compiled for each element type.
    KroneckerKernels: Scalar for f32, f64, c32, c64; {
        /// [`Small`]
        fn small(Small);
        /// [`Outer`]
        fn outer(Outer);
        /// [`Inner`]
        fn inner(Inner);
    }
}

kernel!(Small::<T>, |own| {
    for at in 0..own.count {
        let [a, b, c] = own.steps.map(|step| at * step);
        // SAFETY: the contract of `Small`.
        unsafe { product::<T, S, false>(own.sizes, (own.a.add(a), own.b.add(b), own.c.add(c))) };
    }
});

kernel!(Inner::<T>, |own| {
    // SAFETY: the contract of `Inner`.
    unsafe { product::<T, S, true>(own.sizes, (own.a, own.b, own.c)) };
});

/// C = A B, or C += A^H B.
#[inline(always)]
unsafe fn product<T: Scalar, S: Simd<R = T::Real>, const ADJOINT: bool>(
    sizes: (usize, usize, usize),
    matrices: (*const T, *const T, *mut T),
) {
    let (m, n, _) = sizes;
    // SAFETY: the contract of `Small` or `Inner`.
    unsafe {
        for col in (0..n * T::PARTS).step_by(S::LANES) {
            for row in (0..m / ROWS * ROWS).step_by(ROWS) {
                tile::<T, S, ROWS, ADJOINT>(sizes, matrices, row, col);
            }
            for row in m / ROWS * ROWS..m {
                tile::<T, S, 1, ADJOINT>(sizes, matrices, row, col);
            }
        }
    }
}

/// MR rows and one vector of columns of C.
#[inline(always)]
unsafe fn tile<T: Scalar, S: Simd<R = T::Real>, const MR: usize, const ADJOINT: bool>(
    (m, n, k): (usize, usize, usize),
    (a, b, c): (*const T, *const T, *mut T),
    row: usize,
    col: usize,
) {
    let live = n * T::PARTS - col;
    let whole = live >= S::LANES;
    // SAFETY: the contract of `Small` or `Inner`; only the columns that exist are read and written.
    unsafe {
        let of = |i: usize, p: usize| {
            if ADJOINT { (*a.add(p * m + row + i)).conj() } else { *a.add((row + i) * k + p) }
        };
        let to = |i: usize| c.add((row + i) * n).cast::<S::R>().add(col);
        let turned = S::alternate(T::Real::of(-1.0), T::Real::of(1.0));
        let mut acc = [S::zero(); MR];
        if ADJOINT {
            for i in 0..MR {
                acc[i] = S::load_n(to(i), live);
            }
        }
        for p in 0..k {
            let from = b.add(p * n).cast::<S::R>().add(col);
            let v = if whole { S::load(from) } else { S::load_n(from, live) };
            if T::PARTS == 1 {
                for i in 0..MR {
                    S::accumulate(&mut acc[i], S::splat(of(i, p).re()), v);
                }
            } else {
                let iv = S::mul(turned, S::swap_pairs(v));
                for i in 0..MR {
                    let x = of(i, p);
                    S::accumulate(&mut acc[i], S::splat(x.re()), v);
                    S::accumulate(&mut acc[i], S::splat(x.im()), iv);
                }
            }
        }
        for (i, acc) in acc.into_iter().enumerate() {
            if whole { S::store(to(i), acc) } else { S::store_n(to(i), acc, live) }
        }
    }
}

kernel!(Outer::<T>, |own| {
    let (m, k, _) = own.sizes;
    for i in 0..m {
        for j in (0..k / ROWS * ROWS).step_by(ROWS) {
            // SAFETY: the contract of `Outer`.
            unsafe { dots::<T, S, ROWS>(own, i, j) };
        }
        for j in k / ROWS * ROWS..k {
            // SAFETY: the contract of `Outer`.
            unsafe { dots::<T, S, 1>(own, i, j) };
        }
    }
});

/// Row i of A with NB rows of B, over all terms: C[i, j..j + NB].
#[inline(always)]
unsafe fn dots<T: Scalar, S: Simd<R = T::Real>, const NB: usize>(q: &Outer<T>, i: usize, j: usize) {
    let (m, k, n) = q.sizes;
    let width = n * T::PARTS;
    // SAFETY: the contract of `Outer`; only the columns that exist are read.
    unsafe {
        // Re and Im of a conj(b) are sums over a b and over a times b with its pairs swapped.
        let (mut direct, mut crossed) = ([S::zero(); NB], [S::zero(); NB]);
        for at in 0..q.count {
            let a = q.a.add((at * m + i) * n).cast::<S::R>();
            let b = q.b.add((at * k + j) * n).cast::<S::R>();
            for col in (0..width).step_by(S::LANES) {
                let live = width - col;
                let x = S::load_n(a.add(col), live);
                for u in 0..NB {
                    let y = S::load_n(b.add(u * width + col), live);
                    S::accumulate(&mut direct[u], x, y);
                    if T::PARTS == 2 {
                        S::accumulate(&mut crossed[u], x, S::swap_pairs(y));
                    }
                }
            }
        }
        for u in 0..NB {
            let re = lanes_sum::<S>(direct[u], T::Real::of(1.0));
            let im = if T::PARTS == 2 { lanes_sum::<S>(crossed[u], T::Real::of(-1.0)) } else { re };
            *q.c.add(i * k + j + u) += T::new(re, im);
        }
    }
}

/// Even lanes plus `sign` times odd ones: of the products with swapped pairs, a_re b_im and a_im b_re, the imaginary part
/// of a conj(b) is the odd lanes minus the even ones.
#[inline(always)]
unsafe fn lanes_sum<S: Simd>(v: S::V, sign: S::R) -> S::R {
    let mut lanes = [<S::R as num_traits::Zero>::zero(); 64];
    // SAFETY: no instruction set has more lanes.
    unsafe { S::store(lanes.as_mut_ptr(), v) };
    let (mut even, mut odd) = (lanes[0], lanes[1]);
    for pair in lanes[2..S::LANES].chunks_exact(2) {
        even += pair[0];
        odd += pair[1];
    }
    if sign > <S::R as num_traits::Zero>::zero() { even + odd } else { odd - even }
}
