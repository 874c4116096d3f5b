//! Uninitialised pieces of scratch memory.

use super::Plain;
use std::marker::PhantomData;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Uninitialised memory for `len` elements; empty if not needed.
pub struct Region<T> {
    pub(super) start: *mut T,
    pub(super) len: usize,
}
impl<T> Clone for Region<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Region<T> {}
// SAFETY: only an address; code that dereferences it guarantees disjoint or synchronised accesses.
unsafe impl<T> Send for Region<T> {}
// SAFETY: only an address; code that dereferences it guarantees disjoint or synchronised accesses.
unsafe impl<T> Sync for Region<T> {}

impl<T> Region<T> {
    /// Number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether its length is 0.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Pointer to its first element.
    #[inline]
    pub fn ptr(self) -> *mut T {
        self.start
    }

    /// Pointer to its first element; null if it is empty.
    #[inline]
    pub fn or_null(self) -> *mut T {
        if self.len == 0 { std::ptr::null_mut() } else { self.start }
    }

    /// Pointer to the element `offset`, which may be one past the end.
    #[inline]
    pub fn at(self, offset: usize) -> *mut T {
        assert!(offset <= self.len, "{offset} elements into a region of {}", self.len);
        self.start.wrapping_add(offset)
    }

    /// The elements.
    ///
    /// # Safety
    /// The memory is alive and initialised for 'a, and nothing writes it.
    #[inline]
    pub unsafe fn slice<'a>(self) -> &'a [T] {
        // SAFETY: the contract above.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Zeroes the elements and returns them.
    ///
    /// # Safety
    /// The memory is alive for 'a, and the region is not accessed otherwise.
    #[inline]
    pub unsafe fn zeroed<'a>(self) -> &'a mut [T]
    where
        T: Plain,
    {
        // SAFETY: the contract above; zero bits are a valid value of a plain type.
        unsafe {
            self.start.write_bytes(0, self.len);
            std::slice::from_raw_parts_mut(self.start, self.len)
        }
    }
}

/// A region for each member of a call.
pub struct Regions<T> {
    pub(super) all: Region<Line>,
    /// Stride in lines.
    pub(super) stride: usize,
    pub(super) len: usize,
    pub(super) _type: PhantomData<Region<T>>,
}
impl<T> Clone for Regions<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Regions<T> {}

impl<T> Regions<T> {
    /// The region of member `id`.
    #[inline]
    pub fn of(self, id: usize) -> Region<T> {
        Region { start: part(self.all, self.stride, id).start.cast(), len: self.len }
    }
}

/// The `id`-th part of `stride` lines.
pub(super) fn part(all: Region<Line>, stride: usize, id: usize) -> Region<Line> {
    assert!(id.saturating_add(1).saturating_mul(stride) <= all.len, "no memory was reserved for member {id}");
    Region { start: all.start.wrapping_add(id * stride), len: stride }
}

/// One cache line.
#[repr(align(64))]
pub(super) struct Line(#[expect(dead_code, reason = "memory is counted in lines")] [u8; LINE]);
