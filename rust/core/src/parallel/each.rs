//! Work on a batch: parts that need nothing of each other, dealt over the threads as they get done.

use super::enter;
use std::sync::Mutex;

/// Runs `f(state, i, part)` for every part, the i-th of `parts`, on up to `threads` threads; returns when all are through.
/// Each thread makes a `state`, its scratch say, when it gets its first part. A panic comes out here once.
///
/// Parts are what the caller may write, so they are cut with the borrow checker looking on: `out.chunks_mut(n)`, several arrays
/// by `zip`, arrays that may be missing or of length 0 by [`cut`]. The caller takes them from the front and the others from
/// the back: in calls that follow each other a part tends to find the core that has it in its cache.
///
/// ```
/// let (mut squares, mut sums) = ([0; 10], [0; 5]);
/// let parts = squares.chunks_mut(2).zip(&mut sums);
/// isometry_core::parallel::each(2, parts, || (), |(), i, (squares, sum)| {
///     for (j, x) in squares.iter_mut().enumerate() {
///         *x = (2 * i + j) * (2 * i + j);
///         *sum += *x;
///     }
/// });
/// assert_eq!(squares[9], 81);
/// assert_eq!(sums, [1, 13, 41, 85, 145]);
/// ```
pub fn each<P, S>(
    threads: usize,
    parts: impl DoubleEndedIterator<Item = P> + ExactSizeIterator + Send,
    state: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, usize, P) + Sync,
) {
    let threads = threads.min(parts.len());
    let parts = Mutex::new(parts.enumerate());
    let take = |front: bool| {
        // poisoned: cutting panicked in another thread, and that panic comes out
        let mut parts = parts.lock().ok()?;
        if front { parts.next() } else { parts.next_back() }
    };
    enter(threads, false, &|member| {
        let mut own = None;
        while let Some((i, part)) = take(member.id == 0) {
            f(own.get_or_insert_with(&state), i, part);
        }
    });
}

/// How many of `count` small things, rows say, make one part: four parts for each thread, so that one that comes late finds work.
pub fn grain(count: usize, threads: usize) -> usize {
    if threads > 1 { count.div_ceil(4 * threads) } else { count }
}

/// `count` consecutive parts of `len` elements, possibly 0, of an array that holds them; of no array as many times None.
///
/// # Panics
/// If the array is shorter.
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
