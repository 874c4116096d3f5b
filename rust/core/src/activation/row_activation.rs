//! An activation prepared for rows of one width: its kind for this number type, and its biases expanded per real number.

use super::{Activation, Nonlinearity, Source};
use crate::error::Result;
use crate::kernels::Buffer;
use crate::scalar::{Real, Scalar};
use isometry_kernels::activation::{Pass, Phi};
use std::ops::Range;

/// An activation prepared for rows of `width` real numbers.
pub struct RowActivation<R: Real> {
    /// The kernel's kind.
    pub kind: Nonlinearity,
    /// Real numbers per row.
    pub width: usize,
    /// The slope of leaky_relu.
    pub slope: R,
    /// The bias of every number of a row, then zeros up to whole vectors; empty without bias.
    bias: Buffer<R>,
    growing: bool,
}

impl<R: Real> RowActivation<R> {
    /// For rows of n elements of T; the arguments have passed [`Activation::check`].
    pub fn new<T: Scalar<Real = R>>(activation: Activation, n: usize, bias: Option<&[R]>) -> Result<Self> {
        let kind = match activation {
            Activation::Identity => Nonlinearity::Identity,
            Activation::Tanh => Nonlinearity::Tanh,
            Activation::Relu => Nonlinearity::Relu,
            Activation::LeakyRelu { .. } => Nonlinearity::LeakyRelu,
            Activation::Oplu if T::PARTS == 2 => Nonlinearity::OpluComplex,
            Activation::Oplu => Nonlinearity::Oplu,
            Activation::OpluHalves => Nonlinearity::OpluHalves,
            Activation::Modrelu if T::PARTS == 2 => Nonlinearity::ModreluPairs,
            Activation::Modrelu => Nonlinearity::Modrelu,
            Activation::ModreluRealrep => Nonlinearity::ModreluRealrep,
        };
        let slope = if let Activation::LeakyRelu { slope } = activation { R::of(slope) } else { R::zero() };
        let width = n * T::PARTS;
        let mut spread = Buffer::zeroed(if bias.is_some() { width + 64 } else { 0 })?;
        let growing = bias.is_some_and(|bias| bias.iter().any(|&b| b > R::zero()));
        for (i, &b) in bias.unwrap_or(&[]).iter().enumerate() {
            match kind {
                Nonlinearity::ModreluPairs => spread[2 * i..2 * i + 2].fill(b),
                Nonlinearity::ModreluRealrep => (spread[i], spread[i + width / 2]) = (b, b),
                _ => spread[i] = b,
            }
        }
        Ok(RowActivation { kind, width, slope, bias: spread, growing })
    }

    /// The form used by the kernels.
    pub fn kernel(&self) -> Phi<R> {
        let RowActivation { kind, width, slope, .. } = *self;
        Phi {
            kind,
            width,
            slope,
            bias: if self.bias.is_empty() { std::ptr::null() } else { self.bias.as_ptr() },
        }
    }

    /// Whether the pullback rotates a number: the component along it, which the bias gradient needs, is then lost in
    /// rounding.
    pub fn turns(&self) -> bool {
        matches!(self.kind, Nonlinearity::ModreluPairs | Nonlinearity::ModreluRealrep)
    }

    /// Whether the derivative can be computed from h with full accuracy. OPLU does not preserve the order; the radius
    /// |h| - b of a complex modReLU loses digits for b > 0.
    pub fn readable(&self) -> bool {
        match self.kind {
            Nonlinearity::Oplu
            | Nonlinearity::OpluComplex
            | Nonlinearity::OpluHalves
            | Nonlinearity::ModreluRealrep => false,
            Nonlinearity::ModreluPairs => !self.growing,
            _ => true,
        }
    }

    /// out = phi(z) on these rows and columns (all columns if [`Nonlinearity::by_rows`]); out may be z.
    ///
    /// # Safety
    /// Rows of `width` numbers are contiguous at both pointers; columns start at a multiple of two vectors.
    pub unsafe fn value(&self, z: *const R, out: *mut R, rows: Range<usize>, columns: Range<usize>) {
        let (phi, from, g) = (self.kernel(), Source::Argument, std::ptr::null());
        // SAFETY: the rows and columns exist; the bias is padded to whole vectors.
        unsafe { Pass { phi, y: z, g, from, out, rows, columns }.call() }
    }

    /// out = phi'^H g, with the derivative from y; out may be g.
    ///
    /// # Safety
    /// As [`RowActivation::value`].
    pub unsafe fn pull(
        &self,
        y: *const R,
        from: Source,
        g: *const R,
        out: *mut R,
        rows: Range<usize>,
        columns: Range<usize>,
    ) {
        // SAFETY: the rows and columns exist; the bias is padded to whole vectors.
        unsafe { Pass { phi: self.kernel(), y, g, from, out, rows, columns }.call() }
    }
}
