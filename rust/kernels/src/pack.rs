//! Packs the right-hand operand of a product into panels of two vectors of columns, `k` rows each.
//!
//! A panel row holds the columns of one row of elements; a complex row becomes two real ones, the factors of a_re and
//! a_im: (b, i b), so that a complex product is a real one of twice the depth and twice the width. The last panel is one
//! vector wide if that suffices; missing columns are zero.

use crate::dispatch::{compiled, kernel};
use crate::scalar::{Scalar, c32, c64};
use crate::simd::Simd;
use num_traits::One;

/// A matrix in memory: element (i, j) at `data[i * rows + j * cols]`, conjugated when read if `conj`. One stride is 1.
#[derive(Clone, Copy)]
pub struct Operand<T> {
    /// Element (0, 0).
    pub data: *const T,
    /// Row stride, in elements.
    pub rows: usize,
    /// Column stride, in elements.
    pub cols: usize,
    /// Whether the conjugate is read.
    pub conj: bool,
}

impl<T> Operand<T> {
    /// A row-major matrix with the given row stride.
    pub fn new(data: *const T, stride: usize) -> Self {
        Operand { data, rows: stride, cols: 1, conj: false }
    }
    /// Transposed.
    pub fn t(self) -> Self {
        Operand { rows: self.cols, cols: self.rows, ..self }
    }
    /// Element-wise conjugate.
    pub fn conj(self) -> Self {
        Operand { conj: !self.conj, ..self }
    }
    /// Conjugate transpose.
    pub fn h(self) -> Self {
        self.t().conj()
    }
    /// The block that starts at (i, j).
    pub fn at(self, i: usize, j: usize) -> Self {
        Operand { data: self.data.wrapping_add(i * self.rows + j * self.cols), ..self }
    }
}

/// Width of the panel that starts at real column `col` of `width`: two vectors, or one if the rest fits.
#[inline(always)]
pub fn panel_width<S: Simd>(width: usize, col: usize) -> usize {
    if width - col > S::LANES { 2 * S::LANES } else { S::LANES }
}

/// Real numbers of a packed k x n operand of T, `lanes` per vector.
pub fn packed_len<T: Scalar>(k: usize, n: usize, lanes: usize) -> usize {
    (n * T::PARTS).div_ceil(lanes) * lanes * k * T::PARTS
}

/// The panel that starts at real column `col` of a k x n operand: `k PARTS` rows of [`panel_width`] numbers at `out`.
/// With `conj_a` the left operand of the product is conjugated.
///
/// # Safety
/// The operand is a readable k x n matrix, `factors` null or k numbers, `out` has room for the panel.
pub(crate) struct Panel<T: Scalar> {
    pub b: Operand<T>,
    /// Factors of the rows; null for none.
    pub factors: *const T::Real,
    pub conj_a: bool,
    pub k: usize,
    pub n: usize,
    pub col: usize,
    pub out: *mut T,
}

kernel!(Panel::<T>, |&Panel { b, factors, conj_a, k, n, col, out }| {
    let (width, out) = (panel_width::<S>(n * T::PARTS, col), out.cast());
    // SAFETY: the operand is a readable k x n matrix, `out` has room for the panel (contract of `Panel`).
    unsafe {
        match T::PARTS {
            1 => pack_real::<T, S>(b, k, n, col, width, out),
            _ => pack_complex::<T, S>(b, conj_a, k, n, col, width, out),
        }
        if !factors.is_null() {
            for row in 0..k * T::PARTS {
                let by = S::splat(*factors.add(row / T::PARTS));
                for j in (0..width).step_by(S::LANES) {
                    let at = out.add(row * width + j);
                    S::store(at, S::mul(S::load(at), by));
                }
            }
        }
    }
});

/// Every `count`-th panel, starting with the `id`-th, of a k x n operand.
///
/// # Safety
/// The operand is a readable k x n matrix; `out` holds [`packed_len`] numbers, which are not read meanwhile.
pub struct Pack<T: Scalar> {
    /// The operand.
    pub b: Operand<T>,
    /// Its rows.
    pub k: usize,
    /// Its columns.
    pub n: usize,
    /// The panels.
    pub out: *mut T::Real,
    /// Index of this thread among those that share the panels.
    pub id: usize,
    /// Number of these threads.
    pub count: usize,
}

