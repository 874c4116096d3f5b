//! The kernel of every step: rows of out = phi(base E + A_0 B_0 + A_1 B_1 + add + bias), or the gradient of phi.
//!
//! A_i are read in place by broadcast; B_i are packed, or for few rows read in place too; E is diagonal (one factor per real
//! number, or a rotation of the pairs). Columns are processed in groups of panels: the tiles store their sums, then the activation runs as a pass
//! over them while they are in the first-level cache, so that no activation is compiled into a tile. All rows are
//! contiguous: a step of a sequence array (T, B, width) is used in place.

use super::few::{FEW, few};
use crate::activation::{Pass, Phi, Source, TOGETHER};
use crate::dispatch::kernel;
use crate::pack::{Operand, Panel};
use crate::scalar::Real;
use crate::simd::{Simd, WIDEST};
use crate::tile::{Grid, Term, compute_rows, heights};
use std::ops::Range;

/// Addresses this many bytes apart map to the same set of a first-level cache.
const PAGE: usize = 4096;

/// The epilogue of a sum.
#[derive(Clone, Copy)]
pub enum Finish<R> {
    /// Nothing.
    Plain,
    /// phi(z)
    Value(Phi<R>),
    /// phi'^H g, with the derivative from the rows h.
    Pull(Phi<R>),
}

/// The affine map; all pointers at row 0 of the step, null if absent.
///
/// # Safety
/// Every non-null pointer has the rows and columns; out overlaps none of the A (it may be `add`); columns start at a
/// multiple of two vectors; an activation in the epilogue does not need whole rows. A matrix that is read in place is not
/// null, has rows at a distance of one number and as many of them as its term steps of unit strides; there are at most
/// [`FEW`] rows then.
#[derive(Clone, Copy)]
pub struct Affine<R> {
    /// Numbers per row of base, add, h and out.
    pub width: usize,
    /// Numbers from one of these rows to the next; more than `width` only without an epilogue.
    pub apart: usize,
    /// Rows of the whole batch: determines the order of summation.
    pub whole: usize,
    /// The products.
    pub terms: [Term<R>; 2],
    /// The matrices B_i, packed one panel at a time when used, for which the term has room, or read in place; null where the term
    /// is packed already.
    pub matrices: [Operand<R>; 2],
    /// Whether a matrix is read in place.
    pub in_place: [bool; 2],
    /// Whether the panels are taken from the last to the first: of matrices that do not fit in a cache, steps of alternating
    /// order find there what the step before read last.
    pub turned: bool,
    /// Rows that E is applied to.
    pub base: *const R,
    /// E: a factor per number, and the factor of the other part of its pair.
    pub diagonal: [*const R; 2],
    /// Rows to add.
    pub add: *const R,
    /// A number per column to add, padded to whole vectors.
    pub bias: *const R,
    /// The epilogue.
    pub finish: Finish<R>,
    /// Rows that [`Finish::Pull`] reads.
    pub h: *const R,
    /// The sums.
    pub out: *mut R,
    /// Output of [`Finish`]: `out` if null.
    pub to: *mut R,
    /// Rows of `width` numbers that the next step reads, prefetched meanwhile: row 0 of two arrays; null for none.
    pub soon: [*const R; 2],
}

impl<R: Real> Affine<R> {
    /// The zero map into rows of `width` numbers.
    pub fn new(width: usize, whole: usize, out: *mut R) -> Self {
        let none = std::ptr::null();
        Affine {
            width,
            apart: width,
            whole,
            terms: [Term::NONE; 2],
            matrices: [Operand::new(none, 0); 2],
            in_place: [false; 2],
            turned: false,
            base: none,
            diagonal: [none; 2],
            add: none,
            bias: none,
            finish: Finish::Plain,
            h: none,
            out,
            to: std::ptr::null_mut(),
            soon: [none; 2],
        }
    }

    /// Computes these rows and columns.
    ///
    /// # Safety
    /// That of [`Affine`].
    #[inline]
    pub unsafe fn run(&self, rows: Range<usize>, columns: Range<usize>) {
        if !rows.is_empty() && !columns.is_empty() {
            // SAFETY: `self` satisfies the contract of `Affine`, guaranteed by the caller.
            unsafe { Sweep { map: self, rows, columns }.call() }
        }
    }
}

/// Some rows and columns of an affine map.
///
/// # Safety
/// That of [`Affine`], which exists.
pub struct Sweep<R> {
    map: *const Affine<R>,
    rows: Range<usize>,
    columns: Range<usize>,
}

kernel!(Sweep::<R>, |&Sweep { map, ref rows, ref columns }| {
    // SAFETY: the map satisfies the contract of `Affine`; groups of panels are completed one after another.
    unsafe {
        let q = &*map;
        // the rows of a tall tile at distances of a page would share one set of the first-level cache
        let paged = |term: &Term<R>| term.depth > 0 && (term.rows * size_of::<R>()).is_multiple_of(PAGE);
        let tallest = if q.terms.iter().any(paged) { S::ROWS } else { S::STEP_ROWS };
        let panel = 2 * S::LANES;
        // rows of one height are one call for any number of panels; otherwise a panel stays in the cache for the
        // next call
        let alike = heights::<S>(rows.len(), tallest).count() == 1;
        let group = (TOGETHER / (rows.len() * panel)).max(1) * panel;
        let packed = q.matrices.iter().all(|matrix| matrix.data.is_null());
        let count = columns.len().div_ceil(group);
        for i in 0..count {
            let start = columns.start + if q.turned { count - 1 - i } else { i } * group;
            let end = (start + group).min(columns.end);
            let step = if alike && packed { group } else { panel };
            for from in (start..end).step_by(step) {
                let to = (from + step).min(end);
                // full panels, then a panel of one vector if that suffices
                let last = from + (to - from) / panel * panel;
                let last = if to - last > S::LANES { to } else { last };
                sums::<S>(q, rows, from..last, tallest, true);
                sums::<S>(q, rows, last..to, tallest, false);
            }
            let (phi, y, g) = match q.finish {
                Finish::Plain => continue,
                Finish::Value(phi) => (phi, q.out.cast_const(), std::ptr::null()),
                Finish::Pull(phi) => (phi, q.h, q.out.cast_const()),
            };
            let out = if q.to.is_null() { q.out } else { q.to };
            let from = Source::Value;
            S::outlined(&Pass { phi, y, g, from, out, rows: rows.clone(), columns: start..end });
        }
    }
});

