//! An activation as the kernels use it, and the pass over complete rows: h = phi(z), or z_bar = phi'^H g.

use super::elementwise::Elementwise;
use super::identity::Identity;
use super::leaky_relu::LeakyRelu;
use super::modrelu::{Modrelu, ModreluPairs};
use super::oplu::{self, Oplu};
use super::relu::Relu;
use super::sigmoid::Sigmoid;
use super::tanh::Tanh;
use super::{modrelu_realrep, oplu_halves};
use crate::dispatch::kernel;
use crate::scalar::Real;
use crate::simd::Simd;
use std::ops::Range;

/// A function of real rows of [`Phi::width`] numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonlinearity {
    /// z
    Identity,
    /// tanh z
    Tanh,
    /// 1 / (1 + e^-z), of gates
    Sigmoid,
    /// max(z, 0)
    Relu,
    /// max(slope z, z)
    LeakyRelu,
    /// modReLU of real numbers
    Modrelu,
    /// modReLU of complex numbers
    ModreluPairs,
    /// (max, min) of adjacent numbers
    Oplu,
    /// (max, min) of adjacent complex numbers, per part
    OpluComplex,
    /// (max, min) across the halves of a row
    OpluHalves,
    /// modReLU of (a_i, a_{i + n/2})
    ModreluRealrep,
}

impl Nonlinearity {
    /// Whether it needs whole rows, not only a range of columns.
    pub fn by_rows(self) -> bool {
        matches!(self, Nonlinearity::OpluComplex | Nonlinearity::OpluHalves | Nonlinearity::ModreluRealrep)
    }
}

/// The meaning of y in a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The result h.
    Value,
    /// The argument z.
    Argument,
}

/// Numbers of a block of work: they fit in the first-level cache.
pub(crate) const TOGETHER: usize = 4096;

/// An activation of rows of `width` real numbers.
#[derive(Clone, Copy)]
pub struct Phi<R> {
    /// The kind.
    pub kind: Nonlinearity,
    /// Real numbers per row.
    pub width: usize,
    /// The slope of leaky_relu.
    pub slope: R,
    /// The bias of every number of a row, padded to whole vectors; null without bias.
    pub bias: *const R,
}

/// Expands the block with `$A` as the [`Elementwise`] type of an elementwise kind, which has the name of the kind.
macro_rules! with_kind {
    ($kind:expr, $A:ident => $body:block) => {
        with_kind!($kind, $A => $body, Identity, Tanh, Sigmoid, Relu, LeakyRelu, Modrelu, ModreluPairs)
    };
    ($kind:expr, $A:ident => $body:block, $($name:ident),+) => {
        match $kind {
            $(Nonlinearity::$name => {
                type $A = $name;
                $body
            })+
            _ => {
                type $A = Oplu;
                $body
            }
        }
    };
}

/// out = phi(z), or phi'^H g with the derivative from y, on some rows and columns (all columns if [`Nonlinearity::by_rows`]);
/// out may be z or g.
///
/// # Safety
/// Rows of `width` numbers are contiguous at all pointers; columns start at a multiple of two vectors.
pub struct Pass<R> {
    /// phi
    pub phi: Phi<R>,
    /// z, or the source of the derivative.
    pub y: *const R,
    /// g; null to compute the value.
    pub g: *const R,
    /// Whether y is h or z.
    pub from: Source,
    /// The result.
    pub out: *mut R,
    /// The rows.
    pub rows: Range<usize>,
    /// The columns.
    pub columns: Range<usize>,
}

kernel!(Pass::<R>, |own| {
    let Phi { kind, width, bias, .. } = own.phi;
    // SAFETY: the rows and columns exist at all pointers (contract of `Pass`).
    unsafe {
        if kind.by_rows() {
            for row in own.rows.clone() {
                let at = row * width;
                own.phi.row::<S>(own.y.add(at), own.g, at, own.out.add(at));
            }
            return;
        }
        // Without a bias contiguous whole rows are treated as one row, so that vectors may cross row boundaries.
        if bias.is_null() && own.columns.len() == width && width > 0 {
            let (first, len) = (own.rows.start * width, own.rows.len() * width);
            let whole = len / S::LANES;
            own.columns_of::<S>(first, whole, S::LANES, 0, S::LANES);
            own.columns_of::<S>(first + whole * S::LANES, 1, 0, 0, len % S::LANES);
            return;
        }
        // down the columns of as many rows as fit in the first-level cache
        let tall = (TOGETHER / own.columns.len().max(1)).max(1);
        for row in own.rows.clone().step_by(tall) {
            let rows = tall.min(own.rows.end - row);
            for col in own.columns.clone().step_by(S::LANES) {
                own.columns_of::<S>(row * width + col, rows, width, col, own.columns.end - col);
            }
        }
    }
});

