//! Arrays in which the rows of several recurrences lie beside one another: those of the blocks of a block-diagonal W.

use super::driver::want_huge_pages;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::sizes::work;
use std::marker::PhantomData;
use std::ops::Range;

/// The rows of one recurrence in such an array, to be read.
pub struct Beside<'a, T>(Lane<T>, PhantomData<&'a [T]>);

impl<T> Clone for Beside<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Beside<'_, T> {}

/// The same, to be written; or the rows of an array for the first part of each state alone.
pub struct BesideMut<'a, T>(Lane<T>, PhantomData<&'a mut [T]>);

impl<'a, T: Scalar> Beside<'a, T> {
    /// Those of each of `count` recurrences, in an array of rows of `own` numbers for each.
    pub fn cut(array: &'a [T], count: usize, own: usize) -> impl Iterator<Item = Self> {
        let first = array.as_ptr().cast_mut();
        Lane::cut(first, array.len(), count, own).map(|lane| Beside(lane, PhantomData))
    }

    /// As real numbers.
    pub(crate) fn of_real(self) -> Beside<'a, T::Real> {
        Beside(self.0.of_real(), PhantomData)
    }

    /// Refuses other sizes.
    pub(crate) fn check(&self, name: &'static str, sizes: [usize; 3]) -> Result<()> {
        self.0.check(name, sizes)
    }

    /// Copies these rows of a step, whose first row is row `before` of all, into a step whose row 0 is at `to`.
    ///
    /// # Safety
    /// As [`Lane::write`].
    pub(crate) unsafe fn read(&self, before: usize, to: *mut T, rows: Range<usize>) {
        let Lane { first, own, all, .. } = self.0;
        for row in rows {
            let from = first.at((before + row) * all).cast_const();
            // SAFETY: the contract above.
            unsafe { to.add(row * own).copy_from_nonoverlapping(from, own) }
        }
    }
}

impl<'a, T: Scalar> BesideMut<'a, T> {
    /// As [`Beside::cut`].
    ///
    /// ```
    /// use isometry_core::Budget;
    /// use isometry_core::internal::BesideMut;
    /// use isometry_core::operators::dense::Dense;
    /// use isometry_core::recurrence::{self, Run, Sequence, Written};
    ///
    /// // one step of two sequences, by two recurrences of one state: tanh(1) and tanh(2)
    /// let (run, mut states) = (Run::new([1, 2, 1, 1], &[0.0; 2]), [0.0; 4]);
    /// for (beside, bias) in BesideMut::cut(&mut states, 2, 1).zip([1.0, 2.0]) {
    ///     let sequence = Sequence { run, input_weight: &[1.0], bias: Some(&[bias]), on_input: false };
    ///     let written = Written { beside: Some(beside), ..Written::default() };
    ///     recurrence::forward(&Dense::new(&[0.0], 1, 1, 1)?, &sequence, written, &Budget::of(1))?;
    /// }
    /// assert_eq!((states[0], states[1]), (states[2], states[3]));
    /// assert!(states[0] < states[1]);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    pub fn cut(array: &'a mut [T], count: usize, own: usize) -> impl Iterator<Item = Self> {
        want_huge_pages(array);
        Lane::cut(array.as_mut_ptr(), array.len(), count, own).map(|lane| BesideMut(lane, PhantomData))
    }

    /// An array for the first `own` of the `width` numbers of each state, one row per state.
    pub fn first(array: &'a mut [T], own: usize, width: usize) -> Self {
        want_huge_pages(array);
        BesideMut(Lane { width, ..Lane::of(array.as_mut_ptr(), array.len(), [0, 1], own) }, PhantomData)
    }

    /// As real numbers.
    pub(crate) fn of_real(self) -> BesideMut<'a, T::Real> {
        BesideMut(self.0.of_real(), PhantomData)
    }

    /// As the driver writes them.
    pub(crate) fn lane(&self) -> Lane<T::Real> {
        self.0.of_real()
    }

    /// Refuses other sizes.
    pub(crate) fn check(&self, name: &'static str, sizes: [usize; 3]) -> Result<()> {
        self.0.check(name, sizes)
    }
}

/// Rows at equal distances.
pub(crate) struct Lane<T> {
    first: Shared<T>,
    rows: usize,
    /// Numbers of a row, and from one row to the next.
    own: usize,
    all: usize,
    /// Numbers of a state; a row has the first `own` of them.
    width: usize,
}

impl<T> Clone for Lane<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Lane<T> {}

impl<T: Scalar> Lane<T> {
    /// The rows of the i-th of `count` recurrences in an array of `len` numbers: none unless whole rows fill it.
    fn of(first: *mut T, len: usize, [i, count]: [usize; 2], own: usize) -> Self {
        let all = work(&[count, own]);
        let rows = if all > 0 && len.is_multiple_of(all) { len / all } else { 0 };
        Lane { first: Shared(first.wrapping_add(work(&[i, own]))), rows, own, all, width: own }
    }

    /// The rows of each of `count` recurrences.
    fn cut(first: *mut T, len: usize, count: usize, own: usize) -> impl Iterator<Item = Self> {
        (0..count).map(move |i| Lane::of(first, len, [i, count], own))
    }

    fn of_real(self) -> Lane<T::Real> {
        let Lane { first, rows, own, all, width } = self;
        let [own, all, width] = [own, all, width].map(|numbers| numbers * T::PARTS);
        Lane { first: Shared(first.0.cast()), rows, own, all, width }
    }

    fn check(&self, name: &'static str, [steps, batch, n]: [usize; 3]) -> Result<()> {
        if (self.rows, self.width) == (work(&[steps, batch]), n) && self.own <= n {
            return Ok(());
        }
        let expected = format!("{steps} x {batch} rows of {n} numbers");
        Err(Error::shape(name, expected, format!("{} of {}", self.rows, self.width.max(self.own))))
    }

    /// Writes these rows of a step that begins with row `before`, whose row 0 is at `from`; zeros if that is null.
    ///
    /// # Safety
    /// The rows exist at both, and nobody else uses those that are written.
    pub unsafe fn write(&self, before: usize, from: *const T, rows: Range<usize>) {
        for row in rows {
            let to = self.first.at((before + row) * self.all);
            // SAFETY: the contract above.
            unsafe {
                if from.is_null() {
                    to.write_bytes(0, self.own);
                } else {
                    to.copy_from_nonoverlapping(from.add(row * self.width), self.own);
                }
            }
        }
    }
}
