//! Operators on rows: one member's work on some rows of a stack, and the driver that makes operators of it.

mod bars;
mod stack;

pub use bars::MatrixBars;
pub(crate) use stack::{apply, apply_vjp, deal, matrix, matrix_vjp};

use crate::operator::Operator;
use crate::scalar::Scalar;
use crate::side::Side;

/// Some rows on their way through one matrix.
#[derive(Clone, Copy)]
pub struct RowPass {
    /// The matrix.
    pub k: usize,
    /// How many rows.
    pub rows: usize,
    /// W or W^H.
    pub side: Side,
}

/// What [`Rows::pull_rows`] reads and writes.
#[derive(Clone, Copy)]
pub struct RowPull<T: Scalar> {
    /// The rows that [`Rows::apply_rows`] took.
    pub x: *const T,
    /// The cotangents of those that it wrote.
    pub ct: *const T,
    /// The sums of the gradients of the arguments.
    pub sums: *mut T::Real,
    /// The gradient of the rows, where it is wanted.
    pub x_bar: Option<*mut T>,
}

/// A stack of operators that act on rows. From it [`Cpu`](crate::Cpu) derives the matrices, their
/// application, all gradients and the step of a recurrence: `fn rows(&self) -> Option<&dyn Rows<T>> {
/// Some(self) }`.
///
/// The methods are one member's part of a call: they neither allocate nor enter threads. The result of a row depends on that
/// row and its matrix alone, not on other rows, so that results do not depend on how rows are assigned to
/// members.
///
/// # Safety
/// What the safe methods and those of [`Operator`] answer is the same in every call. The array of a trained argument has the
/// same number of elements in every matrix, those of matrix k behind those of matrix k - 1. No check of [`Operator`] is overridden.
/// Given what the methods demand they access nothing but
///
/// - [`RowPass::rows`] rows of x and ct, which are read; `out` and `x_bar`, which are written completely: rows of
///   [`Operator::features`] elements;
/// - [`Rows::sums`] numbers of `sums`, [`Rows::scratch`] of `scratch`, and the gradients in `bars`.
///
/// # Safety of its methods
/// Matrix k is one of [`Operator::batch`]. Pointers have what is accessed through them; `out` and `x_bar` overlap nothing that is
/// read, `sums` and `scratch` nothing at all. `scratch` has as many numbers as [`Rows::scratch`] says for so many rows, for 0 in
/// [`Rows::load`] and [`Rows::deal`]. Before the others on matrix k, `load` was called on this scratch, and nothing but these
/// methods has written there since.
///
/// ```
/// use isometry_core::argument::{Argument, Array};
/// use isometry_core::rows::{MatrixBars, RowPass, RowPull};
/// use isometry_core::scalar::{Real, Scalar};
/// use isometry_core::{Budget, Cpu, Operator, Result, Rows, Side, argument};
///
/// /// Diagonal matrices.
/// struct Diagonal<'a, T> { entries: &'a [T], n: usize }
///
/// const ARGUMENTS: &[Argument] = &[argument!("entries", "n")];
///
/// impl<T: Scalar> Operator<T> for Diagonal<'_, T> {
///     fn sizes(&self) -> [usize; 3] { [self.entries.len() / self.n, self.n, self.n] }
///     fn arguments(&self) -> &'static [Argument] { ARGUMENTS }
///     fn argument(&self, _i: usize) -> Array<'_, T> { Array::Own(self.entries) }
/// }
///
/// impl<T: Scalar> Cpu<T> for Diagonal<'_, T> {
///     fn rows(&self) -> Option<&dyn Rows<T>> { Some(self) }
/// }
///
/// // SAFETY: sizes are fixed; every method stays within the n elements of a row and of the sums.
/// unsafe impl<T: Scalar> Rows<T> for Diagonal<'_, T> {
///     fn work(&self) -> usize { self.n }
///     fn scratch(&self, _rows: usize) -> usize { 0 }
///     fn sums(&self) -> usize { self.n * T::PARTS }
///
///     unsafe fn apply_rows(&self, RowPass { k, rows, side }: RowPass, x: *const T, out: *mut T, _scratch: *mut T::Real) {
///         for at in 0..rows * self.n {
///             let entry = self.entries[k * self.n + at % self.n];
///             let entry = if side == Side::Forward { entry } else { entry.conj() };
///             unsafe { out.add(at).write(entry * *x.add(at)) };
///         }
///     }
///
///     unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
///         let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
///         let sums = sums.cast::<T>();
///         for at in 0..rows * self.n {
///             unsafe {
///                 let (x, ct) = (*x.add(at), *ct.add(at));
///                 *sums.add(at % self.n) += if side == Side::Forward { ct * x.conj() } else { x * ct.conj() };
///             }
///         }
///         if let Some(x_bar) = x_bar {
///             unsafe { self.apply_rows(RowPass { k, rows, side: side.other() }, ct, x_bar, scratch) };
///         }
///     }
///
///     unsafe fn deal(&self, _k: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _scratch: *mut T::Real) {
///         if let Some(bar) = bars.own(0) {
///             isometry_core::scalar::parts_mut(bar).copy_from_slice(sums);
///         }
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let op = Diagonal { entries: &[1.0, 2.0, 3.0, 4.0], n: 2 };
/// let (mut w, mut y) = ([0.0; 8], [0.0; 4]);
/// op.matrix(&mut w, None, &Budget::of(2))?;
/// assert_eq!(w, [1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0]);
/// op.apply(&[1.0; 4], 1, Side::Forward, &mut y, None, &Budget::of(2))?;
/// assert_eq!(y, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// Implementing the trait is therefore `unsafe`:
///
/// ```compile_fail,E0200
/// # use isometry_core::{Operator, Rows, argument::{Argument, Array}, rows::{MatrixBars, RowPass, RowPull}};
/// struct Mine;
/// impl Operator<f32> for Mine {
///     fn sizes(&self) -> [usize; 3] { [1; 3] }
///     fn arguments(&self) -> &'static [Argument] { &[] }
///     fn argument(&self, _i: usize) -> Array<'_, f32> { Array::None }
/// }
/// impl Rows<f32> for Mine {
///     fn work(&self) -> usize { 1 }
///     fn scratch(&self, _rows: usize) -> usize { 0 }
///     fn sums(&self) -> usize { 0 }
///     unsafe fn apply_rows(&self, _: RowPass, _: *const f32, _: *mut f32, _: *mut f32) {}
///     unsafe fn pull_rows(&self, _: RowPass, _: RowPull<f32>, _: *mut f32) {}
///     unsafe fn deal(&self, _: usize, _: &mut [f32], _: MatrixBars<'_, f32>, _: *mut f32) {}
/// }
/// ```
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Rows<T: Scalar>: Operator<T> {
    /// Multiply-adds per row.
    fn work(&self) -> usize;
    /// Real numbers that a member needs for up to `rows` rows.
    fn scratch(&self, rows: usize) -> usize;
    /// Real numbers for the sums of the gradients of all arguments of one matrix.
    fn sums(&self) -> usize;

    /// Writes to `scratch` the data of matrix k that the other methods need, apart from their workspace.
    unsafe fn load(&self, _k: usize, _scratch: *mut T::Real) {}
    /// Writes W x or W^H x of `rows` rows to `out`, for the k-th W.
    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real);
    /// Adds the gradients of the arguments to `sums`, in an order that depends on the number of rows only, and writes x_bar if wanted.
    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real);
    /// Writes the gradients of the arguments of matrix k from the sums of all its rows, which it may change.
    unsafe fn deal(&self, k: usize, sums: &mut [T::Real], bars: MatrixBars<'_, T>, scratch: *mut T::Real);
}
