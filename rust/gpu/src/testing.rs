//! For tests: the device, numbers, and matrices in double precision as references.

use crate::device::{Context, context};
use crate::{Array, Field};
use isometry_core::argument::{self, Bar};
use isometry_core::scalar::{Real, Scalar, c64, parts, parts_mut};
use std::sync::Arc;

/// The device; None, which skips a test, if there is none and `ISOMETRY_REQUIRE_GPU` is not set.
pub fn device() -> Option<Arc<Context>> {
    match context() {
        Ok(context) => Some(context),
        Err(error) if std::env::var("ISOMETRY_REQUIRE_GPU").is_ok_and(|value| value == "1") => {
            panic!("{error}")
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Skips like [`device`]; a context of the test's own.
pub fn own() -> Option<Arc<Context>> {
    device().map(|_| Arc::new(Context::new().unwrap()))
}

/// A call that is not cancelled.
pub fn never() -> bool {
    false
}

/// A matrix in double precision.
#[derive(Clone, Debug)]
pub struct M {
    pub rows: usize,
    pub columns: usize,
    pub data: Vec<c64>,
}

impl M {
    pub fn new(rows: usize, columns: usize, f: impl Fn(usize, usize) -> c64) -> M {
        let data = (0..rows * columns).map(|at| f(at / columns, at % columns)).collect();
        M { rows, columns, data }
    }
    pub fn eye(n: usize) -> M {
        M::new(n, n, |i, j| c64::from(f64::from(i == j)))
    }
    pub fn at(&self, i: usize, j: usize) -> c64 {
        self.data[i * self.columns + j]
    }
    pub fn h(&self) -> M {
        M::new(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }
    pub fn t(&self) -> M {
        M::new(self.columns, self.rows, |i, j| self.at(j, i))
    }
    pub fn conj(&self) -> M {
        self.h().t()
    }
    pub fn times(&self, other: &M) -> M {
        M::new(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }
    pub fn plus(&self, other: &M, by: f64) -> M {
        M::new(self.rows, self.columns, |i, j| self.at(i, j) + other.at(i, j) * by)
    }
    pub fn norm(&self) -> f64 {
        self.data.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt()
    }
}

/// Numbers in (-1, 1) that single precision has, from a seed; imaginary parts for a complex field.
pub fn numbers(field: Field, count: usize, seed: u64) -> Vec<c64> {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f64 / f64::from(1u32 << 23) - 1.0
    };
    (0..count).map(|_| c64::new(next(), if field == Field::Complex { next() } else { 0.0 })).collect()
}

/// The same times a scale, rounded to single precision, by their parts.
pub fn draw(field: Field, count: usize, scale: f64, seed: u64) -> Vec<f64> {
    let drawn = flat(field, &numbers(field, count, seed));
    drawn.into_iter().map(|x| f64::from((x * scale) as f32)).collect()
}

/// The parts of numbers of a field.
pub fn flat(field: Field, x: &[c64]) -> Vec<f64> {
    x.iter().flat_map(|x| [x.re, x.im].into_iter().take(field.parts())).collect()
}

/// The numbers of a field from their parts.
pub fn complex(field: Field, parts: &[f64]) -> Vec<c64> {
    parts.chunks(field.parts()).map(|x| c64::new(x[0], *x.get(1).unwrap_or(&0.0))).collect()
}

/// On the device.
pub fn sent(context: &Arc<Context>, field: Field, shape: &[usize], data: &[c64]) -> Array {
    let numbers: Vec<f32> = flat(field, data).into_iter().map(|x| x as f32).collect();
    Array::upload(context, field, shape, &numbers).unwrap()
}

/// From the device.
pub fn fetched(array: &Array) -> Vec<c64> {
    complex(array.field(), &array.download().unwrap().into_iter().map(f64::from).collect::<Vec<_>>())
}

/// Whether two arrays agree to `units` of rounding, relative to the norm of the reference or to 0.1.
#[track_caller]
pub fn near(got: &[c64], expected: &[c64], units: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let size = expected.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt().max(0.1);
    let off = got.iter().zip(expected).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
    let units = units * crate::proof::roughness();
    assert!(off <= units * f64::from(f32::EPSILON) / 2.0 * size, "{what}: {off:e} of {size:e}");
}

/// Numbers of a type from their parts.
pub fn of_parts<T: Scalar>(x: &[f64]) -> Vec<T> {
    let mut found = vec![T::zero(); x.len() / T::PARTS];
    parts_mut(&mut found).iter_mut().zip(x).for_each(|(to, &x)| *to = T::Real::of(x));
    found
}

/// The parts of numbers.
pub fn widened<T: Scalar>(x: &[T]) -> Vec<f64> {
    parts(x).iter().map(|x| x.f64()).collect()
}

/// [`near`] of parts.
#[track_caller]
pub fn close(found: &[f64], expected: &[f64], units: f64, what: &str) {
    let [found, expected] = [found, expected].map(|x| x.iter().map(|&x| c64::from(x)).collect::<Vec<_>>());
    near(&found, &expected, units, what);
}

/// An array of a call in T.
pub enum Numbers<T: Scalar> {
    /// Of the type of the matrix.
    Own(Vec<T>),
    /// Of its real type.
    Real(Vec<T::Real>),
}

impl<T: Scalar> Numbers<T> {
    pub fn new(real: bool, x: &[f64]) -> Self {
        if real { Numbers::Real(of_parts(x)) } else { Numbers::Own(of_parts(x)) }
    }

    /// As many zeros.
    pub fn zeros(&self) -> Self {
        match self {
            Numbers::Own(x) => Numbers::Own(vec![T::zero(); x.len()]),
            Numbers::Real(x) => Numbers::Real(vec![T::Real::of(0.0); x.len()]),
        }
    }

    pub fn array(&self) -> argument::Array<'_, T> {
        match self {
            Numbers::Own(x) => argument::Array::Own(x),
            Numbers::Real(x) => argument::Array::Real(x),
        }
    }

    pub fn bar(&mut self) -> Bar<'_, T> {
        match self {
            Numbers::Own(x) => Bar::Own(x),
            Numbers::Real(x) => Bar::Real(x),
        }
    }

    pub fn widened(&self) -> Vec<f64> {
        match self {
            Numbers::Own(x) => widened(x),
            Numbers::Real(x) => widened(x),
        }
    }
}
