//! The four types of numbers, [`f32`], [`f64`] and their complex pairs [`c32`] and [`c64`], and the traits over which the calls are
//! generic: [`Real`] for the first two, [`Scalar`] for all.

pub use isometry_kernels::scalar::{Real, Scalar, all_finite, c32, c64, parts, parts_mut};
