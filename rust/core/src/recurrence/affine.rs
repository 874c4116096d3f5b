//! The kernel of every step: rows of out = finish(base E + A_0 B_0 + A_1 B_1 + add + bias).
//!
//! A_i are read in place by broadcast, B_i are packed, E is diagonal (one factor per real number, or a rotation of the
//! pairs). `finish` is one of the cheap activations, its gradient with the derivative read off h, or nothing; the other
//! activations are passes over the finished rows ([`crate::activation::Law`]). All rows are contiguous: a step of a
//! sequence array (T, B, width) is used where it lies.

use crate::activation::{Elementwise, Identity, Kind, LeakyRelu, Modrelu};
use crate::by_tile;
use crate::kernels::{Kernel, Simd, dispatch, mac, mac_few, panel_width, tiles};
use crate::scalar::Real;
use std::ops::Range;

/// Bytes after which addresses fall into the same set of a first-level cache.
const PAGE: usize = 4096;

/// One product A B of an affine map: rows of `depth` numbers, and the packed panels of B.
#[derive(Clone, Copy)]
pub struct Term<R> {
    /// Row 0 of A.
    pub a: *const R,
    /// Numbers per row of A, rows of B.
    pub depth: usize,
    /// The packed panels of B.
    pub b: *const R,
}

impl<R> Term<R> {
    /// No product.
    pub const NONE: Self = Term { a: std::ptr::null(), depth: 0, b: std::ptr::null() };
}

/// What happens to a sum before it is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Nothing.
    Plain,
    /// phi(z), for a [`cheap`] kind.
    Value(Kind),
    /// phi'(h)^H g, for a [`cheap`] kind.
    Pull(Kind),
}

/// Kinds that cost a few instructions and are worth fusing.
pub fn cheap(kind: Kind) -> bool {
    matches!(kind, Kind::Identity | Kind::LeakyRelu | Kind::Modrelu)
}

/// The affine map; all pointers at row 0 of the step, null for what is absent.
#[derive(Clone, Copy)]
pub struct Affine<R> {
    /// Numbers per row of base, add, h and out.
    pub width: usize,
    /// Rows of the whole batch: decides the order of summation.
    pub whole: usize,
    /// The products.
    pub terms: [Term<R>; 2],
    /// Rows that E acts on.
    pub base: *const R,
    /// E: a factor per number, and the factor of the other number of its pair.
    pub diagonal: [*const R; 2],
    /// Rows to be added.
    pub add: *const R,
    /// A number per column to be added, padded to whole vectors.
    pub bias: *const R,
    /// The end of it.
    pub finish: Finish,
    /// Slope of leaky_relu.
    pub slope: R,
    /// Bias of modReLU, padded to whole vectors.
    pub own_bias: *const R,
    /// Rows that [`Finish::Pull`] reads.
    pub h: *const R,
    /// The result.
    pub out: *mut R,
    /// Where the rows of `add` and `h` of the next step lie, counted from these; 0 for no prefetch.
    pub ahead: isize,
}

impl<R: Real> Affine<R> {
    /// The zero map into rows of `width` numbers.
    pub fn new(width: usize, whole: usize, out: *mut R) -> Self {
        let none = std::ptr::null();
        Affine {
            width,
            whole,
            terms: [Term::NONE; 2],
            base: none,
            diagonal: [none; 2],
            add: none,
            bias: none,
            finish: Finish::Plain,
            slope: num_traits::Zero::zero(),
            own_bias: none,
            h: none,
            out,
            ahead: 0,
        }
    }

    /// Computes these rows and columns (from a multiple of two vectors on).
    ///
    /// # Safety
    /// Every pointer that is not null has the rows and columns; out overlaps none of the A (it may be `add`).
    #[inline]
    pub unsafe fn run(&self, rows: Range<usize>, columns: Range<usize>) {
        if !rows.is_empty() && !columns.is_empty() {
            // SAFETY: passed on from the caller.
            unsafe { dispatch(Sweep { map: self, rows, columns }) }
        }
    }
}

