//! The four types of numbers, [`f32`], [`f64`] and their complex pairs [`c32`] and [`c64`], and the traits over which the calls
//! are generic: [`Real`] for the first two, [`Scalar`] for all.
//!
//! ```
//! use isometry_core::scalar::{Real, Scalar, all_finite, c64, parts, parts_mut};
//!
//! fn norm<T: Scalar>(x: &[T]) -> f64 {
//!     x.iter().map(|x| x.abs2().f64()).sum::<f64>().sqrt()
//! }
//!
//! let mut x = [c64::new(3.0, 0.0), c64::new(0.0, 4.0)];
//! assert_eq!((norm(&x), norm(&[3.0f32, 4.0])), (5.0, 5.0));
//! // an array of complex numbers is one of twice as many real ones
//! assert_eq!(parts(&x), [3.0, 0.0, 0.0, 4.0]);
//! parts_mut(&mut x)[1] = f64::of(2.0);
//! assert_eq!(x[0].conj(), Scalar::new(3.0, -2.0));
//! assert!(all_finite(&x) && !all_finite(&[f32::NAN]));
//! ```
//!
//! Both traits list the kernels that are compiled for a type, so they have no other implementations.

pub use isometry_kernels::scalar::{Real, Scalar, all_finite, c32, c64, parts, parts_mut};
