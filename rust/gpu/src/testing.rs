//! For tests: the device, numbers, and matrices in double precision as references.

use crate::device::{Context, context};
use crate::{Array, Field};
use isometry_core::argument::{self, Bar};
use isometry_core::scalar::{Real, Scalar, parts, parts_mut};
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

/// A complex number in double precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct C(pub f64, pub f64);

impl C {
    pub fn conj(self) -> C {
        C(self.0, -self.1)
    }
    pub fn times(self, other: C) -> C {
        C(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
    }
    pub fn plus(self, other: C) -> C {
        C(self.0 + other.0, self.1 + other.1)
    }
    pub fn scaled(self, by: f64) -> C {
        C(self.0 * by, self.1 * by)
    }
    pub fn square(self) -> f64 {
        self.0 * self.0 + self.1 * self.1
    }
    pub fn inverse(self) -> C {
        self.conj().scaled(1.0 / self.square())
    }
}

/// A matrix in double precision.
#[derive(Clone, Debug)]
pub struct M {
    pub rows: usize,
    pub columns: usize,
    pub data: Vec<C>,
}

impl M {
    pub fn new(rows: usize, columns: usize, f: impl Fn(usize, usize) -> C) -> M {
        let data = (0..rows * columns).map(|at| f(at / columns, at % columns)).collect();
        M { rows, columns, data }
    }
    pub fn eye(n: usize) -> M {
        M::new(n, n, |i, j| C(f64::from(i == j), 0.0))
    }
    pub fn at(&self, i: usize, j: usize) -> C {
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
            (0..self.columns).fold(C::default(), |sum, k| sum.plus(self.at(i, k).times(other.at(k, j))))
        })
    }
    pub fn plus(&self, other: &M, by: f64) -> M {
        M::new(self.rows, self.columns, |i, j| self.at(i, j).plus(other.at(i, j).scaled(by)))
    }
    pub fn norm(&self) -> f64 {
        self.data.iter().map(|x| x.square()).sum::<f64>().sqrt()
    }
    /// Gauss-Jordan with pivots.
    pub fn inverse(&self) -> M {
        let n = self.rows;
        let mut a =
            M::new(n, 2 * n, |i, j| if j < n { self.at(i, j) } else { C(f64::from(j - n == i), 0.0) });
        for k in 0..n {
            let pivot = (k..n).max_by(|&i, &j| a.at(i, k).square().total_cmp(&a.at(j, k).square())).unwrap();
            (0..2 * n).for_each(|j| a.data.swap(k * 2 * n + j, pivot * 2 * n + j));
            let by = a.at(k, k).inverse();
            (0..2 * n).for_each(|j| a.data[k * 2 * n + j] = a.at(k, j).times(by));
            for i in (0..n).filter(|&i| i != k) {
                let by = a.at(i, k).scaled(-1.0);
                (0..2 * n).for_each(|j| a.data[i * 2 * n + j] = a.at(i, j).plus(by.times(a.at(k, j))));
            }
        }
        M::new(n, n, |i, j| a.at(i, j + n))
    }
}

/// Numbers in (-1, 1) that single precision has, from a seed; imaginary parts for a complex field.
pub fn numbers(field: Field, count: usize, seed: u64) -> Vec<C> {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f64 / f64::from(1u32 << 23) - 1.0
    };
    (0..count).map(|_| C(next(), if field == Field::Complex { next() } else { 0.0 })).collect()
}

/// On the device.
pub fn sent(context: &Arc<Context>, field: Field, shape: &[usize], data: &[C]) -> Array {
    let numbers: Vec<f32> =
        data.iter().flat_map(|x| [x.0 as f32, x.1 as f32].into_iter().take(field.parts())).collect();
    Array::upload(context, field, shape, &numbers).unwrap()
}

/// From the device.
pub fn fetched(array: &Array) -> Vec<C> {
    let numbers = array.download().unwrap();
    numbers
        .chunks(array.field().parts())
        .map(|x| C(f64::from(x[0]), f64::from(*x.get(1).unwrap_or(&0.0))))
        .collect()
}

/// Whether two arrays agree to `units` of rounding, relative to the norm of the reference or to 0.1.
#[track_caller]
pub fn near(got: &[C], expected: &[C], units: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let size = expected.iter().map(|x| x.square()).sum::<f64>().sqrt().max(0.1);
    let off = got.iter().zip(expected).map(|(a, b)| a.plus(b.scaled(-1.0)).square()).sum::<f64>().sqrt();
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
    let [found, expected] = [found, expected].map(|x| x.iter().map(|&x| C(x, 0.0)).collect::<Vec<_>>());
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
