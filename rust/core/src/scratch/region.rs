//! Pieces of scratch memory that nobody has written yet.

use super::Plain;
use super::arena::Arena;
use super::watch::Guard;
use std::marker::PhantomData;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Room for `len` elements that nobody has written yet; empty where nothing is needed.
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
// SAFETY: an address; whoever dereferences it vouches for who writes what when.
unsafe impl<T> Send for Region<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Region<T> {}

impl<T> Region<T> {
    /// Elements.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Has no room.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Where it starts.
    #[inline]
    pub fn ptr(self) -> *mut T {
        self.start
    }

    /// Where it starts; null if it has no room.
    #[inline]
    pub fn or_null(self) -> *mut T {
        if self.len == 0 { std::ptr::null_mut() } else { self.start }
    }

    /// Where the element `offset` stands, which may be the end.
    #[inline]
    pub fn at(self, offset: usize) -> *mut T {
        assert!(offset <= self.len, "{offset} elements into a region of {}", self.len);
        self.start.wrapping_add(offset)
    }

    /// The elements as zeros.
    ///
    /// # Safety
    /// The memory lives for 'a, and nobody else touches the region meanwhile.
    #[inline]
    pub unsafe fn zeroed<'a>(self) -> &'a mut [T]
    where
        T: Plain,
    {
        // SAFETY: the contract above; zeros are values of a plain type.
        unsafe {
            self.start.write_bytes(0, self.len);
            std::slice::from_raw_parts_mut(self.start, self.len)
        }
    }
}

/// A region for each member of a call.
pub struct Regions<T> {
    pub(super) all: Region<Line>,
    /// Lines from one to the next.
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
    /// That of member `id`.
    #[inline]
    pub fn of(self, id: usize) -> Region<T> {
        Region { start: part(self.all, self.stride, id).start.cast(), len: self.len }
    }
}

/// Memory that is cut later, by the function that measured it.
#[derive(Clone, Copy)]
pub struct Frame {
    pub(super) all: Region<Line>,
    pub(super) guard: Guard,
}

impl Frame {
    /// Memory of the caller's, `len` elements of T. It is not guarded.
    #[inline]
    pub fn over<T>(start: *mut T, len: usize) -> Self {
        let lines = len.saturating_mul(size_of::<T>()) / LINE;
        Frame { all: Region { start: start.cast(), len: lines }, guard: Guard::Off }
    }

    /// Cuts it from its start.
    #[inline]
    pub fn arena(self) -> Arena {
        let Frame { all: Region { start, len }, guard } = self;
        Arena::cutting(start.cast(), len * LINE, guard)
    }
}

/// A [`Frame`] for each member of a call.
#[derive(Clone, Copy)]
pub struct Frames {
    pub(super) all: Region<Line>,
    pub(super) stride: usize,
    pub(super) guard: Guard,
}

impl Frames {
    /// That of member `id`.
    #[inline]
    pub fn of(self, id: usize) -> Frame {
        Frame { all: part(self.all, self.stride, id), guard: self.guard }
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
