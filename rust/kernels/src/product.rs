//! C = base + alpha A diag(factors) B for matrices in memory, of any of the four element types.
//!
//! B is packed panel by panel ([`crate::pack`]), its rows multiplied by the factors, if there are any; A is read in place
//! with any strides, one number broadcast at a time.
//! Zeros of triangular operands are skipped by limiting the range of k of each tile (memory must hold these zeros, as a
//! tile may extend into them). k is cut into blocks of `KC`, summed one after another. The threads of a call share the
//! column panels of C, assigned in snake order so that triangular work is balanced; a C of few columns is shared by rows
//! instead.

use crate::dispatch::{compiled, kernel, lanes};
use crate::pack::{Operand, Panel, panel_width};
use crate::scalar::{Scalar, c32, c64};
use crate::simd::Simd;
use crate::stop::poll;
use crate::tile::{Grid, MAX_ROWS, Term, compute, heights, tiles};
use std::ops::Range;

/// Depth of a block of k, in elements: a panel of 256 x 32 numbers of f32 fits in the first-level cache.
const KC: usize = 256;
/// Height of a block of A: with KC columns it fills half of the second-level cache.
const MC: usize = 64 * MAX_ROWS;
/// Row strides that are a multiple of this many bytes map the rows of a tile to the same cache sets.
const ALIAS: usize = 2048;

/// The part of a matrix that can be non-zero (A, B) or is computed (C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// Everything.
    Full,
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

impl Triangle {
    /// The shape of the transposed matrix.
    pub fn t(self) -> Self {
        match self {
            Triangle::Full => Triangle::Full,
            Triangle::Lower => Triangle::Upper,
            Triangle::Upper => Triangle::Lower,
        }
    }
}

/// The share of one of `count` threads in C = base + alpha A B.
///
/// # Safety
/// The matrices exist in memory; C overlaps neither A nor B, but may be B if k and m are at most 256; a base that
/// overlaps C is C itself; all threads run the same product; `scratch` holds [`scratch_len`] numbers, separate for each
/// thread.
#[derive(Clone, Copy)]
pub struct Multiply<T: Scalar> {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// A
    pub a: Operand<T>,
    /// B
    pub b: Operand<T>,
    /// Factors of the rows of B (null: none).
    pub factors: *const T::Real,
    /// C, row-major.
    pub c: *mut T,
    /// Row stride of C.
    pub c_rows: usize,
    /// alpha
    pub alpha: T::Real,
    /// The addend (null: none), row-major.
    pub base: *const T,
    /// Row stride of the base.
    pub base_rows: usize,
    /// Shapes of A, B and C. A and B must hold zeros outside their triangles; C is unspecified outside its own.
    pub shape: [Triangle; 3],
    /// Matrices whose first m rows and n columns are prefetched meanwhile (null: none), and their row strides.
    pub soon: [(*const T, usize); 2],
    /// The columns to compute, if not all: panels are then assigned by columns whatever their number.
    pub span: Option<(usize, usize)>,
    /// Index of this thread.
    pub id: usize,
    /// Number of threads.
    pub count: usize,
    /// Scratch.
    pub scratch: *mut T::Real,
}

/// Real numbers of scratch per thread for products of up to m rows and depth k.
pub fn scratch_len<T: Scalar>(m: usize, k: usize) -> usize {
    let panel = KC.min(k.max(1)) * T::PARTS * 32;
    // the copy of a block of A with an odd row stride
    panel + (m.min(MC) + 32) * (KC.min(k.max(1)) + 32) * T::PARTS
}

/// The columns among `start..end` assigned to one of `count` threads by a product of width n that names its columns.
pub fn own_columns<T: Scalar>(
    (id, count): (usize, usize),
    n: usize,
    (start, end): (usize, usize),
) -> impl Iterator<Item = Range<usize>> {
    let panel = 2 * lanes::<T::Real>() / T::PARTS;
    (start / panel..end.div_ceil(panel))
        .filter(move |&p| dealt(p, count) == id)
        .map(move |p| p * panel..((p + 1) * panel).min(n))
}

/// The thread that column panel `panel` is assigned to, in snake order, so that triangular work is balanced.
fn dealt(panel: usize, count: usize) -> usize {
    let (lap, place) = (panel / count, panel % count);
    if lap.is_multiple_of(2) { place } else { count - 1 - place }
}

compiled! {
    /// Products, compiled for each element type.
    ProductKernels: Scalar for f32, f64, c32, c64; {
        /// [`Multiply`]
        fn multiply(Multiply);
    }
}

