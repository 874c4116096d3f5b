//! Hadamard transforms of rows by butterflies: (a, b) -> (a + b, a - b).
//!
//! A row has `unit` 2^k numbers. Level s pairs the numbers at the distance unit 2^s; the levels commute, and all of them are
//! H_{2^k} (x) I of order `unit`. So a unit of 1 is Sylvester's transform, a unit of 2 that of complex numbers, and larger
//! units follow a transform of blocks of that length.
//!
//! Where the unit is 1 or 2, the first pass over a row takes tiles of consecutive vectors: levels within a vector exchange its
//! lanes, x <- (+-1) x + x[lane ^ distance], and the next ones pair vectors. A tile is also a block of a larger transform:
//! later passes of up to four levels each take vectors at equal distances. All passes but those of the largest distances are
//! made block by block, while a block is in the first-level cache.
//!
//! A result that is larger than the caches is streamed past them, without being read first: all passes but the last one over a row
//! are then made in a row of other memory.

mod factors;

pub use factors::{Factors, FactorsPull};

use crate::dispatch::{compiled, kernel};
use crate::scalar::Real;
use crate::simd::Simd;
use std::ptr::null_mut;

/// Bytes of a block that stays in the first-level cache.
const BLOCK: usize = 1 << 14;

/// Bytes between what is read and what is prefetched: the processor's own prefetching ends with a page.
const AHEAD: usize = 1 << 12;

/// Number of elements of the table of a [`Butterflies`] on rows of `len` numbers: short rows are repeated, so that a vector of
/// them has a vector of factors.
pub const fn table_len(len: usize) -> usize {
    if len < MOST_LANES { MOST_LANES } else { len }
}

/// No instruction set has more lanes.
const MOST_LANES: usize = 16;

/// out <- (H_{2^k} (x) I) (factors x) of rows, not normalised.
///
/// # Safety
/// x and out have `rows` rows of `unit` 2^`levels` numbers, and are the same or do not overlap. The table has [`table_len`] of that
/// many factors; where the unit is a power of two, entry i of rows shorter than the table is that of i modulo the length.
pub struct Butterflies<R> {
    /// Numbers that no level pairs with each other.
    pub unit: usize,
    /// k
    pub levels: u32,
    /// Number of rows.
    pub rows: usize,
    /// x
    pub x: *const R,
    /// The factor of each number of a row; null where all have the same.
    pub table: *const R,
    /// That factor.
    pub scale: R,
    /// Result.
    pub out: *mut R,
    /// Memory for a row, apart from the others, where the result is streamed past the caches; else null.
    pub room: *mut R,
}

compiled! {
    /// Hadamard transforms, compiled for each real type.
    HadamardKernels: Real for f32, f64; {
        /// [`Butterflies`]
        fn butterflies(Butterflies);
        /// [`Factors`]
        fn hadamard_factors(Factors);
        /// [`FactorsPull`]
        fn hadamard_factors_pull(FactorsPull);
    }
}

/// All levels between `N` vectors.
#[inline(always)]
unsafe fn paired<S: Simd, const N: usize>(v: &mut [S::V; N]) {
    for level in 0..N.trailing_zeros() {
        let distance = 1 << level;
        for pair in 0..N / 2 {
            let i = pair / distance * 2 * distance + pair % distance;
            // SAFETY: arithmetic.
            let (sum, difference) = unsafe { (S::add(v[i], v[i + distance]), S::sub(v[i], v[i + distance])) };
            (v[i], v[i + distance]) = (sum, difference);
        }
    }
}

/// The levels within a vector: how lanes are exchanged, and the signs of those that stay.
struct Lanes<S: Simd> {
    exchange: [S::Index; 4],
    signs: [S::V; 4],
}

impl<S: Simd> Lanes<S> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: arithmetic, and loads of local arrays of the width of a vector or more.
        unsafe {
            let exchange = std::array::from_fn(|level| S::index(|lane| lane ^ (1 << level)));
            let signs = std::array::from_fn(|level| {
                let signs: [S::R; MOST_LANES] =
                    std::array::from_fn(|lane| S::R::of(if lane >> level & 1 == 0 { 1.0 } else { -1.0 }));
                S::load(signs.as_ptr())
            });
            Lanes { exchange, signs }
        }
    }

    #[inline(always)]
    unsafe fn level(&self, v: S::V, level: usize) -> S::V {
        // SAFETY: arithmetic.
        unsafe { S::mul_add(v, self.signs[level], S::permute(v, self.exchange[level])) }
    }

    /// Levels FIRST up to the width of a vector.
    #[inline(always)]
    unsafe fn levels<const FIRST: usize>(&self, mut v: S::V) -> S::V {
        // Written out, so that the tables stay in registers.
        // SAFETY: arithmetic.
        unsafe {
            if FIRST == 0 {
                v = self.level(v, 0);
            }
            v = self.level(v, 1);
            if S::LANES > 4 {
                v = self.level(v, 2);
            }
            if S::LANES > 8 {
                v = self.level(v, 3);
            }
        }
        v
    }
}

