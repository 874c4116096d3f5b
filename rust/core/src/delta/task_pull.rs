//! A value head of a sequence, backwards: the chunks of every segment from their states, which are computed again.

use super::chunk::{Chunk, EPSILON, chunks};
use super::head::Head;
use super::pull::{Arrays, GradientWorkspace, Pull, rows_of};
use super::solve::copy_columns;
use super::state::State;
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT};
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use isometry_kernels::delta::{Matrix, Unit};
use isometry_kernels::stop::poll;
use std::ops::Range;

/// Memory of a thread.
pub struct Room<R> {
    pub gradients: GradientWorkspace<R>,
    /// The states before the chunks of [`SEGMENT`] rows, where there are several.
    pub states: Region<R>,
}

impl<R: Real> Room<R> {
    pub fn carve(arena: &mut Arena, delta: &Delta<'_, R>) -> Self {
        let states = SEGMENT / chunk_rows(&delta.gate) - 1;
        let gradients = GradientWorkspace::carve(arena, delta);
        Room { gradients, states: arena.take(&[states, delta.key, delta.value]) }
    }
}

/// A value head of a sequence whose gradients are computed.
#[derive(Clone, Copy)]
pub struct Task<'a, R: Real> {
    pub delta: &'a Delta<'a, R>,
    pub arrays: &'a Arrays<R>,
    /// The sequence, and the value head.
    pub n: usize,
    pub head: usize,
}

impl<R: Real> Task<'_, R> {
    /// The state of this head among states of sequences (or saved ones), at `n`.
    pub fn state(&self, x: Shared<R>, n: usize) -> *mut R {
        let Delta { value_heads: hv, key, value, .. } = *self.delta;
        x.at((n * hv + self.head) * key * value)
    }

    /// The state before row `row`, the first of a segment (None: zero).
    pub fn before(&self, row: usize) -> Option<*const R> {
        let Delta { value_heads: hv, key, value, .. } = *self.delta;
        let (_, first_saved) = self.delta.sequence(self.n);
        match row / SEGMENT {
            0 => self
                .delta
                .initial
                .map(|initial| initial.as_ptr().wrapping_add((self.n * hv + self.head) * key * value)),
            segment => Some(self.state(self.arrays.saved, first_saved + segment - 1).cast_const()),
        }
    }

    pub fn chunk<'b>(
        &'b self,
        gradients: &'b GradientWorkspace<R>,
        member: &'b Member<'b>,
        rows: Range<usize>,
    ) -> Chunk<'b, R> {
        let head = Head::of(self.delta, self.delta.sequence(self.n).0.start, self.head);
        let before = rows.start.saturating_sub(chunk_rows(&self.delta.gate));
        Chunk::new(self.delta, &gradients.chunk, member, head, rows, before)
    }

    pub fn pull<'b>(&'b self, chunk: Chunk<'b, R>, gradients: &'b GradientWorkspace<R>) -> Pull<'b, R> {
        let first = self.delta.sequence(self.n).0.start;
        Pull { chunk, gradients, arrays: self.arrays, first, head: self.head }
    }

    /// Whether the gradients of q and k are added to those of another value head.
    pub fn adds(&self) -> bool {
        !self.head.is_multiple_of(self.delta.value_heads / self.delta.heads)
    }

    /// The states before the later chunks of a segment, in order, in the room.
    ///
    /// # Safety
    /// The room is this thread's.
    pub unsafe fn replay(&self, room: &Room<R>, member: &Member<'_>, segment: Range<usize>) {
        let (most, size) = (chunk_rows(&self.delta.gate), self.delta.key * self.delta.value);
        let parts = segment.len().div_ceil(most);
        for (part, rows) in chunks(segment.clone(), most).take(parts - 1).enumerate() {
            let (chunk, next) = (self.chunk(&room.gradients, member, rows), room.states.at(part * size));
            // SAFETY: the caller's; there is a state for each chunk but the first.
            unsafe {
                match self.behind(room, segment.start, part) {
                    Some(s) => std::ptr::copy_nonoverlapping(s, next, size),
                    None => (0..size).for_each(|i| *next.add(i) = R::zero()),
                }
                chunk.prepare();
                let state = State::whole(Matrix { at: next, pitch: self.delta.value });
                chunk.solve(Some(state), chunk.rows.len(), false, chunk.w());
                chunk.advance(state);
            }
        }
    }

    /// The state before chunk `part` of the replayed segment from row `first` on.
    pub fn behind(&self, room: &Room<R>, first: usize, part: usize) -> Option<*const R> {
        let size = self.delta.key * self.delta.value;
        match part {
            0 => self.before(first),
            _ => Some(room.states.at((part - 1) * size).cast_const()),
        }
    }
}

/// The value heads of a key head of a sequence.
///
/// # Safety
/// The rows of these heads belong to this thread, and so does the room.
pub unsafe fn group<R: Real>(
    delta: &Delta<'_, R>,
    room: &Room<R>,
    member: &Member<'_>,
    (n, group): (usize, usize),
    arrays: &Arrays<R>,
) {
    let Delta { heads: h, value_heads: hv, key, value, householders: m, .. } = *delta;
    let (rows, gradients) = (delta.sequence(n).0.len() * m, &room.gradients);
    for head in group * (hv / h)..(group + 1) * (hv / h) {
        let task = Task { delta, arrays, n, head };
        let s_bar = State::whole(gradients.s_bar(delta));
        // SAFETY: the state's gradient belongs to this thread, the rows of the gradients to this task.
        unsafe {
            copy_columns(
                member,
                Some(State::whole(Matrix::of(task.state(arrays.state, n), value))),
                s_bar,
                (key, value),
            );
            for segment in chunks(0..rows, SEGMENT).rev() {
                poll(delta.work_of(segment.len()));
                task.replay(room, member, segment.clone());
                for (part, rows) in chunks(segment.clone(), chunk_rows(&delta.gate)).enumerate().rev() {
                    let pull = task.pull(task.chunk(gradients, member, rows), gradients);
                    pull.run(task.behind(room, segment.start, part), task.adds());
                }
            }
            if let Some(initial) = arrays.initial {
                let to = Matrix { at: task.state(initial, n), pitch: value };
                copy_columns(member, Some(s_bar), State::whole(to), (key, value));
            }
        }
    }
    // SAFETY: the rows belong to this task.
    unsafe { normalised(delta, arrays, (n, group), 0..rows) }
}

/// The gradients of the rows `rows` of q and k of a key head, from those of the rows divided by their lengths.
///
/// # Safety
/// The rows are this thread's.
pub unsafe fn normalised<R: Real>(
    delta: &Delta<'_, R>,
    arrays: &Arrays<R>,
    (n, group): (usize, usize),
    rows: Range<usize>,
) {
    let Delta { heads: h, value_heads: hv, key, householders: m, .. } = *delta;
    if !delta.normalise {
        return;
    }
    let first = delta.sequence(n).0.start;
    let own = Head::of(delta, first, group * (hv / h));
    let tokens = rows.start / m..rows.end / m;
    for (x, gradient, first, rows) in [(own.q, arrays.q, first, tokens), (own.k, arrays.k, first * m, rows)] {
        if let Some(gradient) = gradient {
            let (x, y_bar) = (x.from(rows.start), rows_of(gradient, first + rows.start, (h, group), key));
            let (by, epsilon) = (std::ptr::null_mut(), R::of(EPSILON));
            // SAFETY: the caller's.
            unsafe { Unit { x, y_bar, by, epsilon, rows: rows.len(), n: key }.call() }
        }
    }
}
