//! The element types of arrays.

use isometry_core::scalar::{c32, c64};
use numpy::Element;

/// The element type of an array: one of the four of the core, or that of integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// float32
    F32,
    /// float64
    F64,
    /// complex64
    C32,
    /// complex128
    C64,
    /// int64
    I64,
}

/// A type of Rust that has a [`Dtype`].
pub trait Typed: Element {
    /// Its dtype.
    const DTYPE: Dtype;
    /// Its name in Python.
    const NAME: &str;
}
macro_rules! typed {
    ($($t:ty, $dtype:ident, $name:literal);*) => {
        $(impl Typed for $t {
            const DTYPE: Dtype = Dtype::$dtype;
            const NAME: &str = $name;
        })*
    };
}
typed!(f32, F32, "float32"; f64, F64, "float64"; c32, C32, "complex64"; c64, C64, "complex128"; i64, I64, "int64");
