//! An activation made ready for rows of one width: its kind for this number type, its biases spread over the lanes, and
//! the passes over finished rows: h = phi(z) and z_bar = phi'^H g.

use super::elementwise::Elementwise;
use super::{
    Activation, Identity, LeakyRelu, Modrelu, ModreluPairs, Oplu, Relu, Tanh, modrelu_realrep, oplu,
    oplu_halves,
};
use crate::error::Result;
use crate::kernels::{Buffer, Kernel, Simd, dispatch};
use crate::scalar::{Real, Scalar};
use std::ops::Range;

/// What an activation is for real rows of [`Law::width`] numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// z
    Identity,
    /// tanh z
    Tanh,
    /// max(z, 0)
    Relu,
    /// max(slope z, z)
    LeakyRelu,
    /// modReLU of real numbers
    Modrelu,
    /// modReLU of complex numbers
    ModreluPairs,
    /// Neighbours ordered
    Oplu,
    /// Complex neighbours ordered
    OpluComplex,
    /// Halves of a row ordered
    OpluHalves,
    /// modReLU of (a_i, a_{i + n/2})
    ModreluRealrep,
}

impl Kind {
    /// Needs whole rows, not only a range of columns.
    pub fn by_rows(self) -> bool {
        matches!(self, Kind::OpluComplex | Kind::OpluHalves | Kind::ModreluRealrep)
    }
}

/// What the y of a pull is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The result h.
    Value,
    /// The argument z.
    Argument,
}

/// Runs the block with `$A` naming the [`Elementwise`] of an elementwise kind.
macro_rules! with_kind {
    ($kind:expr, $A:ident => $body:block) => {
        match $kind {
            Kind::Identity => {
                type $A = Identity;
                $body
            }
            Kind::Tanh => {
                type $A = Tanh;
                $body
            }
            Kind::Relu => {
                type $A = Relu;
                $body
            }
            Kind::LeakyRelu => {
                type $A = LeakyRelu;
                $body
            }
            Kind::Modrelu => {
                type $A = Modrelu;
                $body
            }
            Kind::ModreluPairs => {
                type $A = ModreluPairs;
                $body
            }
            _ => {
                type $A = Oplu;
                $body
            }
        }
    };
}

/// An activation made ready for rows of `width` real numbers.
pub struct Law<R: Real> {
    /// What it does to the numbers of a row.
    pub kind: Kind,
    /// Real numbers per row.
    pub width: usize,
    /// That of leaky_relu.
    pub slope: R,
    /// Its own bias for every number of a row, then zeros for whole vectors; empty without bias.
    bias: Buffer<R>,
    growing: bool,
}

impl<R: Real> Law<R> {
    /// For rows of n elements of T; the arguments have passed [`Activation::check`].
    pub fn new<T: Scalar<Real = R>>(activation: Activation, n: usize, bias: Option<&[R]>) -> Result<Self> {
        let kind = match activation {
            Activation::Identity => Kind::Identity,
            Activation::Tanh => Kind::Tanh,
            Activation::Relu => Kind::Relu,
            Activation::LeakyRelu { .. } => Kind::LeakyRelu,
            Activation::Oplu if T::PARTS == 2 => Kind::OpluComplex,
            Activation::Oplu => Kind::Oplu,
            Activation::OpluHalves => Kind::OpluHalves,
            Activation::Modrelu if T::PARTS == 2 => Kind::ModreluPairs,
            Activation::Modrelu => Kind::Modrelu,
            Activation::ModreluRealrep => Kind::ModreluRealrep,
        };
        let slope = if let Activation::LeakyRelu { slope } = activation { R::of(slope) } else { R::zero() };
        let width = n * T::PARTS;
        let mut spread = Buffer::zeroed(if bias.is_some() { width + 64 } else { 0 })?;
        let growing = bias.is_some_and(|bias| bias.iter().any(|&b| b > R::zero()));
        for (i, &b) in bias.unwrap_or(&[]).iter().enumerate() {
            match kind {
                Kind::ModreluPairs => spread[2 * i..2 * i + 2].fill(b),
                Kind::ModreluRealrep => (spread[i], spread[i + width / 2]) = (b, b),
                _ => spread[i] = b,
            }
        }
        Ok(Law { kind, width, slope, bias: spread, growing })
    }

