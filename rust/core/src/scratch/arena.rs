//! Carves memory into regions, or measures their total size: the same function does both.

use super::region::{LINE, Line, Region, Regions, part};
use super::watch::Guard;
use crate::sizes::work;
use std::marker::PhantomData;

/// Carves memory into regions, or measures their total size.
pub struct Arena {
    start: *mut u8,
    at: usize,
    /// Maximum of `at`.
    most: usize,
    end: usize,
    guard: Guard,
    /// Strides of the first frames, in order of measurement, and the number of frames so far: the second run need not
    /// measure them again.
    strides: [usize; FRAMES],
    frames: usize,
}

/// Frames whose strides are recorded.
const FRAMES: usize = 4;

impl Arena {
    /// Carves this memory.
    #[inline]
    pub(super) fn cutting(start: *mut u8, bytes: usize, guard: Guard) -> Self {
        // larger than any stride: not known
        Arena { start, at: 0, most: 0, end: bytes, guard, strides: [usize::MAX; FRAMES], frames: 0 }
    }

    /// Carves this memory by the same function that `self` measured.
    #[inline]
    pub(super) fn again(self, start: *mut u8, guard: Guard) -> Self {
        Arena { strides: self.strides, ..Arena::cutting(start, self.most, guard) }
    }

    /// The sizes measured by running the function.
    #[inline]
    pub(super) fn measured<P>(guarded: bool, carve: impl FnOnce(&mut Arena) -> P) -> Self {
        let guard = if guarded { Guard::Measured } else { Guard::Off };
        let mut arena = Arena::cutting(std::ptr::without_provenance_mut(LINE), usize::MAX, guard);
        carve(&mut arena);
        arena
    }

    /// Most bytes in use at a time; `usize::MAX` if they exceed the address space.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        if self.most > isize::MAX as usize { usize::MAX } else { self.most }
    }

    /// Elements of T that an array needs for the function to carve its regions from it (`Frame::over`).
    #[inline]
    pub fn elements<T, P>(carve: impl FnOnce(&mut Arena) -> P) -> usize {
        Arena::measured(false, carve).bytes() / size_of::<T>()
    }

    /// Memory for an array of these sizes.
    #[inline]
    pub fn take<T>(&mut self, sizes: &[usize]) -> Region<T> {
        const { assert!(align_of::<T>() <= LINE) };
        let len = work(sizes);
        let start = self.start.wrapping_add(self.at);
        if len > 0 {
            self.advance(len.saturating_mul(size_of::<T>()));
        }
        Region { start: start.cast(), len }
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        let from = self.at;
        // whole lines, saturating
        self.at = from.saturating_add(bytes).saturating_add(LINE - 1) & !(LINE - 1);
        if !matches!(self.guard, Guard::Off) {
            self.watched(from, bytes);
        }
        self.most = self.most.max(self.at);
        assert!(self.at <= self.end, "scratch was measured {} bytes and is cut at {}", self.end, self.at);
    }

    #[cold]
    fn watched(&mut self, from: usize, bytes: usize) {
        self.at = self.at.saturating_add(LINE);
        if self.at > self.end {
            return;
        }
        if let Guard::On(watch) = self.guard {
            let [start, behind, end] = [from, from + bytes, self.at].map(|at| self.start.wrapping_add(at));
            watch.enter(start, behind..end);
        }
    }

    /// The same for each of `count` members.
    #[inline]
    pub fn regions<T>(&mut self, count: usize, sizes: &[usize]) -> Regions<T> {
        let Frames { all, stride, guard } = self.frames(count, |arena| arena.take::<T>(sizes));
        let regions = Regions { all, stride, len: work(sizes), _type: PhantomData };
        if let Guard::On(_) = guard {
            // their guard lines
            for id in 0..count {
                Frame { all: part(all, stride, id), guard }.arena().take::<T>(sizes);
            }
        }
        regions
    }

    /// Memory that this function carves later.
    #[inline]
    pub fn frame<P>(&mut self, carve: impl FnOnce(&mut Arena) -> P) -> Frame {
        self.frames(1, carve).of(0)
    }

    /// Memory that this function carves later for each of `count` members.
    #[inline]
    pub fn frames<P>(&mut self, count: usize, carve: impl FnOnce(&mut Arena) -> P) -> Frames {
        let place = self.frames;
        self.frames += 1;
        let known = self.strides.get(place).copied().unwrap_or(usize::MAX);
        let stride = if known < usize::MAX {
            known
        } else {
            Arena::measured(!matches!(self.guard, Guard::Off), carve).bytes() / LINE
        };
        if let Some(strides) = self.strides.get_mut(place) {
            *strides = stride;
        }
        Frames { all: self.take(&[count, stride]), stride, guard: self.guard }
    }

    /// Memory taken by the function is reused afterwards: for arrays that are not needed at the same time.
    #[inline]
    pub fn reusing<P>(&mut self, carve: impl FnOnce(&mut Arena) -> P) -> P {
        let at = self.at;
        let places = carve(self);
        self.at = at;
        places
    }
}

/// Memory that is carved later, by the function that measured it.
#[derive(Clone, Copy)]
pub struct Frame {
    all: Region<Line>,
    guard: Guard,
}

impl Frame {
    /// The caller's memory, `len` elements of T. It is not guarded.
    #[inline]
    pub fn over<T>(start: *mut T, len: usize) -> Self {
        let lines = len.saturating_mul(size_of::<T>()) / LINE;
        Frame { all: Region { start: start.cast(), len: lines }, guard: Guard::Off }
    }

    /// Carves it from its start.
    #[inline]
    pub fn arena(self) -> Arena {
        let Frame { all: Region { start, len }, guard } = self;
        Arena::cutting(start.cast(), len * LINE, guard)
    }
}

/// A [`Frame`] for each member of a call.
#[derive(Clone, Copy)]
pub struct Frames {
    all: Region<Line>,
    stride: usize,
    guard: Guard,
}

impl Frames {
    /// The frame of member `id`.
    #[inline]
    pub fn of(self, id: usize) -> Frame {
        Frame { all: part(self.all, self.stride, id), guard: self.guard }
    }
}
