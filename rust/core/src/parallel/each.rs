//! Work on a batch: independent parts, distributed dynamically over the threads.

use super::enter;
use isometry_kernels::stop::{BETWEEN, poll};
use std::sync::Mutex;

/// Runs `f(state, i, part)` for every part, the i-th of `parts`, on up to `threads` threads; returns when all parts are
/// done. Each thread creates its own `state`, for example its scratch, before its first part. A panic is propagated to
/// the caller once.
///
/// Parts are the mutable outputs, split by safe code: `out.chunks_mut(n)`, several arrays by `zip`, optional or empty
/// arrays by [`cut`]. The caller takes parts from the front and the other threads from the back, so that in consecutive
/// calls a part tends to run on the core whose cache holds it.
pub fn each<P, S>(
    threads: usize,
    parts: impl DoubleEndedIterator<Item = P> + ExactSizeIterator + Send,
    state: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, usize, P) + Sync,
) {
    let threads = threads.min(parts.len());
    let parts = Mutex::new(parts.enumerate());
    let take = |front: bool| {
        // poisoned: the iterator panicked in another thread, and that panic is propagated
        let mut parts = parts.lock().ok()?;
        if front { parts.next() } else { parts.next_back() }
    };
    enter(threads, false, &|member| {
        let mut own = None;
        while let Some((i, part)) = take(member.id == 0) {
            f(own.get_or_insert_with(&state), i, part);
            poll(BETWEEN);
        }
    });
}

/// Items (rows, for example) per part when `count` small items are split: four parts per thread, so that threads that
/// start late still find work.
pub fn grain(count: usize, threads: usize) -> usize {
    if threads > 1 { count.div_ceil(4 * threads) } else { count }
}

/// Splits an array into `count` consecutive parts of `len` elements (possibly 0); without an array yields `None` `count`
/// times.
///
/// # Panics
/// If the array has fewer than `count * len` elements.
pub fn cut<T>(array: Option<&mut [T]>, len: usize, count: usize) -> Cut<'_, T> {
    Cut { rest: array.map(|all| &mut all[..len.saturating_mul(count)]), len, count }
}

/// What [`cut`] returns.
#[derive(Debug)]
pub struct Cut<'a, T> {
    rest: Option<&'a mut [T]>,
    len: usize,
    count: usize,
}

impl<'a, T> Iterator for Cut<'a, T> {
    type Item = Option<&'a mut [T]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        Some(self.rest.take().map(|all| {
            let (first, rest) = all.split_at_mut(self.len);
            self.rest = Some(rest);
            first
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl<T> DoubleEndedIterator for Cut<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        Some(self.rest.take().map(|all| {
            let (rest, last) = all.split_at_mut(self.len * self.count);
            self.rest = Some(rest);
            last
        }))
    }
}

impl<T> ExactSizeIterator for Cut<'_, T> {}
