//! C = alpha A B or C += alpha A B for matrices in memory, of any of the four element types.
//!
//! B is packed panel by panel ([`super::pack_panel`]), A is read in place, one number broadcast at a time, in any
//! strides. Triangular operands are skipped by limiting the range of k of each tile (the skipped part must hold zeros:
//! a tile may reach into it). k is cut into blocks of [`KC`], summed one after the other.
//! The members of a call share the column panels of C, dealt in a snake so that triangular work balances; a C of few
//! columns is shared by rows instead.

use super::dispatch::{Kernel, dispatch, lanes};
use super::pack::{Operand, pack_panel, panel_width};
use super::simd::Simd;
use super::tile::{MAX_ROWS, mac, mac_few, mac_pairs, tiles};
use crate::by_tile;
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use num_traits::One;
use std::ops::Range;

/// Depth of a block of k, in elements: a panel of 256 x 32 numbers of f32 stays in the first-level cache.
const KC: usize = 256;
/// Height of a block of A: with KC columns it fills half of the second-level cache.
const MC: usize = 64 * MAX_ROWS;
/// A distance of rows that is a multiple of this many bytes puts the rows of a tile into the same cache sets.
const ALIAS: usize = 2048;

/// Which part of a matrix can be non-zero (A, B) or is wanted (C).
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

/// One product: C (m x n) from A (m x k) and B (k x n).
#[derive(Clone, Copy)]
pub struct Product<T: Scalar> {
    m: usize,
    n: usize,
    k: usize,
    a: Operand<T>,
    b: Operand<T>,
    c: *mut T,
    c_rows: usize,
    alpha: T::Real,
    /// What the product is added to (null: nothing), row-major.
    base: *const T,
    base_rows: usize,
    shape: [Triangle; 3],
    /// The columns wanted, if not all are: then panels are dealt whatever their number.
    span: Option<(usize, usize)>,
}

impl<T: Scalar> Product<T> {
    /// C = A B; `c` is row-major with the given distance of rows. Sizes are (m, n, k).
    pub fn new(
        (m, n, k): (usize, usize, usize),
        a: Operand<T>,
        b: Operand<T>,
        c: *mut T,
        c_rows: usize,
    ) -> Self {
        let shape = [Triangle::Full; 3];
        let base = std::ptr::null();
        Product { m, n, k, a, b, c, c_rows, alpha: T::Real::one(), base, base_rows: 0, shape, span: None }
    }
    /// A real factor.
    pub fn alpha(self, alpha: f64) -> Self {
        Product { alpha: T::Real::of(alpha), ..self }
    }
    /// Adds to what C holds.
    pub fn add(self) -> Self {
        Product { base: self.c, base_rows: self.c_rows, ..self }
    }
    /// Adds to another row-major matrix: C = base + alpha A B. A base that overlaps C must be C itself.
    pub fn onto(self, base: *const T, rows: usize) -> Self {
        Product { base, base_rows: rows, ..self }
    }
    /// Shapes of A, B and C. Zeros outside a triangle must stand in memory for A and B; C outside is left unspecified.
    pub fn shapes(self, a: Triangle, b: Triangle, c: Triangle) -> Self {
        Product { shape: [a, b, c], ..self }
    }

    /// Only the columns from `start` to before `end` of C, cut at multiples of 32 (or n). They are dealt as those of every
    /// product of this width that names its columns: what a member wrote it may read again without a barrier.
    pub fn columns(self, (start, end): (usize, usize)) -> Self {
        Product { span: Some((start, end)), ..self }
    }

    /// The columns among `start..end` that are dealt to a member by a product of width n that names its columns.
    pub fn own(
        member: &Member<'_>,
        n: usize,
        (start, end): (usize, usize),
    ) -> impl Iterator<Item = Range<usize>> {
        let panel = 2 * lanes::<T::Real>() / T::PARTS;
        let (id, count) = (member.id, member.count);
        (start / panel..end.div_ceil(panel))
            .filter(move |&p| dealt(p, count) == id)
            .map(move |p| p * panel..((p + 1) * panel).min(n))
    }

    /// Real numbers of scratch that one member needs for products up to m x n x k.
    pub fn scratch(m: usize, k: usize) -> usize {
        let panel = KC.min(k.max(1)) * T::PARTS * 32;
        // the copy of a block of A with an odd distance of rows
        panel + (m.min(MC) + 32) * (KC.min(k.max(1)) + 32) * T::PARTS
    }