impl<R: Real> Pass<R> {
    /// The first `live` columns of a vector in `rows` rows, stride `width`, from number `first` on; the bias starts at
    /// column `col`.
    #[inline(always)]
    unsafe fn columns_of<S: Simd<R = R>>(
        &self,
        first: usize,
        rows: usize,
        width: usize,
        col: usize,
        live: usize,
    ) {
        // SAFETY: the rows and columns exist at all pointers (contract of `Pass`).
        unsafe {
            if live >= S::LANES {
                self.each::<S, true>(first, rows, width, col, live);
            } else if live > 0 {
                self.each::<S, false>(first, rows, width, col, live);
            }
        }
    }

    /// [`Pass::columns_of`] for whole vectors, or for fewer columns.
    #[inline(always)]
    unsafe fn each<S: Simd<R = R>, const WHOLE: bool>(
        &self,
        first: usize,
        rows: usize,
        width: usize,
        col: usize,
        live: usize,
    ) {
        let Phi { kind, slope, bias, .. } = self.phi;
        let (y, out) = (self.y.wrapping_add(first), self.out.wrapping_add(first));
        // SAFETY: the rows and columns exist at all pointers (contract of `Pass`); the bias is padded to whole vectors.
        unsafe {
            let slope = S::splat(slope);
            let b = if bias.is_null() { S::zero() } else { S::load(bias.add(col)) };
            with_kind!(kind, A => {
                if self.g.is_null() {
                    for at in (0..rows).map(|row| row * width) {
                        let v = A::value::<S>(load::<S, WHOLE>(y.wrapping_add(at), live), b, slope);
                        store::<S, WHOLE>(out.wrapping_add(at), v, live);
                    }
                    return;
                }
                let g = self.g.wrapping_add(first);
                if self.from == Source::Value {
                    for at in (0..rows).map(|row| row * width) {
                        let g = load::<S, WHOLE>(g.wrapping_add(at), live);
                        let v = A::pull::<S>(load::<S, WHOLE>(y.wrapping_add(at), live), b, slope, g);
                        store::<S, WHOLE>(out.wrapping_add(at), v, live);
                    }
                } else {
                    for at in (0..rows).map(|row| row * width) {
                        let g = load::<S, WHOLE>(g.wrapping_add(at), live);
                        let v = A::pull_at::<S>(load::<S, WHOLE>(y.wrapping_add(at), live), b, slope, g);
                        store::<S, WHOLE>(out.wrapping_add(at), v, live);
                    }
                }
            });
        }
    }
}

/// A whole vector, or its first n lanes. (A function: a closure does not inherit the instruction set.)
#[inline(always)]
unsafe fn load<S: Simd, const WHOLE: bool>(p: *const S::R, n: usize) -> S::V {
    // SAFETY: p points to a whole vector, or to n numbers.
    unsafe { if WHOLE { S::load(p) } else { S::load_n(p, n) } }
}

/// The inverse of [`load`].
#[inline(always)]
unsafe fn store<S: Simd, const WHOLE: bool>(p: *mut S::R, v: S::V, n: usize) {
    // SAFETY: p points to a whole vector, or to n numbers.
    unsafe { if WHOLE { S::store(p, v) } else { S::store_n(p, v, n) } }
}

impl<R: Real> Phi<R> {
    /// One row of a kind that pairs distant elements: the value, or the gradient if g is given.
    #[inline(always)]
    unsafe fn row<S: Simd<R = R>>(&self, y: *const R, g: *const R, at: usize, out: *mut R) {
        let width = self.width;
        // SAFETY: the rows exist at all pointers in full width (contract of `Pass`).
        unsafe {
            if self.kind == Nonlinearity::OpluComplex {
                let g = if g.is_null() { g } else { g.add(at) };
                return oplu::complex(y, g, out, width);
            }
            let half = width / 2;
            for i in (0..half).step_by(S::LANES) {
                let live = half - i;
                let load = |p: *const R| [S::load_n(p.add(i), live), S::load_n(p.add(half + i), live)];
                let z = load(y);
                let realrep = self.kind == Nonlinearity::ModreluRealrep;
                let b = if realrep { S::load(self.bias.add(i)) } else { S::zero() };
                let v = match (g.is_null(), realrep) {
                    (true, true) => modrelu_realrep::value::<S>(z, b),
                    (true, false) => oplu_halves::value::<S>(z),
                    (false, true) => modrelu_realrep::pull::<S>(z, b, load(g.add(at))),
                    (false, false) => oplu_halves::pull::<S>(z, load(g.add(at))),
                };
                S::store_n(out.add(i), v[0], live);
                S::store_n(out.add(half + i), v[1], live);
            }
        }
    }
}
