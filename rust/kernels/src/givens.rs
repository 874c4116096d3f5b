//! Rotations of rows in planes of two coordinates (i, j), one after another: y_i = c x_i - s x_j, y_j = s x_i + c x_j.
//!
//! A block of rows is transposed, so that a vector holds one coordinate of all of them; a complex row is two real ones, since
//! rotations are real. Backward undoes the rotations on y and on its cotangent g:
//!
//! ```text
//! theta_bar = sum over rows of g_j y_i - g_i y_j,   x = G^T y,   x_bar = G^T g
//! ```
//!
//! Products and sums are not contracted and the sum runs over eight rows at a time, so that all instruction sets give the same
//! bits.

use crate::dispatch::{Kernel, compiled};
use crate::lanes::MOST;
use crate::scalar::{Scalar, c32, c64};
use crate::simd::Simd;

/// Real rows of a block: as many as the longest vector has lanes.
pub const BLOCK: usize = MOST;
/// Real rows whose products are summed before they are added to the gradient.
const SUM: usize = 8;

/// The rotations of one matrix.
#[derive(Clone, Copy)]
pub struct Planes<R> {
    /// i and j of each.
    pub places: *const usize,
    /// s of each.
    pub sin: *const R,
    /// c of each.
    pub cos: *const R,
    /// Number of rotations.
    pub count: usize,
    /// Coordinates of a row.
    pub n: usize,
}

/// Rows through the rotations, the last one first, or through the inverses, the first one first.
///
/// # Safety
/// The places of a rotation are two of the n coordinates; x and out have the rows, apart from each other; `y` has n [`BLOCK`]
/// numbers.
pub struct GivensTurn<T: Scalar> {
    /// The rotations.
    pub planes: Planes<T::Real>,
    /// Whether the inverses are applied.
    pub adjoint: bool,
    /// The rows.
    pub x: *const T,
    /// Number of them.
    pub rows: usize,
    /// The result.
    pub out: *mut T,
    /// Scratch.
    pub y: *mut T::Real,
}

/// Adds the gradients of the angles from (x, ct), ct the cotangents of W x, to `sums`, and writes x_bar and W x where they are not
/// null.
///
/// # Safety
/// As of [`GivensTurn`]; the arrays have `rows` rows, `sums` a number for each rotation, `y` twice as many.
pub struct GivensPull<T: Scalar> {
    /// The rotations.
    pub planes: Planes<T::Real>,
    /// x
    pub x: *const T,
    /// ct
    pub ct: *const T,
    /// Number of rows.
    pub rows: usize,
    /// The gradients.
    pub sums: *mut T::Real,
    /// x_bar
    pub x_bar: *mut T,
    /// W x
    pub out: *mut T,
    /// Scratch.
    pub y: *mut T::Real,
}

compiled! {
    /// Plane rotations, compiled for each element type.
    GivensKernels: Scalar for f32, f64, c32, c64; {
        /// [`GivensTurn`]
        fn givens_turn(GivensTurn);
        /// [`GivensPull`]
        fn givens_pull(GivensPull);
    }
}

/// A block with V vectors per coordinate.
struct Across<T: Scalar, S, const V: usize> {
    y: *mut T::Real,
    n: usize,
    isa: std::marker::PhantomData<S>,
}

impl<T: Scalar, S: Simd<R = T::Real>, const V: usize> Across<T, S, V> {
    /// Elements of a vector along a row, and so rows of a vector across.
    const ELEMENTS: usize = S::LANES / T::PARTS;

    #[inline(always)]
    fn new(y: *mut T::Real, n: usize) -> Self {
        Across { y, n, isa: std::marker::PhantomData }
    }

    /// Coordinate i of the rows of vector v.
    #[inline(always)]
    fn at(&self, i: usize, v: usize) -> *mut T::Real {
        self.y.wrapping_add((i * V + v) * S::LANES)
    }

