//! Operators as W of a recurrence: through the matrix, row by row, or by a step of their own, which the
//! driver calls.
//!
//! This module is below the operators, which make steps, and the recurrence, which calls them.

mod dense;
mod packed;
mod part;
mod prepared;
mod rows;
mod step;

pub(crate) use dense::DenseStep;
pub(crate) use packed::{Packed, check_packs, each_pack};
pub use packed::{pack, packed};
pub(crate) use part::Part;
pub(crate) use prepared::{Prepared, TransitionStep, Uses};
pub(crate) use step::{Extent, Gather, OwnStep, Ready, Step, Trace};

use crate::rows::Rows;
use crate::scalar::Scalar;

/// How a transition is applied step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through its factors.
    Factored,
    /// Through its matrix, formed once.
    Dense,
}

impl Route {
    /// `factored` or `dense`.
    pub fn name(self) -> &'static str {
        match self {
            Route::Factored => "factored",
            Route::Dense => "dense",
        }
    }
}

/// An operator as W of a recurrence.
#[derive(Clone, Copy)]
pub enum Transition<'a, T: Scalar> {
    /// A matrix (n, n).
    Dense(&'a [T]),
    /// An operator on rows.
    Rows(&'a dyn Rows<T>),
    /// An object of this crate that has a step of its own.
    Own(&'a dyn OwnStep<T>),
}
