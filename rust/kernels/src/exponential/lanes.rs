//! One matrix per lane: element (i, j) of LANES matrices is one vector, or two of a complex type, at (i ld + j) times that.
//! Matrices are padded to a multiple of 4 with zeros, where the identity stays the identity.

use crate::dispatch::kernel;
pub use crate::lanes::MOST;
use crate::lanes::{Left, add, conj, from_lanes, load, product_lanes, store, to_lanes};
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;

/// Sizes of the matrices of a group.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// n
    pub n: usize,
    /// Number of matrices, at most one per lane.
    pub count: usize,
}

impl Sizes {
    /// n, padded to a multiple of 4.
    #[inline(always)]
    pub fn pad(self) -> usize {
        self.n.div_ceil(4) * 4
    }
    /// Row stride in elements: never a multiple of a quarter of the ways of the first-level cache, at which columns would
    /// evict each other.
    #[inline(always)]
    pub fn ld(self) -> usize {
        let pad = self.pad();
        if pad < 16 { pad } else { pad + 4 }
    }
    /// Elements above the diagonal.
    #[inline(always)]
    pub fn triangle(self) -> usize {
        self.n * (self.n - 1) / 2
    }
    /// Elements of a matrix.
    #[inline(always)]
    pub fn elements(self) -> usize {
        self.pad() * self.ld()
    }
}

/// Matrices A of a batch, and for each lane the largest sum of |x| / 256 over a row.
///
/// # Safety
/// The arrays hold `count` matrices; `out` has room for the elements of a group, `packed` for the larger of a triangle and
/// a row of it, `norms` for a number of each lane.
pub struct Skew<T: Scalar> {
    /// The strict upper triangles.
    pub upper: *const T,
    /// Imaginary parts of the diagonals.
    pub diagonal: Option<*const T::Real>,
    /// Sizes.
    pub sizes: Sizes,
    /// A
    pub out: *mut T::Real,
    /// Workspace.
    pub packed: *mut T::Real,
    /// The sums.
    pub norms: *mut T::Real,
}

kernel!(Skew::<T>, |own| {
    // SAFETY: the contract of `Skew`.
    unsafe { if T::PARTS == 1 { own.body::<S, 1>() } else { own.body::<S, 2>() } }
});

impl<T: Scalar> Skew<T> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = T::Real>, const P: usize>(&self) {
        let Skew { upper, diagonal, sizes, out, packed, norms } = *self;
        let (Sizes { n, count }, ld, v) = (sizes, sizes.ld(), P * S::LANES);
        let len = sizes.triangle();
        // SAFETY: the contract of `Skew`.
        unsafe {
            for e in 0..sizes.elements() {
                store::<S, P>(out.add(e * v), [S::zero(); P]);
            }
            to_lanes::<S>(upper.cast(), len * P, len * P, count, packed, (1, 1));
            let mut e = packed;
            for i in 0..n {
                for j in i + 1..n {
                    let x = load::<S, P>(e);
                    e = e.add(v);
                    store::<S, P>(out.add((i * ld + j) * v), x);
                    let mut x = conj::<S, P>(x);
                    for part in 0..P {
                        x[part] = S::sub(S::zero(), x[part]);
                    }
                    store::<S, P>(out.add((j * ld + i) * v), x);
                }
            }
            if let (2, Some(diagonal)) = (P, diagonal) {
                to_lanes::<S>(diagonal, n, n, count, packed, (1, 1));
                for i in 0..n {
                    let g = S::load(packed.add(i * S::LANES));
                    S::store(out.add((i * ld + i) * v + S::LANES), g);
                }
            }
            let (mut most, part) = (S::zero(), S::splat(S::R::of(1.0 / 256.0)));
            for i in 0..n {
                let mut sum = S::zero();
                for x in 0..n * P {
                    sum = S::mul_add(S::abs(S::load(out.add(i * ld * v + x * S::LANES))), part, sum);
                }
                most = S::select_gt(most, sum, most, sum);
            }
            S::store(norms, most);
        }
    }
}

/// Matrices (count, n, n) of a batch.
///
/// # Safety
/// The array holds `count` matrices; `out` has room for the elements of a group.
pub struct Load<T: Scalar> {
    /// The matrices.
    pub from: *const T,
    /// Sizes.
    pub sizes: Sizes,
    /// The group.
    pub out: *mut T::Real,
}

kernel!(Load::<T>, |own| {
    let (Sizes { n, count }, ld, p) = (own.sizes, own.sizes.ld(), T::PARTS);
    // SAFETY: the contract of `Load`.
    unsafe {
        for e in 0..own.sizes.elements() * p {
            S::store(own.out.add(e * S::LANES), S::zero());
        }
        to_lanes::<S>(own.from.cast(), n * n * p, n * n * p, count, own.out, (n * p, ld * p));
    }
});

/// Writes matrices (count, n, n); those of the group are lost.
///
/// # Safety
/// `to` has room for `count` matrices; the group exists.
pub struct Store<T: Scalar> {
    /// The group.
    pub from: *mut T::Real,
    /// Sizes.
    pub sizes: Sizes,
    /// The matrices.
    pub to: *mut T,
}

