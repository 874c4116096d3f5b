//! The trait of a transition: one step forward, one step backward, and the gradient of its
//! parameters.

use super::{Component, Part};
use crate::argument::Bar;
use crate::error::Result;
use crate::operator::Operator;
use crate::parallel::Member;
use crate::scalar::Scalar;
use crate::scratch::Arena;
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// The cotangents z_bar of one step and the data that [`Step::keep`] derived from them; both at row 0 of the step.
#[derive(Clone, Copy)]
pub struct Trace<R> {
    /// z_bar
    pub bar: *const R,
    /// Distance of its rows; in the affine cell they are contiguous.
    pub apart: usize,
    /// Rows of [`Step::kept`] numbers.
    pub kept: *mut R,
}

/// Rows of several steps, one after the other, from which the gradients are gathered.
pub struct Gather<R> {
    /// The half of the batch they belong to; each has its own sums.
    pub half: usize,
    /// Number of rows.
    pub rows: usize,
    /// z_bar and the output of [`Step::keep`].
    pub trace: Trace<R>,
    /// The states before the step.
    pub previous: *const R,
    /// Whether this is the first chunk of this half.
    pub first: bool,
}

/// The rows of a step that a member computes.
pub struct On<'a, R> {
    pub rows: Range<usize>,
    pub part: &'a Part<'a>,
    pub scratch: *mut R,
}

/// A transition W inside a recurrence. All members call `gather` together; the driver places barriers before and after it.
///
/// # Safety
/// A row of the output of `keep` needs no more than `kept`.
///
/// Of its methods: pointers have the rows and columns that the arguments name; members write disjoint parts.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Step<T: Scalar>: Component<T::Real> {
    /// Real numbers per row that [`Step::keep`] writes.
    fn kept(&self) -> usize {
        0
    }
    /// Real numbers at the start of the scratch that its calls leave alone ([`Needs::held`](super::Needs::held)).
    fn held(&self) -> usize {
        0
    }
    /// Runs `map` with W previous added.
    unsafe fn forward(&self, previous: *const T::Real, map: Affine<T::Real>, on: On<'_, T::Real>);
    /// Runs `map` with W^H z_bar added.
    unsafe fn backward(&self, trace: Trace<T::Real>, map: Affine<T::Real>, on: On<'_, T::Real>);
    /// Computes the data that [`Step::backward`] and [`Step::gather`] need besides z_bar.
    unsafe fn keep(&self, _trace: Trace<T::Real>, _rows: Range<usize>, _part: &Part<'_>) {}
    /// Adds the rows of a chunk to the gradient.
    unsafe fn gather(&self, rows: &Gather<T::Real>, scratch: *mut T::Real, member: &Member<'_>);
}

/// Rows that a step has memory for.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Of a step.
    pub batch: usize,
    /// Of a chunk of steps, whose gradients are gathered together.
    pub chunk: usize,
}

/// An object that has a step of its own. It is a single square operator.
pub trait OwnStep<T: Scalar>: Operator<T> {
    /// Prepares it for a forward pass, or for a backward pass that fills `bars`, which were checked.
    fn ready<'s>(&'s self, bars: Option<&mut [Bar<'_, T>]>) -> Result<Box<dyn Ready<T> + 's>>;
}

/// An [`OwnStep`] prepared for a call, with its allocations.
pub trait Ready<T: Scalar>: Sync {
    /// The step, in memory of the arena.
    fn carve<'s>(&'s self, arena: &mut Arena, extent: Extent) -> Box<dyn Step<T> + 's>;
    /// Completes the gradients after the step has finished them.
    fn finish(&self, bars: &mut [Bar<'_, T>]);
}
