//! Orthogonal and unitary transformations as fast, differentiable building blocks: all the arithmetic of Isometry.
//!
//! Data flows one way: array, operator, kernel, result. [`Operator`] is what every device needs of an operator, [`Cpu`] its
//! arithmetic here, [`Rows`] what it does to rows where it has no matrix; each module of [`operators`] is one operator.
//! [`recurrence`] is the loop over time, [`activation`] has its nonlinearities; [`delta`] is the delta rule, [`linalg`] the
//! functions of LAPACK.
//!
//! A row is a vector in the last axis; `apply` is c = W x for every row. Gradients: for a real loss L the gradient with
//! respect to z = x + iy is dL/dx + i dL/dy, and has the name of its array with `_bar`; cotangents of results are `ct`.
//!
//! A call returns an [`Error`] before it has written anything, or in its course where memory ends ([`Error::OutOfMemory`]) or
//! its [`Budget`] says so ([`Error::Interrupted`]), which leaves its outputs unspecified. A panic is one of a closure or an
//! operator of the caller, and reaches it. Values that only a pass over an array could check are trusted;
//! [`operators::check_values`] makes that pass.
#![doc = concat!("\n\n", include_str!("../README.md"))]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod activation;
pub mod argument;
mod batch;
mod budget;
mod cpu;
pub mod delta;
mod error;
#[doc(hidden)]
pub mod internal;
mod kernels;
pub mod linalg;
mod operator;
pub mod operators;
mod parallel;
pub mod recurrence;
pub mod rows;
pub mod scalar;
mod scratch;
mod side;
mod sizes;
mod task;
#[cfg(test)]
mod testing;
mod transition;

pub use budget::Budget;
pub use cpu::Cpu;
pub use error::{Error, Result};
pub use operator::{Operator, Saves};
pub use rows::Rows;
pub use side::Side;