kernel!(Store::<T>, |own| {
    let (Sizes { n, count }, ld, p) = (own.sizes, own.sizes.ld(), T::PARTS);
    // SAFETY: the contract of `Store`; rows move towards the start.
    unsafe {
        for i in 0..n {
            for e in 0..n * p {
                let x = S::load(own.from.add((i * ld * p + e) * S::LANES));
                S::store(own.from.add((i * n * p + e) * S::LANES), x);
            }
        }
        from_lanes::<S>(own.from, n * n * p, own.to.cast(), n * n * p, count);
    }
});

/// C = A B
///
/// # Safety
/// The groups exist; C overlaps neither A nor B.
pub struct Multiply<T: Scalar> {
    /// A
    pub a: *const T::Real,
    /// B
    pub b: *const T::Real,
    /// C
    pub c: *mut T::Real,
    /// Sizes.
    pub sizes: Sizes,
}

kernel!(Multiply::<T>, |&Multiply { a, b, c, sizes }| {
    let (n, ld) = (sizes.pad(), sizes.ld());
    // SAFETY: the contract of `Multiply`.
    unsafe {
        if T::PARTS == 1 {
            product_lanes::<S, 1>(Left::Plain, a, b, c, n, ld);
        } else {
            product_lanes::<S, 2>(Left::Plain, a, b, c, n, ld);
        }
    }
});

/// to = c_0 M + c_1 M^H, and added to `sum`.
///
/// # Safety
/// The groups exist; M overlaps none of the others.
pub struct Adjoint<T: Scalar> {
    /// M
    pub from: *const T::Real,
    /// The result.
    pub to: *mut T::Real,
    /// The result is added to this one as well.
    pub sum: Option<*mut T::Real>,
    /// Sizes.
    pub sizes: Sizes,
    /// c_0 and c_1
    pub by: [T::Real; 2],
}

kernel!(Adjoint::<T>, |own| {
    // SAFETY: the contract of `Adjoint`.
    unsafe { if T::PARTS == 1 { own.body::<S, 1>() } else { own.body::<S, 2>() } }
});

impl<T: Scalar> Adjoint<T> {
    #[inline(always)]
    unsafe fn body<S: Simd<R = T::Real>, const P: usize>(&self) {
        let Adjoint { from, to, sum, sizes, by } = *self;
        let (n, ld, v) = (sizes.pad(), sizes.ld(), P * S::LANES);
        // SAFETY: the contract of `Adjoint`.
        unsafe {
            let by = [S::splat(by[0]), S::splat(by[1])];
            for i in 0..n {
                for j in 0..n {
                    let (x, y) =
                        (load::<S, P>(from.add((i * ld + j) * v)), load::<S, P>(from.add((j * ld + i) * v)));
                    let mut z = conj::<S, P>(y);
                    for part in 0..P {
                        z[part] = S::mul_add(by[0], x[part], S::mul(by[1], z[part]));
                    }
                    store::<S, P>(to.add((i * ld + j) * v), z);
                    if let Some(sum) = sum {
                        let at = sum.add((i * ld + j) * v);
                        store::<S, P>(at, add::<S, P>(load::<S, P>(at), z));
                    }
                }
            }
        }
    }
}

/// The sum of squares of each lane.
///
/// # Safety
/// The group exists; there is a sum for each lane.
pub struct Squares<T: Scalar> {
    /// The group.
    pub m: *const T::Real,
    /// Sizes.
    pub sizes: Sizes,
    /// The sums.
    pub sums: *mut T::Real,
}

kernel!(Squares::<T>, |own| {
    let (Sizes { n, .. }, ld) = (own.sizes, own.sizes.ld());
    // SAFETY: the contract of `Squares`.
    unsafe {
        let mut sum = S::zero();
        for i in 0..n {
            for e in 0..n * T::PARTS {
                let x = S::load(own.m.add((i * ld * T::PARTS + e) * S::LANES));
                sum = S::mul_add(x, x, sum);
            }
        }
        S::store(own.sums, sum);
    }
});

/// The gradients of the parameters from a skew G: upper_bar = G_ij, diagonal_bar = Im G_jj / 2.
///
/// # Safety
/// The group exists, the targets have room for `count` triangles and diagonals, `packed` for that of a group.
pub struct Gradient<T: Scalar> {
    /// G
    pub from: *const T::Real,
    /// Sizes.
    pub sizes: Sizes,
    /// upper_bar
    pub upper: Option<*mut T>,
    /// diagonal_bar
    pub diagonal: Option<*mut T::Real>,
    /// Workspace.
    pub packed: *mut T::Real,
}

kernel!(Gradient::<T>, |&Gradient { from, sizes, upper, diagonal, packed }| {
    let (Sizes { n, count }, ld, p) = (sizes, sizes.ld(), T::PARTS);
    let len = sizes.triangle();
    // SAFETY: the contract of `Gradient`.
    unsafe {
        if let Some(diagonal) = diagonal {
            let half = S::splat(S::R::of(0.5));
            for i in 0..n {
                let x = S::load(from.add(((i * ld + i) * p + p - 1) * S::LANES));
                S::store(packed.add(i * S::LANES), S::mul(half, x));
            }
            from_lanes::<S>(packed, n, diagonal, n, count);
        }
        if let Some(upper) = upper {
            let mut e = packed;
            for i in 0..n {
                for x in (i + 1) * p..n * p {
                    S::store(e, S::load(from.add((i * ld * p + x) * S::LANES)));
                    e = e.add(S::LANES);
                }
            }
            from_lanes::<S>(packed, len * p, upper.cast(), len * p, count);
        }
    }
});
