//! The elementwise passes of gated cells: r y, h = c + z (h' - c), and both backward.
//!
//! Rows of gates hold z and r, n numbers each, in the order of the caller; rows of bars hold the cotangents of their
//! arguments in the same order, then those of c, and any further numbers of the cell after them.

use crate::activation::Elementwise;
use crate::simd::Simd;
use std::ops::Range;

/// The rows and columns of a step that a pass works on; columns start at a multiple of a vector.
#[derive(Clone)]
pub struct Area {
    /// Numbers of a state.
    pub n: usize,
    /// Rows.
    pub rows: Range<usize>,
    /// Columns of a state.
    pub columns: Range<usize>,
}

/// out = r y
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; y may be null for zeros.
pub struct Reset<R> {
    /// z and r.
    pub gates: *const R,
    /// The place of r in a row of gates.
    pub r: usize,
    /// y
    pub y: *const R,
    /// r y
    pub out: *mut R,
    /// Where.
    pub area: Area,
}

/// h = c + z (h' - c)
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; h' may be null for zeros.
pub struct Blend<R> {
    /// z and r.
    pub gates: *const R,
    /// The place of z in a row of gates.
    pub z: usize,
    /// h'
    pub previous: *const R,
    /// c
    pub c: *const R,
    /// h
    pub out: *mut R,
    /// Where.
    pub area: Area,
}

/// [`Blend`] backward: with the cotangent g of h, the sum of two arrays, c_bar = g (1 - z), the cotangent of
/// the argument of z is g (h' - c) z (1 - z), and the direct part of that of h' is g z.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; h' and one part of g may be null for zeros; what is written overlaps
/// nothing else but that part.
pub struct BlendPull<R> {
    /// z and r.
    pub gates: *const R,
    /// The place of z in a row of gates.
    pub z: usize,
    /// h'
    pub previous: *const R,
    /// c
    pub c: *const R,
    /// The parts of g.
    pub g: [*const R; 2],
    /// c_bar
    pub c_bar: *mut R,
    /// g z
    pub carry: *mut R,
    /// The bars, `pitch` numbers a row.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// Where.
    pub area: Area,
}

/// [`Reset`] backward: with the cotangent g of r y, that of the argument of r is g y r (1 - r), and that of y
/// is g r.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; y may be null for zeros; what is written overlaps nothing else.
pub struct ResetPull<R> {
    /// z and r.
    pub gates: *const R,
    /// The place of r in a row of gates.
    pub r: usize,
    /// y
    pub y: *const R,
    /// g
    pub g: *const R,
    /// The cotangent of the argument of c, copied to the bars.
    pub c_bar: *const R,
    /// y_bar, written, or added to the contents.
    pub y_bar: *mut R,
    /// Distance of its rows.
    pub y_rows: usize,
    /// Whether it is added.
    pub add: bool,
    /// r y, where it is wanted, else null.
    pub value: *mut R,
    /// The bars, `pitch` numbers a row.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// Where.
    pub area: Area,
}

/// Numbers of a row, or zeros.
#[inline(always)]
pub(super) unsafe fn or_zero<S: Simd>(p: *const S::R, at: usize, live: usize) -> S::V {
    // SAFETY: the contract of the passes.
    unsafe { if p.is_null() { S::zero() } else { S::load_n(p.add(at), live) } }
}

/// phi(z) of a gate.
#[inline(always)]
pub(super) unsafe fn value<S: Simd, A: Elementwise>(z: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { A::value::<S>(z, S::zero(), S::zero()) }
}

/// phi' g from a gate.
#[inline(always)]
pub(super) unsafe fn pull<S: Simd, A: Elementwise>(gate: S::V, g: S::V) -> S::V {
    // SAFETY: as in `value`.
    unsafe { A::pull::<S>(gate, S::zero(), S::zero(), g) }
}

impl Area {
    /// (row, first column, columns of a vector that exist)
    #[inline(always)]
    pub(super) fn vectors(&self, lanes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let (columns, step) = (self.columns.clone(), lanes);
        self.rows.clone().flat_map(move |row| {
            let end = columns.end;
            columns.clone().step_by(step).map(move |col| (row, col, end - col))
        })
    }
}

/// The kernel of a pass over the vectors of its area: from a column of a row on, with so many columns that exist. S is the
/// instruction set; constants of the pass come before the closure of a vector.
macro_rules! pass {
    ($name:ident, |$pass:ident, $n:ident| |$row:ident, $col:ident, $live:ident| $body:block) => {
        pass!($name, |$pass, $n| { |$row, $col, $live| $body });
    };
    ($name:ident, |$pass:ident, $n:ident| {
        $(let $constant:pat = $value:expr;)*
        |$row:ident, $col:ident, $live:ident| $body:block
    }) => {
        $crate::dispatch::kernel!($name::<R>, |$pass| {
            let $n = $pass.area.n;
            // SAFETY: the contract of the pass.
            unsafe {
                $(let $constant = $value;)*
                for ($row, $col, $live) in $pass.area.vectors(S::LANES) $body
            }
        });
    };
}
pub(super) use pass;

pass!(Reset, |pass, n| |row, col, live| {
    let r = S::load_n(pass.gates.add(2 * row * n + pass.r + col), live);
    let y = or_zero::<S>(pass.y, row * n + col, live);
    S::store_n(pass.out.add(row * n + col), S::mul(r, y), live);
});

pass!(Blend, |pass, n| |row, col, live| {
    let at = row * n + col;
    let z = S::load_n(pass.gates.add(2 * row * n + pass.z + col), live);
    let (h, c) = (or_zero::<S>(pass.previous, at, live), S::load_n(pass.c.add(at), live));
    S::store_n(pass.out.add(at), S::mul_add(z, S::sub(h, c), c), live);
});

pass!(BlendPull, |pass, n| |row, col, live| {
    let at = row * n + col;
    let z = S::load_n(pass.gates.add(2 * row * n + pass.z + col), live);
    let (h, c) = (or_zero::<S>(pass.previous, at, live), S::load_n(pass.c.add(at), live));
    let g = S::add(S::load_n(pass.g[0].add(at), live), or_zero::<S>(pass.g[1], at, live));
    let carry = S::mul(g, z);
    S::store_n(pass.carry.add(at), carry, live);
    let c_bar = S::sub(g, carry);
    S::store_n(pass.c_bar.add(at), c_bar, live);
    let z_bar = S::mul(S::mul(c_bar, z), S::sub(h, c));
    S::store_n(pass.bars.add(row * pass.pitch + pass.z + col), z_bar, live);
});

pass!(ResetPull, |pass, n| |row, col, live| {
    let (at, bars) = (row * n + col, pass.bars.wrapping_add(row * pass.pitch + col));
    let r = S::load_n(pass.gates.add(2 * row * n + pass.r + col), live);
    let (y, g) = (or_zero::<S>(pass.y, at, live), S::load_n(pass.g.add(at), live));
    let value = S::mul(r, y);
    S::store_n(bars.add(pass.r), S::mul(S::mul(g, value), S::sub(S::splat(R::one()), r)), live);
    S::store_n(bars.add(2 * n), S::load_n(pass.c_bar.add(at), live), live);
    if !pass.value.is_null() {
        S::store_n(pass.value.add(at), value, live);
    }
    let y_bar = pass.y_bar.add(row * pass.y_rows + col);
    let sum = if pass.add { S::load_n(y_bar, live) } else { S::zero() };
    S::store_n(y_bar, S::mul_add(g, r, sum), live);
});