    /// Coordinate i of all rows.
    #[inline(always)]
    unsafe fn get(&self, i: usize) -> [S::V; V] {
        // SAFETY: the block has n coordinates.
        unsafe { std::array::from_fn(|v| S::load(self.at(i, v))) }
    }

    #[inline(always)]
    unsafe fn transposed(block: &mut [S::V]) {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        unsafe { if T::PARTS == 1 { S::transpose(block) } else { S::transpose_pairs(block) } }
    }

    /// Rows into the block; lanes without a row are zero.
    #[inline(always)]
    unsafe fn take(&self, x: *const T, rows: usize) {
        for v in 0..V {
            let first = v * Self::ELEMENTS;
            for e in (0..self.n).step_by(Self::ELEMENTS) {
                let live = (self.n - e).min(Self::ELEMENTS);
                // SAFETY: the rows and the coordinates exist.
                unsafe {
                    let mut block = [S::zero(); MOST];
                    for (r, row) in block[..Self::ELEMENTS].iter_mut().enumerate() {
                        if first + r < rows {
                            let p = x.add((first + r) * self.n + e).cast::<T::Real>();
                            *row = if live == Self::ELEMENTS {
                                S::load(p)
                            } else {
                                S::load_n(p, live * T::PARTS)
                            };
                        }
                    }
                    Self::transposed(&mut block[..Self::ELEMENTS]);
                    for (i, &column) in block[..live].iter().enumerate() {
                        S::store(self.at(e + i, v), column);
                    }
                }
            }
        }
    }

