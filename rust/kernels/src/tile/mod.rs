//! The register tile, the inner loop of all products: C = base + alpha (A_0 B_0 + A_1 B_1) + bias for MR rows and NV
//! vectors of columns, where A is read in place, one number broadcast at a time, and B is packed.
//!
//! Every element of the result is one chain of fused multiply-adds over k, whatever the height of its tile, so results
//! do not depend on how rows are assigned to tiles or threads. Only if the *whole* problem has few rows, the loop over k
//! is unrolled with several independent accumulators (`mac_few`), to hide the latency of the multiply-add.
//!
//! A tile is a separate function per instruction set, real type, height and width; complex products are real ones of
//! twice the depth whose steps come in pairs.

mod mac;

use crate::dispatch::Kernel;
use crate::scalar::Real;
use crate::simd::Simd;
pub(crate) use mac::four_steps;
use mac::{mac, mac_few};

/// Tallest tile of a product on any instruction set; [`Simd::ROWS`] is the tallest on a given one.
pub const MAX_ROWS: usize = 8;

/// One product A B. Step 2 q + r of k reads A at `a[i rows + q outer + r inner]`.
#[derive(Clone, Copy)]
pub struct Term<R> {
    /// A of the first row and step.
    pub a: *const R,
    /// Row stride of A.
    pub rows: usize,
    /// Stride from an even step to the following odd one.
    pub inner: usize,
    /// Stride from one even step to the next.
    pub outer: usize,
    /// Steps, each with a row of packed B.
    pub depth: usize,
    /// The packed panel.
    pub b: *const R,
}

impl<R> Term<R> {
    /// No product.
    pub const NONE: Self =
        Term { a: std::ptr::null(), rows: 0, inner: 1, outer: 2, depth: 0, b: std::ptr::null() };

    /// Contiguous rows of `depth` numbers, row stride `rows`.
    pub fn rows(a: *const R, rows: usize, depth: usize, b: *const R) -> Self {
        Term { a, rows, inner: 1, outer: 2, depth, b }
    }
}

/// Adjacent panels of packed B, and the rows of A that multiply them: one function call serves all tiles of a height.
#[derive(Clone, Copy)]
pub struct Grid<R> {
    /// The products; A of the first row, B of the first panel, the panels contiguous.
    pub terms: [Term<R>; 2],
    /// Rows of the whole problem: determines the order of summation for all its tiles.
    pub whole: usize,
    /// Number of panels.
    pub panels: usize,
    /// Whether they are taken from the last to the first.
    pub turned: bool,
    /// alpha
    pub alpha: R,
    /// The addend of the products; null for none.
    pub base: *const R,
    /// Row stride of the base.
    pub base_rows: usize,
    /// A number per column to add, whole vectors; null for none.
    pub bias: *const R,
    /// C
    pub c: *mut R,
    /// Row stride of C.
    pub c_rows: usize,
    /// Columns that C has from here on.
    pub live: usize,
    /// Rows to prefetch meanwhile; null for none.
    pub soon: [*const R; 2],
    /// Their row strides.
    pub soon_rows: [usize; 2],
}

/// The first `rows` rows of the grid, in tiles of at most `max` rows.
///
/// # Safety
/// That of [`compute`].
#[inline(always)]
pub(crate) unsafe fn compute_rows<S: Simd>(grid: &Grid<S::R>, rows: usize, max: usize, two: bool) {
    for (row, height, count) in heights::<S>(rows, max) {
        // SAFETY: these rows are among those of the grid.
        unsafe { compute::<S>(grid, (row, height, count), two) }
    }
}

/// Computes `count` tiles of `height` rows, from row `row` on, on panels of two vectors of columns, or one.
///
/// # Safety
/// All rows and columns exist, those of packed B as whole vectors; C overlaps neither A nor B; height is one of
/// [`heights`].
#[inline(always)]
pub(crate) unsafe fn compute<S: Simd>(
    grid: &Grid<S::R>,
    (row, height, count): (usize, usize, usize),
    two: bool,
) {
    macro_rules! of {
        ($mr:literal) => {
            // SAFETY: the rows and columns exist (contract of `compute`).
            unsafe {
                if two {
                    S::outlined(&Fixed::<S::R, $mr, 2> { grid, row, count })
                } else {
                    S::outlined(&Fixed::<S::R, $mr, 1> { grid, row, count })
                }
            }
        };
    }
    // a match on a constant, so that tiles an instruction set never runs are not compiled for it
    match S::STEP_ROWS {
        4 => match height {
            1 => of!(1),
            _ => of!(4),
        },
        6 => match height {
            1 => of!(1),
            2 => of!(2),
            3 => of!(3),
            4 => of!(4),
            5 => of!(5),
            _ => of!(6),
        },
        _ => match height {
            1 => of!(1),
            2 => of!(2),
            3 => of!(3),
            4 => of!(4),
            5 => of!(5),
            6 => of!(6),
            7 => of!(7),
            8 => of!(8),
            9 => of!(9),
            _ => of!(10),
        },
    }
}

/// Splits rows into as few parts of at most `max` rows as possible, as equal as possible: (first row, height) of each.
#[inline(always)]
pub fn tiles(rows: usize, max: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(max);
    // no rows: no tiles, whatever their height
    let (base, more) = (rows / count.max(1), rows % count.max(1));
    (0..count).map(move |i| (i * base + i.min(more), base + usize::from(i < more)))
}