struct Sweep<'a, R> {
    map: &'a Affine<R>,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<R: Real> Kernel<R> for Sweep<'_, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(self) {
        // the rows of a tall tile at distances of a page would share one set of the first-level cache
        let paged = self
            .map
            .terms
            .iter()
            .any(|term| term.depth > 0 && (term.depth * size_of::<R>()).is_multiple_of(PAGE));
        let tallest = if paged { S::ROWS } else { S::STEP_ROWS };
        for col in self.columns.step_by(2 * S::LANES) {
            let two = panel_width::<S>(self.map.width, col) > S::LANES;
            for (row, height) in tiles(self.rows.len(), tallest) {
                let row = self.rows.start + row;
                // SAFETY: the contract of `Affine::run`.
                unsafe { by_tile!(height, two, tile, S; self.map, row, col; tall) }
            }
        }
    }
}

#[inline(always)]
unsafe fn tile<S: Simd, const MR: usize, const NV: usize>(q: &Affine<S::R>, row: usize, col: usize) {
    // SAFETY: the contract of `Affine::run`.
    unsafe {
        let at = row * q.width + col;
        if q.ahead != 0 {
            for i in 0..MR {
                let next = (at + i * q.width) as isize + q.ahead;
                for j in 0..NV {
                    S::prefetch(q.add.wrapping_offset(next).wrapping_add(j * S::LANES));
                    S::prefetch(q.h.wrapping_offset(next).wrapping_add(j * S::LANES));
                }
            }
        }
        let mut acc = [[S::zero(); NV]; MR];
        if !q.base.is_null() {
            start::<S, MR, NV>(q, &mut acc, at, col);
        }
        for term in &q.terms {
            if term.depth > 0 {
                let (k, bs) = (term.depth, NV * S::LANES);
                let (a, b) = (term.a.add(row * k), term.b.add(col * k));
                if MR == 1 && q.whole == 1 {
                    mac_few::<S, MR, NV, 4>(&mut acc, k, a, k, 1, b, bs);
                } else if MR <= 3 && q.whole <= 3 {
                    mac_few::<S, MR, NV, 2>(&mut acc, k, a, k, 1, b, bs);
                } else {
                    mac::<S, MR, NV>(&mut acc, k, a, k, 1, b, bs);
                }
            }
        }
        if q.width - col < NV * S::LANES {
            return end_edge::<S, MR, NV>(q, &mut acc, at, col);
        }
        match q.finish {
            Finish::Plain => end::<S, Identity, MR, NV, false>(q, &mut acc, at, col),
            Finish::Value(Kind::Modrelu) => end::<S, Modrelu, MR, NV, false>(q, &mut acc, at, col),
            Finish::Value(_) => end::<S, LeakyRelu, MR, NV, false>(q, &mut acc, at, col),
            Finish::Pull(Kind::Modrelu) => end::<S, Modrelu, MR, NV, true>(q, &mut acc, at, col),
            Finish::Pull(_) => end::<S, LeakyRelu, MR, NV, true>(q, &mut acc, at, col),
        }
    }
}