kernel!(Pack::<T>, |&Pack { b, k, n, out, id, count }| {
    for col in (id * 2 * S::LANES..n * T::PARTS).step_by(count * 2 * S::LANES) {
        // SAFETY: the operand is a readable k x n matrix; `out` holds `packed_len` numbers, enough for every panel.
        unsafe {
            let out = out.add(col * k * T::PARTS).cast(); // after the panels of the columns before `col`
            S::outlined(&Panel { b, factors: std::ptr::null(), conj_a: false, k, n, col, out });
        }
    }
});

compiled! {
    /// Packing, compiled for each element type.
    PackKernels: Scalar for f32, f64, c32, c64; {
        /// [`Pack`]
        fn pack(Pack);
    }
}

#[inline(always)]
unsafe fn pack_real<T: Scalar, S: Simd<R = T::Real>>(
    b: Operand<T>,
    k: usize,
    n: usize,
    col: usize,
    width: usize,
    out: *mut S::R,
) {
    // SAFETY: the operand is a readable k x n matrix, `out` has room for the panel (contract of `Panel`).
    unsafe {
        let data = b.data.cast::<S::R>();
        if b.cols == 1 {
            for p in 0..k {
                for j in (0..width).step_by(S::LANES) {
                    let live = n.saturating_sub(col + j);
                    let v =
                        if live > 0 { S::load_n(data.add(p * b.rows + col + j), live) } else { S::zero() };
                    S::store(out.add(p * width + j), v);
                }
            }
        } else {
            for j in (0..width).step_by(S::LANES) {
                let live = n.saturating_sub(col + j).min(S::LANES);
                // whole blocks in loops of constant length, so that they stay in registers
                let whole = if live == S::LANES { k / S::LANES * S::LANES } else { 0 };
                for p in (0..whole).step_by(S::LANES) {
                    let mut block = [S::zero(); 16];
                    for c in 0..S::LANES {
                        block[c] = S::load(data.add(p + (col + j + c) * b.cols));
                    }
                    S::transpose(&mut block[..S::LANES]);
                    for q in 0..S::LANES {
                        S::store(out.add((p + q) * width + j), block[q]);
                    }
                }
                for p in (whole..k).step_by(S::LANES) {
                    let deep = (k - p).min(S::LANES);
                    let mut block = [S::zero(); 16];
                    for c in 0..live {
                        block[c] = S::load_n(data.add(p + (col + j + c) * b.cols), deep);
                    }
                    S::transpose(&mut block[..S::LANES]);
                    for q in 0..deep {
                        S::store(out.add((p + q) * width + j), block[q]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn pack_complex<T: Scalar, S: Simd<R = T::Real>>(
    b: Operand<T>,
    conj_a: bool,
    k: usize,
    n: usize,
    col: usize,
    width: usize,
    out: *mut S::R,
) {
    // SAFETY: the operand is a readable k x n matrix, `out` has room for the panel (contract of `Panel`).
    unsafe {
        let one = S::R::one();
        // b' = b or conj(b): flip the odd lanes; +-i b': exchange the lanes of each pair, flip the even or the odd lanes
        let own = if b.conj { S::alternate(one, -one) } else { S::splat(one) };
        let turn = if conj_a { S::alternate(one, -one) } else { S::alternate(-one, one) };
        if b.cols == 1 {
            for p in 0..k {
                let row = b.data.add(p * b.rows).cast::<S::R>();
                for j in (0..width).step_by(S::LANES) {
                    let live = (2 * n).saturating_sub(col + j);
                    let v = if live > 0 { S::load_n(row.add(col + j), live) } else { S::zero() };
                    let v = S::mul(v, own);
                    S::store(out.add(2 * p * width + j), v);
                    S::store(out.add((2 * p + 1) * width + j), S::mul(S::swap_pairs(v), turn));
                }
            }
        } else {
            let side = S::LANES / 2;
            for j in (0..width).step_by(S::LANES) {
                let first = (col + j) / 2;
                let live = n.saturating_sub(first).min(side);
                for p in (0..k).step_by(side) {
                    let deep = (k - p).min(side);
                    let mut block = [S::zero(); 8];
                    for c in 0..live {
                        block[c] = S::load_n(b.data.add(p + (first + c) * b.cols).cast(), 2 * deep);
                    }
                    S::transpose_pairs(&mut block[..side]);
                    for q in 0..deep {
                        let v = S::mul(block[q], own);
                        S::store(out.add(2 * (p + q) * width + j), v);
                        S::store(out.add((2 * (p + q) + 1) * width + j), S::mul(S::swap_pairs(v), turn));
                    }
                }
            }
        }
    }
}