/// Splits rows into register tiles of at most `max` rows, grouped by height: (first row, height, number of tiles). As
/// few and as equal as possible or, if an instruction set has only two heights, tall ones and single rows.
#[inline(always)]
pub(crate) fn heights<S: Simd>(rows: usize, max: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let (tall, many, low, few) = if S::STEP_ROWS == 4 {
        (max, rows / max, 1, rows % max)
    } else {
        let count = rows.div_ceil(max).max(1);
        let (base, more) = (rows / count, rows % count);
        (base + 1, more, base, if base == 0 { 0 } else { count - more })
    };
    [(0, tall, many), (tall * many, low, few)].into_iter().filter(|&(_, _, count)| count > 0)
}

// Arguments are read from memory one number at a time: a wide copy of numbers just written one by one would stall on the
// store buffer.
struct Fixed<'a, R, const MR: usize, const NV: usize> {
    grid: &'a Grid<R>,
    row: usize,
    count: usize,
}

impl<R: Real, const MR: usize, const NV: usize> Kernel<R> for Fixed<'_, R, MR, NV> {
    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        let Fixed { grid: q, row: first, count } = *self;
        for i in 0..q.panels {
            let panel = if q.turned { q.panels - 1 - i } else { i };
            let col = panel * NV * S::LANES;
            let bias = if q.bias.is_null() { q.bias } else { q.bias.wrapping_add(col) };
            for tile in 0..count {
                let row = first + tile * MR;
                // SAFETY: the rows and columns exist (contract of `compute`).
                unsafe {
                    for (&rows, &stride) in q.soon.iter().zip(&q.soon_rows) {
                        if !rows.is_null() {
                            let rows = rows.wrapping_add(row * stride + col);
                            for i in 0..MR {
                                for j in 0..NV {
                                    S::prefetch(rows.wrapping_add(i * stride + j * S::LANES));
                                }
                            }
                        }
                    }
                    let mut acc = [[S::zero(); NV]; MR];
                    for term in &q.terms {
                        if term.depth > 0 {
                            let a = term.a.wrapping_add(row * term.rows);
                            let b = term.b.wrapping_add(col * term.depth);
                            sum::<S, MR, NV>(&mut acc, &Term { a, b, ..*term }, q.whole);
                        }
                    }
                    let base = if q.base.is_null() { q.base } else { q.base.add(row * q.base_rows + col) };
                    finish::<S, MR, NV>(q, &mut acc, base, bias, q.c.add(row * q.c_rows + col), q.live - col);
                }
            }
        }
    }
}

/// acc += A B
#[inline(always)]
unsafe fn sum<S: Simd, const MR: usize, const NV: usize>(
    acc: &mut [[S::V; NV]; MR],
    term: &Term<S::R>,
    whole: usize,
) {
    // SAFETY: A and B of the term have these rows and columns (contract of `compute`).
    unsafe {
        // matches on a constant, so that taller tiles are not compiled for few rows
        match MR {
            1 => match whole {
                1 => return mac_few::<S, MR, NV, 4>(acc, term),
                2 | 3 => return mac_few::<S, MR, NV, 2>(acc, term),
                _ => {}
            },
            2 | 3 => match whole {
                2 | 3 => return mac_few::<S, MR, NV, 2>(acc, term),
                _ => {}
            },
            _ => {}
        }
        // unit strides as compile-time constants save an addition per step
        if term.inner == 1 && term.outer == 2 {
            mac::<S, MR, NV, true>(acc, term);
        } else {
            mac::<S, MR, NV, false>(acc, term);
        }
    }
}

/// C = base + alpha acc + bias
#[inline(always)]
unsafe fn finish<S: Simd, const MR: usize, const NV: usize>(
    q: &Grid<S::R>,
    acc: &mut [[S::V; NV]; MR],
    base: *const S::R,
    bias: *const S::R,
    c: *mut S::R,
    live: usize,
) {
    // SAFETY: the contract of `compute`; only columns up to `live` are accessed, except in the bias, which has whole
    // vectors.
    unsafe {
        let alpha = S::splat(q.alpha);
        if live < NV * S::LANES {
            return edge::<S, MR, NV>(q, *acc, base, bias, c, live);
        }
        // short loops, which are unrolled, so that the sums stay in registers
        for i in 0..MR {
            for j in 0..NV {
                acc[i][j] = if base.is_null() {
                    S::mul(alpha, acc[i][j])
                } else {
                    S::mul_add(alpha, acc[i][j], S::load(base.add(i * q.base_rows + j * S::LANES)))
                };
            }
        }
        if !bias.is_null() {
            for j in 0..NV {
                let bias = S::load(bias.add(j * S::LANES));
                for i in 0..MR {
                    acc[i][j] = S::add(acc[i][j], bias);
                }
            }
        }
        for i in 0..MR {
            for j in 0..NV {
                S::store(c.add(i * q.c_rows + j * S::LANES), acc[i][j]);
            }
        }
    }
}

/// [`finish`] at the ragged right edge: a loop that is not unrolled, over a copy of the sums in memory.
#[inline(always)]
unsafe fn edge<S: Simd, const MR: usize, const NV: usize>(
    q: &Grid<S::R>,
    acc: [[S::V; NV]; MR],
    base: *const S::R,
    bias: *const S::R,
    c: *mut S::R,
    live: usize,
) {
    // SAFETY: the rows and columns up to `live` exist (contract of `compute`).
    unsafe {
        let alpha = S::splat(q.alpha);
        for place in 0..std::hint::black_box(MR * NV) {
            let (i, col) = (place / NV, place % NV * S::LANES);
            if col >= live {
                continue;
            }
            let mut v = S::mul(alpha, acc[i][place % NV]);
            if !base.is_null() {
                let base = S::load_n(base.add(i * q.base_rows + col), live - col);
                v = S::mul_add(alpha, acc[i][place % NV], base);
            }
            if !bias.is_null() {
                v = S::add(v, S::load(bias.add(col)));
            }
            S::store_n(c.add(i * q.c_rows + col), v, live - col);
        }
    }
}