/// out = finish(acc + add + bias)
#[inline(always)]
unsafe fn end<S: Simd, A: Elementwise, const MR: usize, const NV: usize, const PULL: bool>(
    q: &Affine<S::R>,
    acc: &mut [[S::V; NV]; MR],
    at: usize,
    col: usize,
) {
    let Affine { width, add, slope, h, out, .. } = *q;
    // SAFETY: the contract of `Affine::run`; biases are padded to whole vectors.
    unsafe {
        if !add.is_null() {
            for i in 0..MR {
                for j in 0..NV {
                    acc[i][j] = S::add(acc[i][j], S::load(add.add(at + i * width + j * S::LANES)));
                }
            }
        }
        let (mut bias, mut own) = ([S::zero(); NV], [S::zero(); NV]);
        for j in 0..NV {
            bias[j] = or_zero::<S>(q.bias, col + j * S::LANES);
            own[j] = or_zero::<S>(q.own_bias, col + j * S::LANES);
        }
        let slope = S::splat(slope);
        for i in 0..MR {
            for j in 0..NV {
                let at = at + i * width + j * S::LANES;
                let v = if PULL {
                    A::pull::<S>(S::load(h.add(at)), own[j], slope, acc[i][j])
                } else {
                    A::value::<S>(S::add(acc[i][j], bias[j]), own[j], slope)
                };
                S::store(out.add(at), v);
            }
        }
    }
}

/// The same at the ragged right edge: the sums are stored first and finished in memory, in a loop over all kinds that is
/// not unrolled. (Accumulators under indices known at run time would live in memory for the full tiles as well.)
#[inline(always)]
unsafe fn end_edge<S: Simd, const MR: usize, const NV: usize>(
    q: &Affine<S::R>,
    acc: &mut [[S::V; NV]; MR],
    at: usize,
    col: usize,
) {
    // SAFETY: the contract of `Affine::run`; biases are padded to whole vectors.
    unsafe {
        for i in 0..MR {
            for j in 0..NV {
                let (at, live) = (at + i * q.width + j * S::LANES, q.width - col - j * S::LANES);
                let mut v = acc[i][j];
                if !q.add.is_null() {
                    v = S::add(v, S::load_n(q.add.add(at), live));
                }
                S::store_n(q.out.add(at), v, live);
            }
        }
        let slope = S::splat(q.slope);
        for place in 0..std::hint::black_box(MR * NV) {
            let (i, j) = (place / NV, place % NV);
            let (at, col) = (at + i * q.width + j * S::LANES, col + j * S::LANES);
            let live = q.width - col;
            let own = or_zero::<S>(q.own_bias, col);
            let v = S::add(S::load_n(q.out.add(at), live), or_zero::<S>(q.bias, col));
            let v = match q.finish {
                Finish::Plain => v,
                Finish::Value(Kind::Modrelu) => Modrelu::value::<S>(v, own, slope),
                Finish::Value(_) => LeakyRelu::value::<S>(v, own, slope),
                Finish::Pull(kind) => {
                    let h = S::load_n(q.h.add(at), live);
                    match kind {
                        Kind::Modrelu => Modrelu::pull::<S>(h, own, slope, v),
                        _ => LeakyRelu::pull::<S>(h, own, slope, v),
                    }
                }
            };
            S::store_n(q.out.add(at), v, live);
        }
    }
}

/// A vector of an array that may be absent.
#[inline(always)]
unsafe fn or_zero<S: Simd>(array: *const S::R, at: usize) -> S::V {
    // SAFETY: passed on from the caller.
    unsafe { if array.is_null() { S::zero() } else { S::load(array.add(at)) } }
}

/// acc = base E
#[inline(always)]
unsafe fn start<S: Simd, const MR: usize, const NV: usize>(
    q: &Affine<S::R>,
    acc: &mut [[S::V; NV]; MR],
    at: usize,
    col: usize,
) {
    // SAFETY: the contract of `Affine::run`.
    unsafe {
        for j in 0..NV {
            let live = q.width - col - j * S::LANES;
            let load = |p: *const S::R| S::load_n(p.add(col + j * S::LANES), live);
            for i in 0..MR {
                let mut v = S::load_n(q.base.add(at + i * q.width + j * S::LANES), live);
                if !q.diagonal[0].is_null() {
                    let other = S::swap_pairs(v);
                    v = S::mul(v, load(q.diagonal[0]));
                    if !q.diagonal[1].is_null() {
                        v = S::mul_add(other, load(q.diagonal[1]), v);
                    }
                }
                acc[i][j] = v;
            }
        }
    }
}