kernel!(Multiply::<T>, |kernel| {
    let q = kernel;
    let Multiply { id, count, scratch, .. } = *q;
    let width = q.n * T::PARTS;
    let panels = width.div_ceil(2 * S::LANES);
    // Few panels: share rows instead, so that no thread is idle; every thread packs the few panels itself.
    let by_rows = q.span.is_none() && count > 1 && panels < 2 * count && q.m >= 2 * panels;
    // A member takes whole tiles of those that one thread would compute: their edges decide which stored zeros multiply
    // infinities.
    let share =
        if by_rows { (border::<S>(q.m, (id, count)), border::<S>(q.m, (id + 1, count))) } else { (0, q.m) };
    let mine = |panel: usize| by_rows || dealt(panel, count) == id;
    if !by_rows && id >= panels {
        return;
    }
    let (first, end) = q.span.map_or((0, panels), |(start, end)| {
        (start * T::PARTS / (2 * S::LANES), (end * T::PARTS).div_ceil(2 * S::LANES))
    });
    let last = q.k.saturating_sub(1) / KC;
    for block in 0..=last {
        let (k0, k1) = (block * KC, q.k.min((block + 1) * KC));
        for (row, height) in tiles(q.m, MC) {
            let rows = (row, row + height);
            let own = (rows.0.max(share.0), rows.1.min(share.1));
            if own.0 >= own.1 {
                continue;
            }
            poll((own.1 - own.0) * (k1 - k0) * q.n * T::PARTS * T::PARTS / count);
            // SAFETY: the contract of `Multiply`; the panel takes KC.min(k) rows of the scratch.
            unsafe {
                let copy = scratch.add(KC.min(q.k.max(1)) * 2 * S::LANES * T::PARTS);
                let a = unalias::<T>(q, own.0, own.1, k0, k1, copy);
                for panel in (first..end).filter(|&p| mine(p)) {
                    one_panel::<T, S>(q, a, panel * 2 * S::LANES, (rows, own), (k0, k1), scratch);
                }
            }
        }
    }
});

/// The row before which `id` of `count` parts of the tiles of m rows end.
#[inline(always)]
fn border<S: Simd>(m: usize, (id, count): (usize, usize)) -> usize {
    let groups = || {
        tiles(m, MC).flat_map(|(at, rows)| {
            heights::<S>(rows, S::ROWS).map(move |(row, height, count)| (at + row, height, count))
        })
    };
    let mut before = groups().map(|(_, _, tiles)| tiles).sum::<usize>() * id / count;
    for (row, height, tiles) in groups() {
        if before < tiles {
            return row + before * height;
        }
        before -= tiles;
    }
    m
}

/// Rows i0..i1, columns k0..k1 of A, copied to an odd row stride if its own strides would alias in the cache.
#[inline(always)]
unsafe fn unalias<T: Scalar>(
    q: &Multiply<T>,
    i0: usize,
    i1: usize,
    k0: usize,
    k1: usize,
    copy: *mut T::Real,
) -> Operand<T> {
    let (a, copy) = (q.a, copy.cast::<T>());
    // Strided along k, A touches a new cache line in every step; contiguous along k, one line per row of the tile.
    let (stride, least) = if a.cols == 1 { (a.rows, 2 * ALIAS) } else { (a.cols, ALIAS) };
    let stride = stride * size_of::<T>();
    if !stride.is_multiple_of(ALIAS) || stride < least || i1 - i0 < 4 * MAX_ROWS {
        return a;
    }
    // SAFETY: the scratch of `scratch_len` holds (m + 32) (KC + 32) elements; source and copy do not overlap.
    unsafe {
        if a.cols == 1 {
            let pitch = (k1 - k0) + 16;
            for i in i0..i1 {
                let to = copy.add((i - i0) * pitch);
                std::ptr::copy_nonoverlapping(a.data.add(i * a.rows + k0), to, k1 - k0);
            }
            Operand { data: copy.wrapping_sub(i0 * pitch + k0), rows: pitch, ..a }
        } else {
            let pitch = (i1 - i0) + 16;
            for p in k0..k1 {
                let to = copy.add((p - k0) * pitch);
                std::ptr::copy_nonoverlapping(a.data.add(p * a.cols + i0), to, i1 - i0);
            }
            Operand { data: copy.wrapping_sub(k0 * pitch + i0), cols: pitch, ..a }
        }
    }
}

