//! The four number types: f32, f64 and their complex pairs, and the list of the kernels compiled for them.
//!
//! Kernels treat a complex array as a real one of twice the width (re, im, re, im, ...): [`Scalar::PARTS`] real numbers
//! per element. A complex product is then exactly a real product whose second operand is expanded during packing.

use crate::activation::ActivationKernels;
use crate::angles::AngleKernels;
use crate::bounded_svd::BoundedSvdKernels;
use crate::cayley::CayleyKernels;
use crate::circulant::CirculantKernels;
use crate::delta::DeltaKernels;
use crate::eliminate::EliminateKernels;
use crate::exponential::{ExponentialKernels, ExponentialPasses};
use crate::fourier::FourierKernels;
use crate::givens::GivensKernels;
use crate::hadamard::HadamardKernels;
use crate::householder::HouseholderKernels;
use crate::kronecker::KroneckerKernels;
use crate::mesh::MeshKernels;
use crate::norms::NormKernels;
use crate::pack::PackKernels;
use crate::procrustes::ProcrustesKernels;
use crate::product::ProductKernels;
use crate::qr::QrKernels;
use crate::quaternion::QuaternionKernels;
use crate::recurrence::RecurrenceKernels;
use crate::rotation::RotationKernels;
use crate::simd::{Portable, Simd};
use crate::symmetric::SymmetricKernels;
use crate::upper::UpperKernels;
use crate::{Avx2, Avx512, Neon};
use num_complex::Complex;
use num_traits::{Float, FloatConst, NumAssign};
use std::fmt::Debug;
use std::iter::Sum;
use std::ops::Neg;

/// Complex numbers over f32.
#[allow(non_camel_case_types, reason = "c32 and c64 are the field's names beside f32 and f64")]
pub type c32 = Complex<f32>;
/// Complex numbers over f64.
#[allow(non_camel_case_types, reason = "c32 and c64 are the field's names beside f32 and f64")]
pub type c64 = Complex<f64>;

/// f32 or f64, with its vector types for each instruction set.
pub trait Real:
    Scalar<Real = Self, Wide = f64>
    + Float
    + FloatConst
    + PartialOrd
    + ActivationKernels
    + ExponentialPasses
    + AngleKernels
    + BoundedSvdKernels
    + CirculantKernels
    + DeltaKernels
    + FourierKernels
    + HadamardKernels
    + NormKernels
    + QuaternionKernels
    + RecurrenceKernels
    + RotationKernels
    + SymmetricKernels
{
    /// 512-bit vectors.
    type Avx512: Simd<R = Self>;
    /// 256-bit vectors with fused multiply-add.
    type Avx2: Simd<R = Self>;
    /// Two 128-bit vectors with fused multiply-add.
    type Neon: Simd<R = Self>;
    /// Plain arrays, compiled for the baseline of the target.
    type Portable: Simd<R = Self>;
    /// Machine epsilon.
    const EPS: Self;
    /// Nearest value of this type.
    fn of(x: f64) -> Self;
    /// The exact value.
    fn f64(self) -> f64;
}

/// Types for which every bit pattern is a value.
///
/// # Safety
/// Every bit pattern of the type's size is a valid value.
pub unsafe trait Plain: Copy + Send + Sync {}
// SAFETY: every bit pattern is an integer.
unsafe impl Plain for u32 {}
// SAFETY: every bit pattern is an integer.
unsafe impl Plain for usize {}