    /// Runs this member's part. No barrier: the caller puts one before C is read by others.
    ///
    /// # Safety
    /// The matrices exist in memory; C overlaps neither A nor B, but may be B if k and m are at most 256; all members of a
    /// call run the same product; `scratch` holds [`Product::scratch`] numbers, its own for each member.
    pub unsafe fn run(&self, member: &Member<'_>, scratch: *mut T::Real) {
        // SAFETY: the contract of the kernel is the one above.
        unsafe { dispatch(Run { product: *self, id: member.id, count: member.count, scratch }) }
    }
}

/// The member that column panel `panel` is dealt to: in a snake, so that triangular work balances.
fn dealt(panel: usize, count: usize) -> usize {
    let (lap, place) = (panel / count, panel % count);
    if lap.is_multiple_of(2) { place } else { count - 1 - place }
}

struct Run<T: Scalar> {
    product: Product<T>,
    id: usize,
    count: usize,
    scratch: *mut T::Real,
}

impl<T: Scalar> Kernel<T::Real> for Run<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>>(self) {
        let Run { product: q, id, count, scratch } = self;
        let width = q.n * T::PARTS;
        let panels = width.div_ceil(2 * S::LANES);
        // Few panels: deal rows instead, so that nobody idles; everybody packs the few panels for itself.
        let by_rows = q.span.is_none() && count > 1 && panels < 2 * count && q.m >= 2 * panels;
        let (blocks, cut) = (q.m.div_ceil(S::ROWS), |id: usize, blocks: usize| blocks * id / count * S::ROWS);
        let (i0, i1) =
            if by_rows { (cut(id, blocks).min(q.m), cut(id + 1, blocks).min(q.m)) } else { (0, q.m) };
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
            for (row, height) in tiles(i1 - i0, MC) {
                let rows = (i0 + row, i0 + row + height);
                // SAFETY: the contract of `Product::run`; the panel takes KC.min(k) rows of the scratch.
                unsafe {
                    let mut local = q;
                    let copy = scratch.add(KC.min(q.k.max(1)) * 2 * S::LANES * T::PARTS);
                    local.a = unalias::<T>(&q, rows.0, rows.1, k0, k1, copy);
                    for panel in (first..end).filter(|&p| mine(p)) {
                        one_panel::<T, S>(&local, panel * 2 * S::LANES, rows, (k0, k1), scratch);
                    }
                }
            }
        }
    }
}

/// The block rows i0..i1, columns k0..k1 of A, copied to an odd distance of rows if its own would alias in the cache.
#[inline(always)]
unsafe fn unalias<T: Scalar>(
    q: &Product<T>,
    i0: usize,
    i1: usize,
    k0: usize,
    k1: usize,
    copy: *mut T::Real,
) -> Operand<T> {
    let (a, copy) = (q.a, copy.cast::<T>());
    // Down its columns A passes a cache line in every step of k, along its rows one per row of the tile.
    let (stride, least) = if a.cols == 1 { (a.rows, 2 * ALIAS) } else { (a.cols, ALIAS) };
    let stride = stride * size_of::<T>();
    if !stride.is_multiple_of(ALIAS) || stride < least || i1 - i0 < 4 * MAX_ROWS {
        return a;
    }
    // SAFETY: the scratch of `Product::scratch` holds (m + 32) (KC + 32) elements; source and copy are apart.
    unsafe {
        if a.cols == 1 {
            let pitch = (k1 - k0) + 16;
            for i in i0..i1 {
                std::ptr::copy_nonoverlapping(
                    a.data.add(i * a.rows + k0),
                    copy.add((i - i0) * pitch),
                    k1 - k0,
                );
            }
            Operand { data: copy.wrapping_sub(i0 * pitch + k0), rows: pitch, ..a }
        } else if a.rows == 1 {
            let pitch = (i1 - i0) + 16;
            for p in k0..k1 {
                std::ptr::copy_nonoverlapping(
                    a.data.add(p * a.cols + i0),
                    copy.add((p - k0) * pitch),
                    i1 - i0,
                );
            }
            Operand { data: copy.wrapping_sub(k0 * pitch + i0), cols: pitch, ..a }
        } else {
            a
        }
    }
}