impl<R: Real> Butterflies<R> {
    /// Rows shorter than a vector, several in each.
    #[inline(always)]
    unsafe fn short<S: Simd<R = R>>(&self) {
        let (first, count) = (self.unit.trailing_zeros() as usize, self.levels as usize);
        let len = self.rows * (self.unit << self.levels);
        // SAFETY: the contract of `Butterflies`; the table has the width of a vector.
        unsafe {
            let lanes = Lanes::<S>::new();
            let factors = if self.table.is_null() { S::splat(self.scale) } else { S::load(self.table) };
            for at in (0..len).step_by(S::LANES) {
                let mut v = S::mul(S::load_n(self.x.add(at), len - at), factors);
                for level in first..first + count {
                    v = lanes.level(v, level);
                }
                S::store_n(self.out.add(at), v, len - at);
            }
        }
    }

    /// The first pass over a block of numbers from `at` of a row: tiles of N vectors, streamed if they are rows.
    #[inline(always)]
    unsafe fn tiles<
        S: Simd<R = R>,
        const FIRST: usize,
        const TABLE: bool,
        const STREAM: bool,
        const N: usize,
    >(
        &self,
        lanes: &Lanes<S>,
        (table, mask): (*const R, usize),
        (x, out): (*const R, *mut R),
        (at, len): (usize, usize),
    ) {
        let direct = STREAM && self.unit << self.levels == N * S::LANES;
        // SAFETY: the contract of `Butterflies`; a block is a whole number of tiles.
        unsafe {
            for at in (at..at + len).step_by(N * S::LANES) {
                let mut v = [S::zero(); N];
                for i in 0..N {
                    let from = at + i * S::LANES;
                    if STREAM {
                        S::prefetch(x.wrapping_add(from + AHEAD / size_of::<R>()));
                    }
                    let mut own = S::load(x.add(from));
                    if TABLE {
                        own = S::mul(own, S::load(table.add(from & mask)));
                    }
                    v[i] = lanes.levels::<FIRST>(own);
                }
                paired::<S, N>(&mut v);
                write::<S, N>(&v, out.add(at), S::LANES, direct);
            }
        }
    }

    /// Rows of at least a vector.
    #[inline(always)]
    unsafe fn long<S: Simd<R = R>, const FIRST: usize, const TABLE: bool, const STREAM: bool>(&self) {
        let (row, most) = (self.unit << self.levels, BLOCK / size_of::<R>());
        // The registers hold a tile, the tables and a vector of factors.
        let tile = row.min(S::LANES * if S::REGISTERS < 32 { 8 } else { 16 });
        // Rows of one tile follow one another like the tiles of a row.
        let span = if tile == row { self.rows * row } else { row };
        let same = [self.scale; MOST_LANES];
        let factors = if self.table.is_null() { (same.as_ptr(), 0) } else { (self.table, row - 1) };
        // SAFETY: the contract of `Butterflies`; a block is a whole number of tiles.
        unsafe {
            let lanes = Lanes::<S>::new();
            for start in (0..self.rows * row).step_by(span) {
                let (x, out) = (self.x.add(start), self.out.add(start));
                let (to, end) = if STREAM && tile < row { (self.room, out) } else { (out, null_mut()) };
                for at in (0..span).step_by(most) {
                    let own = (at, most.min(span - at));
                    match tile / S::LANES {
                        1 => self.tiles::<S, FIRST, TABLE, STREAM, 1>(&lanes, factors, (x, to), own),
                        2 => self.tiles::<S, FIRST, TABLE, STREAM, 2>(&lanes, factors, (x, to), own),
                        4 => self.tiles::<S, FIRST, TABLE, STREAM, 4>(&lanes, factors, (x, to), own),
                        8 => self.tiles::<S, FIRST, TABLE, STREAM, 8>(&lanes, factors, (x, to), own),
                        _ => self.tiles::<S, FIRST, TABLE, STREAM, 16>(&lanes, factors, (x, to), own),
                    }
                    let end = if row > most { null_mut() } else { end };
                    apart::<S>(to.add(at), tile, own.1.min(row), end);
                }
                apart::<S>(to, most, row, end);
            }
            if STREAM {
                S::fence();
            }
        }
    }