/// out = base E + A_0 B_0 + A_1 B_1 + add + bias on some panels of two vectors, or of one.
#[inline(always)]
unsafe fn sums<S: Simd>(
    q: &Affine<S::R>,
    rows: &Range<usize>,
    columns: Range<usize>,
    tallest: usize,
    two: bool,
) {
    if columns.is_empty() {
        return;
    }
    let col = columns.start;
    let at = rows.start * q.apart + col;
    let panels = columns.len().div_ceil(if two { 2 * S::LANES } else { S::LANES });
    let moved = |p: *const S::R, by: usize| if p.is_null() { p } else { p.wrapping_add(by) };
    // SAFETY: the rows and panels exist, a matrix has the rows and columns of its term, which has room for a panel (contract
    // of `Affine`).
    unsafe {
        let mut with: [S::R; 2 * FEW * WIDEST];
        let term = |i: usize| {
            let (term, matrix) = (q.terms[i], q.matrices[i]);
            if q.in_place[i] {
                return Term::NONE;
            }
            let a = term.a.wrapping_add(rows.start * term.rows);
            if matrix.data.is_null() {
                return Term { a, b: term.b.wrapping_add(col * term.depth), ..term };
            }
            let (k, n, out) = (term.depth, q.width, term.b.cast_mut());
            S::outlined(&Panel { b: matrix, factors: std::ptr::null(), conj_a: false, k, n, col, out });
            Term { a, ..term }
        };
        let base = match (q.base.is_null(), q.add.is_null() && q.diagonal[0].is_null()) {
            (true, _) => q.add,
            (false, true) => q.base,
            (false, false) => {
                start::<S>(q, rows.clone(), columns);
                q.out.cast_const()
            }
        };
        let (base, base_rows) = if q.in_place.contains(&true) {
            debug_assert!(rows.len() <= FEW && panels == 1);
            with = [num_traits::Zero::zero(); 2 * FEW * WIDEST];
            add_in_place::<S>(q, rows, col, (moved(base, at), &mut with));
            (with.as_ptr(), 2 * WIDEST)
        } else {
            (moved(base, at), q.apart)
        };
        let grid = Grid {
            terms: [term(0), term(1)],
            whole: q.whole,
            panels,
            turned: q.turned,
            alpha: num_traits::One::one(),
            base,
            base_rows,
            bias: moved(q.bias, col),
            c: q.out.add(at),
            c_rows: q.apart,
            live: q.width - col,
            soon: q.soon.map(|rows| moved(rows, at)),
            soon_rows: [q.apart; 2],
        };
        compute_rows::<S>(&grid, rows.len(), tallest, two);
    }
}

/// sums = base + the products with matrices that are read in place, of a panel of columns, 2 WIDEST numbers a row.
#[inline(always)]
unsafe fn add_in_place<S: Simd>(
    q: &Affine<S::R>,
    rows: &Range<usize>,
    panel: usize,
    (base, sums): (*const S::R, &mut [S::R; 2 * FEW * WIDEST]),
) {
    // SAFETY: the rows exist, at most FEW; columns from the width on are neither read nor written (contract of `Affine`).
    unsafe {
        for col in (panel..q.width.min(panel + 2 * S::LANES)).step_by(S::LANES) {
            // the columns of a vector stay in a cache for the other rows
            for (i, row) in rows.clone().enumerate() {
                let (live, by) = (q.width - col, i * q.apart + col - panel);
                let mut v = if base.is_null() { S::zero() } else { S::load_n(base.wrapping_add(by), live) };
                for t in (0..2).filter(|&t| q.in_place[t]) {
                    let a = q.terms[t].a.wrapping_add(row * q.terms[t].rows);
                    v = few::<S>(v, (a, q.terms[t].depth), &q.matrices[t], (col, q.width));
                }
                S::store(sums.as_mut_ptr().wrapping_add(2 * WIDEST * i + col - panel), v);
            }
        }
    }
}

/// out = base E + add
#[inline(always)]
unsafe fn start<S: Simd>(q: &Affine<S::R>, rows: Range<usize>, columns: Range<usize>) {
    // SAFETY: the rows and columns exist (contract of `Affine`).
    unsafe {
        for row in rows {
            for col in columns.clone().step_by(S::LANES) {
                let (at, live) = (row * q.apart + col, columns.end - col);
                let mut v = S::load_n(q.base.add(at), live);
                if !q.diagonal[0].is_null() {
                    let other = S::swap_pairs(v);
                    v = S::mul(v, S::load_n(q.diagonal[0].add(col), live));
                    if !q.diagonal[1].is_null() {
                        v = S::mul_add(other, S::load_n(q.diagonal[1].add(col), live), v);
                    }
                }
                if !q.add.is_null() {
                    v = S::add(v, S::load_n(q.add.add(at), live));
                }
                S::store_n(q.out.add(at), v, live);
            }
        }
    }
}