/// One of the four element types of an array.
///
/// # Safety
/// An element is [`Scalar::PARTS`] numbers of [`Scalar::Real`] in memory, the real part first, and nothing else.
pub unsafe trait Scalar:
    Plain
    + Debug
    + Default
    + PartialEq
    + NumAssign
    + Neg<Output = Self>
    + Sum
    + CayleyKernels
    + EliminateKernels
    + ExponentialKernels
    + GivensKernels
    + HouseholderKernels
    + KroneckerKernels
    + MeshKernels
    + PackKernels
    + ProcrustesKernels
    + ProductKernels
    + QrKernels
    + UpperKernels
    + 'static
{
    /// f32 or f64.
    type Real: Real;
    /// The double-precision type of the same field.
    type Wide: Scalar<Real = f64, Wide = Self::Wide>;
    /// Real numbers per element: 1, or 2 for a complex type.
    const PARTS: usize;
    /// re + i im; a real type drops im.
    fn new(re: Self::Real, im: Self::Real) -> Self;
    /// Real part.
    fn re(self) -> Self::Real;
    /// Imaginary part, 0 for a real type.
    fn im(self) -> Self::Real;
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// The same number in double precision.
    fn widen(self) -> Self::Wide;
    /// The nearest number of this precision.
    fn narrow(wide: Self::Wide) -> Self;

    /// A real number as an element.
    #[inline(always)]
    fn real(re: Self::Real) -> Self {
        Self::new(re, <Self::Real as num_traits::Zero>::zero())
    }
    /// |z|^2.
    #[inline(always)]
    fn abs2(self) -> Self::Real {
        self.re() * self.re() + self.im() * self.im()
    }
    /// |z| without overflow.
    #[inline(always)]
    fn modulus(self) -> Self::Real {
        self.re().hypot(self.im())
    }
    /// Product with a real number.
    #[inline(always)]
    fn scale(self, by: Self::Real) -> Self {
        Self::new(self.re() * by, self.im() * by)
    }
    /// e^{i angle}; cos(angle) for a real type.
    #[inline(always)]
    fn cis(angle: Self::Real) -> Self {
        Self::new(angle.cos(), angle.sin())
    }
    /// Whether both parts are finite.
    #[inline(always)]
    fn finite(self) -> bool {
        self.re().is_finite() && self.im().is_finite()
    }
}

/// Methods that are inlined everywhere, each an expression.
macro_rules! inlined {
    ($(fn $name:ident($($arguments:tt)*) -> $out:ty = $body:expr;)*) => {
        $(
            #[inline(always)]
            fn $name($($arguments)*) -> $out {
                $body
            }
        )*
    };
}

macro_rules! real {
    ($t:ident) => {
        impl Real for $t {
            type Avx512 = Avx512<$t>;
            type Avx2 = Avx2<$t>;
            type Neon = Neon<$t>;
            type Portable = Portable<$t>;
            const EPS: $t = $t::EPSILON;
            inlined! {
                fn of(x: f64) -> $t = x as $t;
                fn f64(self) -> f64 = self as f64;
            }
        }
        // SAFETY: every bit pattern is a floating-point number.
        unsafe impl Plain for $t {}
        // SAFETY: two floating-point numbers, without padding.
        unsafe impl Plain for Complex<$t> {}
        // SAFETY: a real number is one number of its own type.
        unsafe impl Scalar for $t {
            type Real = $t;
            type Wide = f64;
            const PARTS: usize = 1;
            inlined! {
                fn new(re: $t, _im: $t) -> $t = re;
                fn re(self) -> $t = self;
                fn im(self) -> $t = 0.0;
                fn conj(self) -> $t = self;
                fn widen(self) -> f64 = self as f64;
                fn narrow(wide: f64) -> $t = wide as $t;
            }
        }
        // SAFETY: `Complex` is `repr(C)` with two fields of its real type.
        unsafe impl Scalar for Complex<$t> {
            type Real = $t;
            type Wide = c64;
            const PARTS: usize = 2;
            inlined! {
                fn new(re: $t, im: $t) -> Self = Complex { re, im };
                fn re(self) -> $t = self.re;
                fn im(self) -> $t = self.im;
                fn conj(self) -> Self = Complex { re: self.re, im: -self.im };
                fn widen(self) -> c64 = Complex { re: self.re as f64, im: self.im as f64 };
                fn narrow(wide: c64) -> Self = Complex { re: wide.re as $t, im: wide.im as $t };
            }
        }
    };
}
real!(f32);
real!(f64);

/// The array as real numbers, [`Scalar::PARTS`] per element.
pub fn parts<T: Scalar>(x: &[T]) -> &[T::Real] {
    // SAFETY: `Complex<R>` is `repr(C)` with two fields R, a real type is its own real type; length and alignment fit.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len() * T::PARTS) }
}

/// Whether every number is finite; stops at the first block that holds one that is not.
pub fn all_finite<T: Scalar>(x: &[T]) -> bool {
    parts(x).chunks(4096).all(|block| !block.iter().fold(false, |bad, v| bad | !v.is_finite()))
}

/// [`parts`] of an array that will be written.
pub fn parts_mut<T: Scalar>(x: &mut [T]) -> &mut [T::Real] {
    // SAFETY: as in `parts`; the exclusive borrow is passed on.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len() * T::PARTS) }
}
