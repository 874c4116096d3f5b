//! Scratch memory aligned to cache lines. Taken once per call, never inside a time loop. Where there is not enough, the call
//! unwinds with [`OutOfMemory`], which the seam turns into Python's MemoryError.

use crate::error::OutOfMemory;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::panic::resume_unwind;

/// Numbers for which every bit pattern is a value.
///
/// # Safety
/// Holds for f32, f64 and their complex pairs.
pub unsafe trait Plain: Copy + Send + Sync {}
// SAFETY: the four element types are made of f32 and f64.
unsafe impl<T: crate::scalar::Scalar> Plain for T {}

/// A heap array of plain numbers, aligned to 64 bytes.
pub struct Buffer<T: Plain> {
    data: *mut T,
    len: usize,
}

// SAFETY: the buffer owns its memory and T is plain data.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    fn layout(len: usize) -> Layout {
        let bytes = len.max(1).checked_mul(size_of::<T>());
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, 64).ok());
        layout.unwrap_or_else(|| resume_unwind(Box::new(OutOfMemory(bytes.unwrap_or(usize::MAX)))))
    }

    /// `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has a positive size; zero bytes are valid numbers.
        let data = unsafe { alloc_zeroed(layout) }.cast::<T>();
        if data.is_null() {
            resume_unwind(Box::new(OutOfMemory(layout.size())))
        }
        Buffer { data, len }
    }

    /// `len` numbers that the caller writes before it reads them; in builds with debug assertions they start as NaN patterns.
    pub fn scratch(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has a positive size.
        let data = unsafe { alloc(layout) };
        if data.is_null() {
            resume_unwind(Box::new(OutOfMemory(layout.size())))
        }
        if cfg!(debug_assertions) {
            // SAFETY: the allocation has that many bytes; all-ones is a NaN in every real type.
            unsafe { data.write_bytes(0xff, layout.size()) };
        }
        Buffer { data: data.cast(), len }
    }

    /// Start of the memory, for kernels whose threads write disjoint parts.
    pub fn ptr(&self) -> *mut T {
        self.data
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `len` numbers; any bit pattern is one.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.data.cast(), Self::layout(self.len)) }
    }
}