    /// The rows of the block.
    #[inline(always)]
    unsafe fn give(&self, out: *mut T, rows: usize) {
        for v in 0..V {
            let first = v * Self::ELEMENTS;
            for e in (0..self.n).step_by(Self::ELEMENTS) {
                let live = (self.n - e).min(Self::ELEMENTS);
                // SAFETY: the rows and the coordinates exist.
                unsafe {
                    let mut block = [S::zero(); MOST];
                    for (i, column) in block[..live].iter_mut().enumerate() {
                        *column = S::load(self.at(e + i, v));
                    }
                    Self::transposed(&mut block[..Self::ELEMENTS]);
                    for (r, &row) in block[..Self::ELEMENTS].iter().enumerate() {
                        if first + r < rows {
                            let p = out.add((first + r) * self.n + e).cast::<T::Real>();
                            if live == Self::ELEMENTS {
                                S::store(p, row);
                            } else {
                                S::store_n(p, row, live * T::PARTS);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Turns the coordinates, which have these values.
    #[inline(always)]
    unsafe fn turn(&self, [i, j]: [usize; 2], [a, b]: [[S::V; V]; 2], [c, s]: [S::V; 2]) {
        for v in 0..V {
            // SAFETY: the coordinates exist.
            unsafe {
                S::store(self.at(i, v), S::sub(S::mul(c, a[v]), S::mul(s, b[v])));
                S::store(self.at(j, v), S::add(S::mul(s, a[v]), S::mul(c, b[v])));
            }
        }
    }

    /// All rotations, or all inverses.
    #[inline(always)]
    unsafe fn through(&self, planes: &Planes<T::Real>, adjoint: bool) {
        for step in 0..planes.count {
            let k = if adjoint { step } else { planes.count - 1 - step };
            // SAFETY: the contract of `GivensTurn`.
            unsafe {
                let ([i, j], [c, s]) = planes.get::<S>(k, adjoint);
                self.turn([i, j], [self.get(i), self.get(j)], [c, s]);
            }
        }
    }

    /// Undoes all rotations on this block and on that of the cotangents.
    #[inline(always)]
    unsafe fn undo(&self, g: &Self, planes: &Planes<T::Real>, sums: *mut T::Real) {
        for first in (0..planes.count).step_by(S::LANES) {
            let live = (planes.count - first).min(S::LANES);
            // SAFETY: the contract of `GivensPull`.
            unsafe {
                let mut products = [[S::zero(); MOST]; V];
                for r in 0..live {
                    let (at, turn) = planes.get::<S>(first + r, true);
                    let (y, ct) = (at.map(|i| self.get(i)), at.map(|i| g.get(i)));
                    for (v, products) in products.iter_mut().enumerate() {
                        products[r] = S::sub(S::mul(ct[1][v], y[0][v]), S::mul(ct[0][v], y[1][v]));
                    }
                    self.turn(at, y, turn);
                    g.turn(at, ct, turn);
                }
                // lane by lane, for as many rotations as a vector has lanes
                for products in &mut products {
                    S::transpose(&mut products[..S::LANES]);
                }
                let (p, mut sum) = (sums.add(first), S::zero());
                let mut total = S::load_n(p, live);
                for lane in 0..V * S::LANES {
                    let own = products[lane / S::LANES][lane % S::LANES];
                    sum = if lane % SUM == 0 { own } else { S::add(sum, own) };
                    if lane % SUM == SUM - 1 {
                        total = S::add(total, sum);
                    }
                }
                S::store_n(p, total, live);
            }
        }
    }
}

impl<R: crate::scalar::Real> Planes<R> {
    /// i and j, and in all lanes c and s of rotation k or of its inverse.
    #[inline(always)]
    unsafe fn get<S: Simd<R = R>>(&self, k: usize, inverse: bool) -> ([usize; 2], [S::V; 2]) {
        // SAFETY: there is rotation k.
        unsafe {
            let (s, c) = (*self.sin.add(k), *self.cos.add(k));
            (
                [*self.places.add(2 * k), *self.places.add(2 * k + 1)],
                [c, if inverse { -s } else { s }].map(|x| S::splat(x)),
            )
        }
    }
}

impl<T: Scalar> GivensTurn<T> {
    #[inline(always)]
    unsafe fn blocks<S: Simd<R = T::Real>, const V: usize>(&self) {
        let (n, most) = (self.planes.n, V * S::LANES / T::PARTS);
        let y = Across::<T, S, V>::new(self.y, n);
        for first in (0..self.rows).step_by(most) {
            let rows = most.min(self.rows - first);
            // SAFETY: the contract above.
            unsafe {
                y.take(self.x.add(first * n), rows);
                y.through(&self.planes, self.adjoint);
                y.give(self.out.add(first * n), rows);
            }
        }
    }
}

impl<T: Scalar> GivensPull<T> {
    #[inline(always)]
    unsafe fn blocks<S: Simd<R = T::Real>, const V: usize>(&self) {
        let (n, most) = (self.planes.n, V * S::LANES / T::PARTS);
        let y = Across::<T, S, V>::new(self.y, n);
        let g = Across::<T, S, V>::new(y.at(n, 0), n);
        for first in (0..self.rows).step_by(most) {
            let rows = most.min(self.rows - first);
            // SAFETY: the contract above.
            unsafe {
                y.take(self.x.add(first * n), rows);
                y.through(&self.planes, false);
                if !self.out.is_null() {
                    y.give(self.out.add(first * n), rows);
                }
                g.take(self.ct.add(first * n), rows);
                y.undo(&g, &self.planes, self.sums);
                if !self.x_bar.is_null() {
                    g.give(self.x_bar.add(first * n), rows);
                }
            }
        }
    }
}

/// Runs `blocks` with the vectors per coordinate that these rows fill, half as many as fit or all.
macro_rules! by_blocks {
    ($kernel:ident) => {
        impl<T: Scalar> Kernel<T::Real> for $kernel<T> {
            #[inline(always)]
            unsafe fn run<S: Simd<R = T::Real>>(&self) {
                let half = self.rows * T::PARTS <= SUM;
                // SAFETY: the contract of the kernel.
                unsafe {
                    match (S::LANES, half) {
                        (16, _) | (8, true) => self.blocks::<S, 1>(),
                        (8, false) | (4, true) => self.blocks::<S, 2>(),
                        _ => self.blocks::<S, 4>(),
                    }
                }
            }
        }
    };
}
by_blocks!(GivensTurn);
by_blocks!(GivensPull);
