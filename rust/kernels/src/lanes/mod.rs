//! One matrix per lane: element (i, j) of LANES matrices is one vector (real) or two (complex: real parts, then
//! imaginary parts). Every lane runs the same arithmetic, so the result of a matrix does not depend on the others.
//!
//! The memory order of a group is `(row, column, part, lane)`. [`to_lanes`] and [`from_lanes`] convert between this and
//! one row-major array per matrix, by transposing LANES x LANES blocks in registers.

mod element;
mod inverse;
mod product;

pub use element::{Element, add, conj, conj_mul_add, load, mul, mul_add, neg_mul_add, scale, store, sub};
pub use inverse::inverse_lanes;
pub use product::{Left, product_lanes};

use crate::simd::Simd;

/// Most lanes of any vector.
pub const MOST: usize = 16;

/// Reads `count` rows of `len` numbers, stride `ld`, into `len` vectors; lanes from `count` on are zero. Vector e is
/// stored at index (e / row) pitch + e % row.
///
/// # Safety
/// The rows and the places exist; the processor supports S.
#[inline(always)]
pub unsafe fn to_lanes<S: Simd>(
    src: *const S::R,
    ld: usize,
    len: usize,
    count: usize,
    out: *mut S::R,
    (row, pitch): (usize, usize),
) {
    // SAFETY: the caller ensures that the vectors exist and S is supported.
    unsafe {
        let (mut start, mut column) = (0, 0);
        for e in (0..len).step_by(S::LANES) {
            let live = (len - e).min(S::LANES);
            let block = if count >= S::LANES {
                read::<S, true>(src.add(e), ld, live, count)
            } else {
                read::<S, false>(src.add(e), ld, live, count)
            };
            for i in 0..S::LANES {
                if i < live {
                    let place = if row == pitch { e + i } else { start + column };
                    S::store(out.add(place * S::LANES), block[i]);
                    column += 1;
                    if column == row {
                        (start, column) = (start + pitch, 0);
                    }
                }
            }
        }
    }
}

/// `live` numbers of each of `count` rows (of all lanes if ALL), transposed.
#[inline(always)]
unsafe fn read<S: Simd, const ALL: bool>(
    src: *const S::R,
    ld: usize,
    live: usize,
    count: usize,
) -> [S::V; MOST] {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        let mut block = [S::zero(); MOST];
        for i in 0..S::LANES {
            if ALL || i < count {
                let p = src.wrapping_add(i * ld);
                block[i] = if live == S::LANES { S::load(p) } else { S::load_n(p, live) };
            }
        }
        S::transpose(&mut block[..S::LANES]);
        block
    }
}

/// Writes `len` vectors back to `count` rows of `len` numbers, stride `ld`.
///
/// # Safety
/// As [`to_lanes`].
#[inline(always)]
pub unsafe fn from_lanes<S: Simd>(src: *const S::R, len: usize, dst: *mut S::R, ld: usize, count: usize) {
    // SAFETY: the caller ensures that the vectors exist and S is supported.
    unsafe {
        for e in (0..len).step_by(S::LANES) {
            let live = (len - e).min(S::LANES);
            let mut block = [S::zero(); MOST];
            for i in 0..S::LANES {
                if live == S::LANES || i < live {
                    block[i] = S::load(src.add((e + i) * S::LANES));
                }
            }
            S::transpose(&mut block[..S::LANES]);
            if count >= S::LANES {
                write::<S, true>(&block, dst.add(e), ld, live, count);
            } else {
                write::<S, false>(&block, dst.add(e), ld, live, count);
            }
        }
    }
}

/// `live` numbers of each of `count` rows (of all lanes if ALL).
#[inline(always)]
unsafe fn write<S: Simd, const ALL: bool>(
    block: &[S::V; MOST],
    dst: *mut S::R,
    ld: usize,
    live: usize,
    count: usize,
) {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        for i in 0..S::LANES {
            if ALL || i < count {
                let p = dst.wrapping_add(i * ld);
                if live == S::LANES { S::store(p, block[i]) } else { S::store_n(p, block[i], live) }
            }
        }
    }
}
