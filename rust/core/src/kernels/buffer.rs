//! Initialised memory, for data that outlives the regions of a call or is read as a slice. Failure to
//! allocate is an error.

use crate::error::{Error, Result};
use isometry_kernels::scalar::Plain;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A heap array of plain numbers, aligned to 64 bytes.
pub struct Buffer<T: Plain> {
    data: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its memory and T is plain data.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_mul(size_of::<T>())?, 64.max(align_of::<T>())).ok()
    }

    /// `len` zeros.
    pub fn zeroed(len: usize) -> Result<Self> {
        let lack = || Error::OutOfMemory { bytes: len.saturating_mul(size_of::<T>()) };
        let layout = Self::layout(len).ok_or_else(lack)?;
        if layout.size() == 0 {
            return Ok(Buffer { data: NonNull::dangling(), len });
        }
        // SAFETY: the layout has a positive size.
        let data = unsafe { alloc_zeroed(layout) };
        Ok(Buffer { data: NonNull::new(data.cast()).ok_or_else(lack)?, len })
    }

    /// `len` NaN patterns: for tests of kernels, which must write before they read.
    #[cfg(test)]
    pub fn scratch(len: usize) -> Self {
        let buffer = Self::zeroed(len).expect("memory for a test");
        // SAFETY: the buffer owns the memory; every bit pattern is a valid plain number.
        unsafe { buffer.ptr().write_bytes(0xff, len) };
        buffer
    }

    /// Start of the memory.
    #[cfg(test)]
    pub fn ptr(&self) -> *mut T {
        self.data.as_ptr()
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` numbers, initialised on allocation.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len).filter(|layout| layout.size() > 0) {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.data.as_ptr().cast(), layout) };
        }
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
