//! Cuts memory into regions, or measures what they need: the same function does both.

use super::region::{Frame, Frames, LINE, Region, Regions, part};
use super::watch::Guard;
use crate::sizes::work;
use std::marker::PhantomData;

/// Cuts memory into regions, or measures what they need.
pub struct Arena {
    start: *mut u8,
    at: usize,
    /// The furthest that `at` came.
    most: usize,
    end: usize,
    guard: Guard,
}

impl Arena {
    /// Of this memory.
    #[inline]
    pub(super) fn cutting(start: *mut u8, bytes: usize, guard: Guard) -> Self {
        Arena { start, at: 0, most: 0, end: bytes, guard }
    }

    #[inline]
    fn measuring(guarded: bool) -> Self {
        let guard = if guarded { Guard::Measured } else { Guard::Off };
        let start = std::ptr::without_provenance_mut(LINE);
        Arena::cutting(start, usize::MAX, guard)
    }

    /// Bytes that the function takes; `usize::MAX` where they are beyond counting.
    #[inline]
    pub(super) fn measured<P>(guarded: bool, carve: impl FnOnce(&mut Arena) -> P) -> usize {
        let mut arena = Arena::measuring(guarded);
        carve(&mut arena);
        arena.most
    }

    /// Elements of T that an array must have in which the function cuts its regions ([`Frame::over`]).
    #[inline]
    pub fn elements<T, P>(carve: impl FnOnce(&mut Arena) -> P) -> usize {
        Arena::measured(false, carve) / size_of::<T>()
    }

    /// Room for an array of these sizes.
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
        let gap = if matches!(self.guard, Guard::Off) { 0 } else { LINE };
        let from = self.at;
        let lines = bytes.checked_next_multiple_of(LINE).unwrap_or(usize::MAX);
        self.at = from.saturating_add(lines).saturating_add(gap);
        self.most = self.most.max(self.at);
        assert!(self.at <= self.end, "scratch was measured {} bytes and is cut at {}", self.end, self.at);
        if let Guard::On(watch) = self.guard {
            let [start, behind, end] = [from, from + bytes, self.at].map(|at| self.start.wrapping_add(at));
            watch.enter(start, behind..end);
        }
    }

    /// The same room for each of `count` members.
    #[inline]
    pub fn regions<T>(&mut self, count: usize, sizes: &[usize]) -> Regions<T> {
        let Frames { all, stride, guard } = self.frames(count, |arena| arena.take::<T>(sizes));
        let regions = Regions { all, stride, len: work(sizes), _type: PhantomData };
        if let Guard::On(_) = guard {
            // their guarded lines
            for id in 0..count {
                Frame { all: part(all, stride, id), guard }.arena().take::<T>(sizes);
            }
        }
        regions
    }

    /// Memory that this function will cut.
    #[inline]
    pub fn frame<P>(&mut self, carve: impl FnOnce(&mut Arena) -> P) -> Frame {
        self.frames(1, carve).of(0)
    }

    /// Memory that this function will cut for each of `count` members.
    #[inline]
    pub fn frames<P>(&mut self, count: usize, carve: impl FnOnce(&mut Arena) -> P) -> Frames {
        let stride = Arena::measured(!matches!(self.guard, Guard::Off), carve) / LINE;
        Frames { all: self.take(&[count, stride]), stride, guard: self.guard }
    }

    /// What the function takes is free again after it: for arrays that are not needed at the same time.
    #[inline]
    pub fn reusing<P>(&mut self, carve: impl FnOnce(&mut Arena) -> P) -> P {
        let at = self.at;
        let places = carve(self);
        self.at = at;
        places
    }
}
