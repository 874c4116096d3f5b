//! Operators as W of a recurrence: through the matrix, row by row, or by a step of their own, which the
//! driver calls.
//!
//! This module is below the operators, which make steps, and the recurrence, which calls them.

mod component;
mod dense;
mod outer;
mod packed;
mod part;
mod prepared;
mod rows;
mod step;

pub(crate) use component::{Component, Needs};
pub(crate) use dense::DenseStep;
pub(crate) use outer::Outer;
#[cfg(test)]
pub(crate) use packed::SHORT;
pub(crate) use packed::{Packed, next_pack};
pub use packed::{pack, packed};
pub(crate) use part::Part;
pub(crate) use prepared::{Prepared, TransitionStep, Uses};
pub(crate) use step::{Extent, Gather, On, OwnStep, Ready, Step, Trace};

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

/// A recurrence, as far as the choice of its route depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Time steps.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Of a gated cell, which takes steps of operators on rows, but not those of [`Transition::Own`].
    pub gated: bool,
}

impl Workload {
    /// Rows that pass through W.
    pub(crate) fn rows(&self) -> u128 {
        self.steps as u128 * self.batch as u128
    }
}

impl Route {
    /// By the cost of a row through the factors, in multiply-adds of a product with the n x n matrix. To form W and to
    /// pull its gradient back, n rows go through the factors.
    pub(crate) fn by_cost(cost: usize, n: usize, workload: Workload) -> Route {
        // u128: the first product and n^2 cannot overflow
        let [cost, n] = [cost, n].map(|count| count as u128);
        let factored =
            cost.saturating_mul(workload.rows().saturating_sub(n)) <= (n * n).saturating_mul(workload.rows());
        if factored { Route::Factored } else { Route::Dense }
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