    /// Start of the bias of every number of a row, padded to whole vectors; null without bias.
    pub fn bias(&self) -> *const R {
        if self.bias.is_empty() { std::ptr::null() } else { self.bias.as_ptr() }
    }

    /// Whether the derivative can be read off h with full accuracy. OPLU forgets the order; the radius |h| - b of
    /// a complex modReLU loses digits for b > 0.
    pub fn readable(&self) -> bool {
        match self.kind {
            Kind::Oplu | Kind::OpluComplex | Kind::OpluHalves | Kind::ModreluRealrep => false,
            Kind::ModreluPairs => !self.growing,
            _ => true,
        }
    }

    /// out = phi(z) on these rows and columns (all columns where [`Kind::by_rows`]); out may be z.
    ///
    /// # Safety
    /// Rows of `width` numbers lie one after the other at both pointers; columns start at a multiple of two vectors.
    pub unsafe fn value(&self, z: *const R, out: *mut R, rows: Range<usize>, columns: Range<usize>) {
        // SAFETY: passed on from the caller.
        unsafe {
            dispatch(Pass {
                law: self,
                y: z,
                g: std::ptr::null(),
                from: Source::Argument,
                out,
                rows,
                columns,
            })
        }
    }

    /// out = phi'^H g, with the derivative from y; out may be g.
    ///
    /// # Safety
    /// As [`Law::value`].
    pub unsafe fn pull(
        &self,
        y: *const R,
        from: Source,
        g: *const R,
        out: *mut R,
        rows: Range<usize>,
        columns: Range<usize>,
    ) {
        // SAFETY: passed on from the caller.
        unsafe { dispatch(Pass { law: self, y, g, from, out, rows, columns }) }
    }
}

struct Pass<'a, R: Real> {
    law: &'a Law<R>,
    y: *const R,
    /// Null: the value is wanted.
    g: *const R,
    from: Source,
    out: *mut R,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<R: Real> Kernel<R> for Pass<'_, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(self) {
        let Law { kind, width, slope, .. } = *self.law;
        let bias = self.law.bias();
        // SAFETY: the contract of `Law::value`.
        unsafe {
            if kind.by_rows() {
                for row in self.rows {
                    let at = row * width;
                    self.law.row::<S>(self.y.add(at), self.g, at, self.out.add(at));
                }
                return;
            }
            let slope = S::splat(slope);
            // Without a bias all rows are one.
            let flat = bias.is_null() && self.columns.len() == width;
            let (rows, columns, width) = if flat {
                (0..1, self.rows.start * width..self.rows.end * width, 0)
            } else {
                (self.rows, self.columns, width)
            };
            with_kind!(kind, A => {
                for row in rows {
                    for col in columns.clone().step_by(S::LANES) {
                        let (at, live) = (row * width + col, columns.end - col);
                        let b = if bias.is_null() { S::zero() } else { S::load(bias.add(col)) };
                        let y = S::load_n(self.y.add(at), live);
                        let v = if self.g.is_null() {
                            A::value::<S>(y, b, slope)
                        } else {
                            let g = S::load_n(self.g.add(at), live);
                            match self.from {
                                Source::Value => A::pull::<S>(y, b, slope, g),
                                Source::Argument => A::pull_at::<S>(y, b, slope, g),
                            }
                        };
                        S::store_n(self.out.add(at), v, live);
                    }
                }
            });
        }
    }
}

impl<R: Real> Law<R> {
    /// One row of a kind that pairs distant elements: the value, or the gradient where g is given.
    #[inline(always)]
    unsafe fn row<S: Simd<R = R>>(&self, y: *const R, g: *const R, at: usize, out: *mut R) {
        let width = self.width;
        // SAFETY: the contract of `Law::value`.
        unsafe {
            if self.kind == Kind::OpluComplex {
                let g = if g.is_null() { g } else { g.add(at) };
                return oplu::complex(y, g, out, width);
            }
            let half = width / 2;
            for i in (0..half).step_by(S::LANES) {
                let live = half - i;
                let load = |p: *const R| [S::load_n(p.add(i), live), S::load_n(p.add(half + i), live)];
                let z = load(y);
                let realrep = self.kind == Kind::ModreluRealrep;
                let b = if realrep { S::load(self.bias().add(i)) } else { S::zero() };
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
