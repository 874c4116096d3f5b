//! What one member of a team does with an operator on rows.

use crate::argument::Bar;
use crate::operator::Side;
use crate::scalar::Scalar;

/// What one member of a team does with an operator on rows: neither allocates nor enters threads.
///
/// The result of a row depends on that row and the operator alone, not on the rows beside it, so that results are the same
/// however rows are dealt to members.
///
/// # Safety of its methods
/// Pointers have the rows that the arguments name, and `scratch` as many numbers as [`Rows::scratch`] says for that many rows;
/// `out` and `x_bar` overlap nothing that is read.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub trait Rows<T: Scalar>: Sync {
    /// (n_out, n_in)
    fn size(&self) -> (usize, usize);
    /// Multiply-adds per row.
    fn work(&self) -> usize;
    /// Real numbers that a member needs for up to `rows` rows.
    fn scratch(&self, rows: usize) -> usize;
    /// Real numbers that the gradients of all arguments are summed in.
    fn sums(&self) -> usize;
    /// The gradients of the arguments from these sums; `bars` were checked.
    fn deal(&self, sums: &[T::Real], bars: &mut [Bar<'_, T>]);

    /// Writes W x or W^H x of `rows` rows to `out`.
    unsafe fn apply_rows(&self, x: *const T, rows: usize, side: Side, out: *mut T, scratch: *mut T::Real);
    /// Adds the parameters' gradient of these rows to `sums`, in an order that depends on their number only, and writes x_bar where
    /// it is wanted; ct are the cotangents of what [`Rows::apply_rows`] writes for x.
    unsafe fn pull_rows(
        &self,
        x: *const T,
        ct: *const T,
        rows: usize,
        side: Side,
        sums: *mut T::Real,
        x_bar: Option<*mut T>,
        scratch: *mut T::Real,
    );
}
