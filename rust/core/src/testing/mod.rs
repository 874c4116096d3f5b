//! Shared by the unit tests.

pub mod drawn;
mod guarded;
pub mod rows;
pub mod square;
pub mod tape;
pub mod threads;

pub use guarded::Guarded;

use crate::error::Result;
use crate::scalar::{Real, Scalar};
use std::fmt::Display;

/// Whether to run a case of this many multiply-adds: always, unless `ISOMETRY_TEST_WORK` excludes the cases
/// that take too long under valgrind.
pub fn within_work(sizes: &[usize]) -> bool {
    let most = std::env::var("ISOMETRY_TEST_WORK").ok().and_then(|most| most.parse().ok());
    crate::sizes::work(sizes) <= most.unwrap_or(usize::MAX)
}

/// So many threads; one under Miri, which takes minutes where they wait for each other.
pub fn members(most: usize) -> usize {
    if within_work(&[1000]) { most } else { 1 }
}

/// Numbers in (-1, 1) that a seed determines, by xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn number(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn scalar<T: Scalar>(&mut self, scale: f64) -> T {
        T::new(T::Real::of(scale * self.number()), T::Real::of(scale * self.number()))
    }
    pub fn array<T: Scalar>(&mut self, len: usize, scale: f64) -> Vec<T> {
        (0..len).map(|_| self.scalar(scale)).collect()
    }
}

/// An array of numbers in (-scale, scale).
pub fn fill<T: Scalar>(len: usize, scale: f64, seed: u64) -> Vec<T> {
    Random::new(seed).array(len, scale)
}

/// An array of numbers in (-1, 1).
pub fn numbers<T: Scalar>(len: usize, seed: u64) -> Vec<T> {
    fill(len, 1.0, seed)
}

/// In double precision.
pub fn wide<T: Scalar>(x: &[T]) -> Vec<T::Wide> {
    x.iter().map(|x| x.widen()).collect()
}

/// Whether two arrays agree to `tolerance`, relative to the norm of the expected one or to 1e-3.
#[track_caller]
pub fn near<T: Scalar>(got: &[T], expected: &[T::Wide], tolerance: f64, what: impl Display) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let size = expected.iter().map(|x| x.abs2()).sum::<f64>().sqrt();
    let off = got.iter().zip(expected).map(|(a, b)| (a.widen() - *b).abs2()).sum::<f64>().sqrt();
    assert!(off <= tolerance * size.max(1e-3), "{what}: {off:e} of {size:e}");
}

/// What a call writes into an array of `len`, with the same bits on one, two and three threads.
#[track_caller]
pub fn written<T: Scalar>(
    len: usize,
    what: impl Display,
    call: impl Fn(&mut [T], usize) -> Result<()>,
) -> Vec<T> {
    let [one, others @ ..] = [1, 2, 3].map(|threads| {
        let mut out = Guarded::new(len);
        call(out.inner(), threads).unwrap();
        out.take()
    });
    assert!(others.iter().all(|other| *other == one), "{what}: threads differ");
    one
}

/// Calls a generic function for each of the four types of numbers.
macro_rules! every_type {
    ($check:ident($($argument:expr),*)) => {
        $check::<f32>($($argument),*);
        $check::<f64>($($argument),*);
        $check::<crate::scalar::c32>($($argument),*);
        $check::<crate::scalar::c64>($($argument),*);
    };
}
pub(crate) use every_type;