    /// Rows of blocks of `unit` numbers.
    #[inline(always)]
    unsafe fn blocks<S: Simd<R = R>>(&self) {
        let len = self.unit << self.levels;
        // SAFETY: the contract of `Butterflies`.
        unsafe {
            for row in 0..self.rows {
                let (x, out) = (self.x.add(row * len), self.out.add(row * len));
                for at in (0..len).step_by(S::LANES) {
                    let (live, same) = (len - at, S::splat(self.scale));
                    let factors =
                        if self.table.is_null() { same } else { S::load_n(self.table.add(at), live) };
                    S::store_n(out.add(at), S::mul(S::load_n(x.add(at), live), factors), live);
                }
                apart::<S>(out, self.unit, len, null_mut());
            }
        }
    }
}

/// Vectors at the multiples of `distance`.
#[inline(always)]
unsafe fn write<S: Simd, const N: usize>(v: &[S::V; N], out: *mut S::R, distance: usize, stream: bool) {
    for i in 0..N {
        // SAFETY: the caller's vectors exist, at multiples of their size where they are streamed.
        unsafe {
            if stream {
                S::stream(out.add(i * distance), v[i])
            } else {
                S::store(out.add(i * distance), v[i])
            }
        }
    }
}

/// The levels from `distance` up to half of `len`, in place; the last pass is streamed to `end` if that is not null.
#[inline(always)]
unsafe fn apart<S: Simd>(data: *mut S::R, mut distance: usize, len: usize, end: *mut S::R) {
    while distance < len {
        let vectors = (len / distance).min(if S::REGISTERS < 32 { 8 } else { 16 });
        let stream = !end.is_null() && distance * vectors == len;
        let arrays = (data.cast_const(), if stream { end } else { data });
        // SAFETY: the contract of `Butterflies`.
        unsafe {
            match vectors {
                2 => pass::<S, 2>(arrays, distance, len, stream),
                4 => pass::<S, 4>(arrays, distance, len, stream),
                8 => pass::<S, 8>(arrays, distance, len, stream),
                _ => pass::<S, 16>(arrays, distance, len, stream),
            }
        }
        distance *= vectors;
    }
}

/// The levels between N vectors at the multiples of `distance`.
#[inline(always)]
unsafe fn pass<S: Simd, const N: usize>(
    (data, out): (*const S::R, *mut S::R),
    distance: usize,
    len: usize,
    stream: bool,
) {
    // SAFETY: the contract of `Butterflies`; of the last vector before the next multiple only the numbers that exist.
    unsafe {
        for from in (0..len).step_by(N * distance) {
            for at in (0..distance).step_by(S::LANES) {
                let (start, to, live) = (data.add(from + at), out.add(from + at), distance - at);
                let mut v = [S::zero(); N];
                if live >= S::LANES {
                    for i in 0..N {
                        v[i] = S::load(start.add(i * distance));
                    }
                    paired::<S, N>(&mut v);
                    write::<S, N>(&v, to, distance, stream);
                } else {
                    for i in 0..N {
                        v[i] = S::load_n(start.add(i * distance), live);
                    }
                    paired::<S, N>(&mut v);
                    for i in 0..N {
                        S::store_n(to.add(i * distance), v[i], live);
                    }
                }
            }
        }
    }
}

kernel!(Butterflies::<R>, |own| {
    if own.rows == 0 {
        return;
    }
    let plain = own.table.is_null() && own.scale == R::one();
    let whole = own.out.addr().is_multiple_of(S::LANES * size_of::<R>());
    let stream = S::STREAMS && whole && !own.room.is_null();
    // SAFETY: the contract of `Butterflies`.
    unsafe {
        match (own.unit, plain, stream) {
            (1 | 2, ..) if own.unit << own.levels < S::LANES => own.short::<S>(),
            (1, true, true) => own.long::<S, 0, false, true>(),
            (1, true, false) => own.long::<S, 0, false, false>(),
            (1, false, true) => own.long::<S, 0, true, true>(),
            (1, false, false) => own.long::<S, 0, true, false>(),
            (2, true, true) => own.long::<S, 1, false, true>(),
            (2, true, false) => own.long::<S, 1, false, false>(),
            (2, false, true) => own.long::<S, 1, true, true>(),
            (2, false, false) => own.long::<S, 1, true, false>(),
            _ => own.blocks::<S>(),
        }
    }
});