/// All row tiles of the panel of C at real column `col`, for one block of k.
#[inline(always)]
unsafe fn one_panel<T: Scalar, S: Simd<R = T::Real>>(
    q: &Product<T>,
    col: usize,
    (i0, i1): (usize, usize),
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
    // SAFETY: the contract of `Product::run`; the panel has at most KC rows.
    unsafe {
        if b0 < b1 {
            pack_panel::<T, S>(q.b.at(b0, 0), q.a.conj, b1 - b0, q.n, col, packed);
        }
        for (row, height) in tiles(i1 - i0, S::ROWS) {
            let i = i0 + row;
            let outside = match q.shape[2] {
                Triangle::Upper => i > j1,
                Triangle::Lower => j0 > i + height - 1,
                Triangle::Full => false,
            };
            if outside {
                continue;
            }
            let (mut p0, mut p1) = (b0, b1);
            match q.shape[0] {
                Triangle::Lower => p1 = p1.min(i + height),
                Triangle::Upper => p0 = p0.max(i),
                Triangle::Full => {}
            }
            // An empty range still writes zeros in the first block.
            let depth = p1.saturating_sub(p0);
            if depth == 0 && k0 > 0 {
                continue;
            }
            let p0 = p0.min(q.k.saturating_sub(1)).max(b0.min(q.k.saturating_sub(1)));
            let (base, base_rows) = if k0 > 0 { (q.c.cast_const(), q.c_rows) } else { (q.base, q.base_rows) };
            let base = match base.is_null() {
                true => std::ptr::null(),
                false => base.wrapping_add(i * base_rows).cast::<S::R>().wrapping_add(col),
            };
            let tile = Tile {
                a: q.a.at(i, p0),
                b: packed.wrapping_add(p0.saturating_sub(b0) * T::PARTS * width),
                width,
                depth,
                c: q.c.wrapping_add(i * q.c_rows).cast::<S::R>().wrapping_add(col),
                c_rows: q.c_rows * T::PARTS,
                live: q.n * T::PARTS - col,
                alpha: q.alpha,
                base,
                base_rows: base_rows * T::PARTS,
                whole: q.m,
            };
            let two = width > S::LANES;
            by_tile!(height, two, compute, S; &tile);
        }
    }
}

struct Tile<T: Scalar> {
    a: Operand<T>,
    b: *const T::Real,
    width: usize,
    depth: usize,
    c: *mut T::Real,
    c_rows: usize,
    live: usize,
    alpha: T::Real,
    base: *const T::Real,
    base_rows: usize,
    /// Rows of the whole product: decides the order of summation for all its tiles.
    whole: usize,
}

// `by_tile!` names functions generic over <S, MR, NV>; the element type is read off the tile.
#[inline(always)]
unsafe fn compute<S: Simd, const MR: usize, const NV: usize>(tile: &impl AsTile<R = S::R>) {
    // SAFETY: the contract of `Product::run`.
    unsafe { tile.run::<S, MR, NV>() }
}

trait AsTile {
    type R: Real;
    unsafe fn run<S: Simd<R = Self::R>, const MR: usize, const NV: usize>(&self);
}

impl<T: Scalar> AsTile for Tile<T> {
    type R = T::Real;

