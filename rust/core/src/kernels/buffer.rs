//! Initialised memory, for data that outlives the regions of a call or is read as a slice. Failure to
//! allocate is an error.

use crate::error::{Error, Result};
use crate::scratch::Block;
use isometry_kernels::scalar::Plain;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// An array of plain numbers, aligned to 64 bytes.
pub struct Buffer<T: Plain> {
    memory: Block,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// Where there is no memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = Block::zeroed(bytes).ok_or(Error::OutOfMemory { bytes })?;
        Ok(Buffer { memory, len, of: PhantomData })
    }

    /// Start of the memory.
    fn at(&self) -> *mut T {
        self.memory.start().cast()
    }

    /// `len` NaN patterns: for tests of kernels, which must write before they read.
    #[cfg(test)]
    pub(crate) fn scratch(len: usize) -> Self {
        let buffer = Self::zeroed(len).expect("memory for a test");
        // SAFETY: the buffer owns the memory; every bit pattern is a valid plain number.
        unsafe { buffer.ptr().write_bytes(0xff, len) };
        buffer
    }

    /// Start of the memory.
    #[cfg(test)]
    pub(crate) fn ptr(&self) -> *mut T {
        self.at()
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` numbers, initialised on allocation.
        unsafe { std::slice::from_raw_parts(self.at(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at(), self.len) }
    }
}

/// A list of these elements.
pub fn collected<E>(elements: impl ExactSizeIterator<Item = E>) -> Result<Vec<E>> {
    let mut list = reserved(elements.len())?;
    list.extend(elements);
    Ok(list)
}

/// An empty list with room for this many elements.
pub fn reserved<E>(len: usize) -> Result<Vec<E>> {
    let mut list = Vec::new();
    let lack = |_| Error::OutOfMemory { bytes: len.saturating_mul(size_of::<E>()) };
    list.try_reserve_exact(len).map_err(lack)?;
    Ok(list)
}