/// The tiles of rows i0..i1 that lie in the rows `from..to`, in the panel of C at real column `col`, for one block of k.
#[inline(always)]
unsafe fn one_panel<T: Scalar, S: Simd<R = T::Real>>(
    q: &Multiply<T>,
    a: Operand<T>,
    col: usize,
    ((i0, i1), (from, to)): ((usize, usize), (usize, usize)),
    (k0, k1): (usize, usize),
    packed: *mut S::R,
) {
    let width = panel_width::<S>(q.n * T::PARTS, col);
    // first and last element column of the panel
    let (j0, j1) = (col / T::PARTS, (col + width).div_ceil(T::PARTS).min(q.n) - 1);
    let (mut b0, mut b1) = (k0, k1);
    match q.shape[1] {
        Triangle::Upper => b1 = b1.min(j1 + 1),
        Triangle::Lower => b0 = b0.max(j0),
        Triangle::Full => {}
    }
    // the strides of A in real numbers; its complex elements are pairs of steps
    let (rows, cols) = (a.rows * T::PARTS, a.cols * T::PARTS);
    let (inner, outer) = if T::PARTS == 2 { (1, cols) } else { (cols, 2 * cols) };
    // SAFETY: the contract of `Multiply`; the panel has at most KC rows.
    unsafe {
        if b0 < b1 {
            let (b, out) = (q.b.at(b0, 0), packed.cast());
            let factors = if q.factors.is_null() { q.factors } else { q.factors.add(b0) };
            S::outlined(&Panel { b, factors, conj_a: a.conj, k: b1 - b0, n: q.n, col, out });
        }
        // the range of k of a tile; empty where C is not computed
        let range = |row: usize, height: usize| {
            let i = i0 + row;
            let outside = match q.shape[2] {
                Triangle::Upper => i > j1,
                Triangle::Lower => j0 > i + height - 1,
                Triangle::Full => false,
            };
            match q.shape[0] {
                _ if outside => None,
                Triangle::Lower => Some((b0, b1.min(i + height))),
                Triangle::Upper => Some((b0.max(i), b1)),
                Triangle::Full => Some((b0, b1)),
            }
        };
        let part = |row: usize, height: usize, count: usize, (p0, p1): (usize, usize)| {
            let i = i0 + row;
            // An empty range must still write zeros in the first block.
            let depth = p1.saturating_sub(p0);
            if depth == 0 && k0 > 0 {
                return;
            }
            let p0 = p0.min(q.k.saturating_sub(1)).max(b0.min(q.k.saturating_sub(1)));
            let (base, base_rows) = if k0 > 0 { (q.c.cast_const(), q.c_rows) } else { (q.base, q.base_rows) };
            let base = match base.is_null() {
                true => std::ptr::null(),
                false => base.wrapping_add(i * base_rows).cast::<S::R>().wrapping_add(col),
            };
            let c = q.c.wrapping_add(i * q.c_rows).cast::<S::R>().wrapping_add(col);
            let a = a.at(i, p0).data.cast();
            let b = packed.wrapping_add(p0.saturating_sub(b0) * T::PARTS * width).cast_const();
            let grid = Grid {
                terms: [Term { a, rows, inner, outer, depth: depth * T::PARTS, b }, Term::NONE],
                whole: q.m,
                panels: 1,
                turned: false,
                alpha: q.alpha,
                base,
                base_rows: base_rows * T::PARTS,
                bias: std::ptr::null(),
                c,
                c_rows: q.c_rows * T::PARTS,
                live: q.n * T::PARTS - col,
                soon: q.soon.map(|(at, rows)| match at.is_null() {
                    true => std::ptr::null(),
                    false => at.wrapping_add(i * rows).cast::<S::R>().wrapping_add(col),
                }),
                soon_rows: q.soon.map(|(_, rows)| rows * T::PARTS),
            };
            compute::<S>(&grid, (0, height, count), width > S::LANES);
        };
        for (row, height, count) in heights::<S>(i1 - i0, S::ROWS) {
            // vertically adjacent tiles with the same range are one call
            let at = i0 + row;
            let mut tile = from.saturating_sub(at).div_ceil(height);
            let count = count.min(to.saturating_sub(at).div_ceil(height));
            while tile < count {
                let (first, own) = (tile, range(row + tile * height, height));
                tile += 1;
                while tile < count && range(row + tile * height, height) == own {
                    tile += 1;
                }
                if let Some(own) = own {
                    part(row + first * height, height, tile - first, own);
                }
            }
        }
    }
}