    #[inline(always)]
    unsafe fn run<S: Simd<R = T::Real>, const MR: usize, const NV: usize>(&self) {
        // SAFETY: the contract of `Product::run`.
        unsafe {
            let mut acc = [[S::zero(); NV]; MR];
            for i in 0..MR {
                S::prefetch(self.c.wrapping_add(i * self.c_rows));
                S::prefetch(self.c.wrapping_add(i * self.c_rows + (NV - 1) * S::LANES));
            }
            let (a, rs, cs) = (self.a.data.cast::<S::R>(), self.a.rows * T::PARTS, self.a.cols * T::PARTS);
            let (b, k, bs) = (self.b, self.depth, self.width);
            if T::PARTS == 2 && self.a.cols != 1 {
                mac_pairs::<S, MR, NV>(&mut acc, k, a, rs, cs, b, bs);
            } else {
                let (k, cs) = (k * T::PARTS, if T::PARTS == 2 { 1 } else { cs });
                match self.whole {
                    1 => mac_few::<S, MR, NV, 4>(&mut acc, k, a, rs, cs, b, bs),
                    2 | 3 => mac_few::<S, MR, NV, 2>(&mut acc, k, a, rs, cs, b, bs),
                    // unit strides known at compile time save an addition per step
                    _ if cs == 1 => mac::<S, MR, NV>(&mut acc, k, a, rs, 1, b, bs),
                    _ => mac::<S, MR, NV>(&mut acc, k, a, rs, cs, b, bs),
                }
            }
            let alpha = S::splat(self.alpha);
            for j in 0..NV {
                let live = self.live.saturating_sub(j * S::LANES);
                if live == 0 {
                    continue;
                }
                for i in 0..MR {
                    let c = self.c.add(i * self.c_rows + j * S::LANES);
                    let v = if !self.base.is_null() {
                        let base = self.base.add(i * self.base_rows + j * S::LANES);
                        S::mul_add(alpha, acc[i][j], S::load_n(base, live))
                    } else {
                        S::mul(alpha, acc[i][j])
                    };
                    S::store_n(c, v, live);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Buffer;
    use crate::parallel;
    use crate::scalar::{c32, c64};

    /// Small deterministic numbers.
    fn fill<T: Scalar>(n: usize, seed: u64) -> Vec<T> {
        let mut s = seed.wrapping_mul(0x9e3779b97f4a7c15) | 1;
        let mut next = || {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            T::Real::of((s >> 40) as f64 / (1u64 << 23) as f64 - 1.0)
        };
        (0..n).map(|_| T::new(next(), next())).collect()
    }

    fn check<T: Scalar>(m: usize, n: usize, k: usize, threads: usize) {
        let pad = 5;
        for variant in 0..8 {
            let (ta, tb, ca) = (variant & 1 == 1, variant & 2 == 2, variant & 4 == 4);
            let (ra, rb) = (if ta { m } else { k } + pad, if tb { k } else { n } + pad);
            let a: Vec<T> = fill(if ta { k } else { m } * ra + 1, 3);
            let b: Vec<T> = fill(if tb { n } else { k } * rb + 1, 5);
            let rc = n + 3;
            let before: Vec<T> = fill(m * rc + 1, 7);
            let c = std::cell::UnsafeCell::new(before.clone());
            let (mut oa, mut ob) = (Operand::new(a.as_ptr(), ra), Operand::new(b.as_ptr(), rb));
            if ta {
                oa = oa.t();
            }
            if tb {
                ob = ob.t();
            }
            if ca {
                (oa, ob) = (oa.conj(), if tb { ob.conj() } else { ob });
            }
            let add = ca;
            // SAFETY: nobody else holds the cell now.
            let out = unsafe { (*c.get()).as_mut_ptr() };
            let mut product = Product::new((m, n, k), oa, ob, out, rc).alpha(-0.5);
            if add {
                product = product.add();
            }
            struct Wrap<T: Scalar>(Product<T>);
            // SAFETY: members of a product write disjoint parts of C.
            unsafe impl<T: Scalar> Sync for Wrap<T> {}
            let wrap = Wrap(product);
            parallel::run(threads, &|member| {
                let wrap = &wrap;
                let s = Buffer::<T::Real>::scratch(Product::<T>::scratch(m, k));
                // SAFETY: the operands have the sizes of the product.
                unsafe { wrap.0.run(member, s.ptr()) };
            });
            let c = c.into_inner();
            let get = |x: &Vec<T>, r: usize, t: bool, i: usize, j: usize| {
                if t { x[j * r + i] } else { x[i * r + j] }
            };
            for i in 0..m {
                for j in 0..rc {
                    let mut expected = before[i * rc + j];
                    if j < n {
                        let mut sum = T::Wide::default();
                        for p in 0..k {
                            let (mut x, mut y) =
                                (get(&a, ra, ta, i, p).widen(), get(&b, rb, tb, p, j).widen());
                            if ca {
                                x = x.conj();
                                if tb {
                                    y = y.conj();
                                }
                            }
                            sum += x * y;
                        }
                        let base = if add { expected } else { T::default() };
                        expected = T::narrow(base.widen() + sum.scale(-0.5));
                    }
                    let tolerance = if j < n { 40.0 * T::Real::EPS.f64() * (k as f64).sqrt() } else { 0.0 };
                    let error = (c[i * rc + j].widen() - expected.widen()).modulus();
                    assert!(error <= tolerance, "{m}x{n}x{k} variant {variant} at ({i}, {j}): {error:e}");
                }
            }
        }
    }

    #[test]
    fn products_equal_the_sums_in_every_layout() {
        for (m, n, k) in [
            (1, 1, 1),
            (1, 40, 9),
            (2, 5, 3),
            (3, 33, 17),
            (7, 16, 64),
            (13, 65, 31),
            (40, 70, 300),
            (5, 3, 0),
        ] {
            for threads in [1, 2, 3] {
                check::<f32>(m, n, k, threads);
                check::<f64>(m, n, k, threads);
                check::<c32>(m, n, k, threads);
                check::<c64>(m, n, k, threads);
            }
        }
    }
}
