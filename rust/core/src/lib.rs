//! Orthogonal and unitary transformations as fast, differentiable building blocks: all the arithmetic of Isometry.
//!
//! Data flows one way: array, operator, kernel, result. [`scalar`] defines the four number types, [`operator`] and
//! [`cpu`] the operator traits; each folder of [`operators`] is one operator, [`activation`] the nonlinearities, [`recurrence`] the
//! loop over time, [`kernels`] their shared parts, [`parallel`] the threads.
//!
//! A row is a vector in the last axis; `apply` is c = W x for every row. Gradients: for a real loss L the gradient with
//! respect to z = x + iy is dL/dx + i dL/dy.
#![doc = concat!("\n\n", include_str!("../README.md"))]

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
#[cfg(test)]
mod testing;
mod transition;

pub use budget::Budget;
pub use cpu::Cpu;
pub use error::{Error, Result};
pub use operator::{Operator, Saves};
pub use rows::Rows;
pub use side::Side;
