//! Arrays in which the rows of several recurrences lie beside one another: those of the blocks of a block-diagonal W.

use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use std::marker::PhantomData;

/// The numbers of one recurrence in such an array.
pub struct Beside<'a, T> {
    first: Shared<T>,
    rows: usize,
    /// Numbers of a row of all recurrences, and of this one.
    all: usize,
    own: usize,
    array: PhantomData<&'a mut [T]>,
}

impl<'a, T: Copy> Beside<'a, T> {
    /// Those of each of `count` recurrences, in an array of rows of `own` numbers for each.
    ///
    /// ```
    /// use isometry_core::internal::Beside;
    ///
    /// let mut array = [0; 6]; // one row of three recurrences
    /// for (i, part) in Beside::cut(&mut array, 3, 2).into_iter().enumerate() {
    ///     part.write(&[i; 2]);
    /// }
    /// assert_eq!(array, [0, 0, 1, 1, 2, 2]);
    /// ```
    pub fn cut(array: &'a mut [T], count: usize, own: usize) -> Vec<Self> {
        let all = count * own;
        let (rows, first) = (array.len().checked_div(all).unwrap_or(0), array.as_mut_ptr());
        let part =
            |i| Beside { first: Shared(first.wrapping_add(i * own)), rows, all, own, array: PhantomData };
        (0..count).map(part).collect()
    }

    /// Fills them from the rows of this recurrence alone.
    pub fn write(self, rows: &[T]) {
        for (row, from) in rows.chunks_exact(self.own.max(1)).take(self.rows).enumerate() {
            // SAFETY: the array has this row with `own` numbers of this recurrence, which `cut` gave to nobody else.
            unsafe { self.first.at(row * self.all).copy_from_nonoverlapping(from.as_ptr(), self.own) }
        }
    }
}

/// The rows of the i-th of `count` recurrences, which lie beside one another, into an array that has room for no others.
///
/// ```
/// use isometry_core::internal::read_beside;
///
/// let mut own = vec![];
/// read_beside(&[0, 0, 1, 1, 2, 2], 3, 1, 2, &mut own)?;
/// assert_eq!(own, [1, 1]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Lack of memory.
pub fn read_beside<T: Copy>(array: &[T], count: usize, i: usize, own: usize, to: &mut Vec<T>) -> Result<()> {
    to.clear();
    reserve(to, array.len() / count.max(1))?;
    for row in array.chunks_exact((count * own).max(1)) {
        to.extend_from_slice(&row[i * own..(i + 1) * own]);
    }
    Ok(())
}

/// Makes an array of so many numbers, of any values.
///
/// # Errors
/// Lack of memory.
pub fn room<T: Scalar>(to: &mut Vec<T>, len: usize) -> Result<()> {
    reserve(to, len)?;
    to.resize(len, T::zero());
    Ok(())
}

fn reserve<T>(to: &mut Vec<T>, len: usize) -> Result<()> {
    let bytes = len.saturating_mul(size_of::<T>());
    to.try_reserve_exact(len.saturating_sub(to.len())).map_err(|_| Error::OutOfMemory { bytes })
}
