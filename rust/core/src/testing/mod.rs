//! Shared by the unit tests.

pub mod drawn;
pub mod rows;
pub mod square;
pub mod tape;
pub mod threads;

use crate::scalar::{Real, Scalar};
use std::fmt::Display;

/// Whether to run a case of this many multiply-adds: always, unless `ISOMETRY_TEST_WORK` excludes the cases
/// that take too long under valgrind.
pub fn within_work(sizes: &[usize]) -> bool {
    let most = std::env::var("ISOMETRY_TEST_WORK").ok().and_then(|most| most.parse().ok());
    crate::sizes::work(sizes) <= most.unwrap_or(usize::MAX)
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

/// An array of NaN between two margins, which nothing may write.
pub struct Guarded<T: Scalar>(Vec<T>);

impl<T: Scalar> Guarded<T> {
    const MARGIN: usize = 40;

    pub fn new(len: usize) -> Self {
        let margin = || std::iter::repeat_n(T::one(), Self::MARGIN);
        let inner = std::iter::repeat_n(T::real(T::Real::of(f64::NAN)), len);
        Guarded(margin().chain(inner).chain(margin()).collect())
    }
    pub fn inner(&mut self) -> &mut [T] {
        let end = self.0.len() - Self::MARGIN;
        &mut self.0[Self::MARGIN..end]
    }
    /// The array, after a check that nothing outside was written.
    pub fn read(&self) -> &[T] {
        let (start, end) = (Self::MARGIN, self.0.len() - Self::MARGIN);
        assert!(self.0[..start].iter().chain(&self.0[end..]).all(|x| *x == T::one()), "written outside");
        &self.0[start..end]
    }
    pub fn take(self) -> Vec<T> {
        self.read().to_vec()
    }
}
