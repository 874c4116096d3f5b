//! [`forward`](super::forward()) with every head shared among all members ([`Window`]).

use super::chunk::{Chunk, chunks};
use super::forward::{Out, Room, Task, segment, whole};
use super::solve::copy_columns;
use super::window::{Course, Meter, Next, Place, Window};
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT, Stop};
use crate::error::Result;
use crate::parallel::{self, Member};
use crate::scalar::Real;
use crate::scratch::{Frames, Region, Scratch};
use isometry_kernels::delta::Matrix;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All heads of one sequence after another.
pub fn run<R: Real>(delta: &Delta<'_, R>, out: Out<R>, threads: usize, stop: &Stop<'_>) -> Result<()> {
    let Delta { value_heads: hv, key, value, .. } = *delta;
    let window = Window::new(delta, hv, threads);
    let scratch = Scratch::new(|arena| {
        let rooms = arena.frames(window.chunks().max(threads), |arena| Room::carve(arena, delta));
        (rooms, arena.take::<R>(&[hv, key, value]))
    })?;
    let (odd, course) = (AtomicBool::new(false), Course::new(stop));
    parallel::run(threads, &|member| {
        let (rooms, before) = *scratch;
        let call = Forward { delta, out, window, rooms, before, odd: &odd, course: &course, stop, member };
        // SAFETY: members write disjoint parts between barriers.
        if let Some(place) = unsafe { call.windows((0, 0)) }
            && member.id == 0
        {
            // SAFETY: the only member left.
            Member::alone(|member| unsafe { Forward { member, ..call }.windows(place) });
        }
    });
    Ok(())
}

/// A member of a call.
struct Forward<'a, R: Real> {
    delta: &'a Delta<'a, R>,
    out: Out<R>,
    window: Window,
    /// For the chunks of a window, at least one per member.
    rooms: Frames,
    /// The states before the window.
    before: Region<R>,
    /// Whether a number of the window is not finite: then its chunks are computed in order, from `before`.
    odd: &'a AtomicBool,
    course: &'a Course<'a>,
    stop: &'a Stop<'a>,
    member: &'a Member<'a>,
}

impl<R: Real> Forward<'_, R> {
    fn room(&self, place: usize) -> Room<R> {
        Room::carve(&mut self.rooms.of(place).arena(), self.delta)
    }

    /// The parts of `count` that belong to this member.
    fn dealt(&self, count: usize) -> impl Iterator<Item = usize> {
        (self.member.id..count).step_by(self.member.count)
    }

    /// All windows from `place` on; returns the one from which the caller continues alone, if it does.
    ///
    /// # Safety
    /// All members call this.
    unsafe fn windows(&self, place: Place) -> Option<Place> {
        let Forward { delta, out, window, member, stop, .. } = *self;
        let (hv, mut meter) = (delta.value_heads, Meter::new(self.course, member));
        for n in place.0..delta.sequences() {
            let rows = delta.sequence(n).0.len() * delta.householders;
            if rows <= SEGMENT {
                for head in self.dealt(hv) {
                    let room = self.room(member.id);
                    // SAFETY: heads are disjoint.
                    Member::alone(|alone| unsafe { whole(delta, &room, alone, (n, head), out, stop) });
                }
                meter.meet();
                continue;
            }
            let first = if n == place.0 { place.1 } else { 0 };
            for (i, rows) in chunks(0..rows, window.rows()).enumerate().skip(first) {
                self.prepare(n, rows.clone());
                match meter.next() {
                    Next::On => {}
                    Next::Leave => return None,
                    Next::Alone => return Some((n, i)),
                }
                for head in 0..hv {
                    // SAFETY: columns are disjoint.
                    unsafe { self.pass(n, head, rows.clone()) };
                }
                meter.meet();
                if self.odd.load(Relaxed) {
                    for head in self.dealt(hv) {
                        // SAFETY: heads are disjoint.
                        unsafe { self.again(n, head, rows.clone()) };
                    }
                    meter.meet();
                    if member.id == 0 {
                        self.odd.store(false, Relaxed);
                    }
                }
            }
        }
        None
    }

    /// What does not depend on the state.
    fn prepare(&self, n: usize, rows: Range<usize>) {
        let (most, hv) = (chunk_rows(&self.delta.gate), self.delta.value_heads);
        let all = chunks(rows, most);
        for at in self.dealt(all.len() * hv) {
            let (i, head) = (at / hv, at % hv);
            let Some(rows) = all.clone().nth(i) else { continue };
            let (task, room) =
                (Task::new(self.delta, (n, head), self.out), self.room(self.window.place(head, i)));
            let next = rows.end;
            Member::alone(|alone| {
                let chunk =
                    room.workspace().map(|own| Chunk::new(self.delta, own, alone, task.head, rows, next));
                // SAFETY: the place belongs to this chunk.
                chunk.iter().for_each(|chunk| unsafe { chunk.prepare() });
            });
        }
    }

    /// The state through a window, in this member's columns.
    ///
    /// # Safety
    /// The window is prepared.
    unsafe fn pass(&self, n: usize, head: usize, rows: Range<usize>) {
        let Delta { key, value, .. } = *self.delta;
        let member = self.window.turned(self.member, head);
        let (task, hand) = (Task::new(self.delta, (n, head), self.out), self.room(self.member.id));
        let state = Matrix { at: task.state, pitch: value };
        let copy = |x: Option<Matrix<R>>, to: *mut R| {
            // SAFETY: all of them are (K, V), and the columns are this member's.
            unsafe { copy_columns(&member, x, Matrix { at: to, pitch: value }, (key, value)) };
        };
        if rows.start == 0 {
            copy(task.initial.map(|initial| Matrix::of(initial, value)), state.at);
        }
        copy(Some(state), self.before.at(head * key * value));
        for (i, rows) in chunks(rows, chunk_rows(&self.delta.gate)).enumerate() {
            let room = self.room(self.window.place(head, i));
            let (Some(workspace), Some(hand)) = (room.workspace(), hand.workspace()) else { return };
            if let Some(saved) = task.saved(rows.start) {
                copy(Some(state), saved);
            }
            let next = rows.end;
            let chunk = Chunk { hand, ..Chunk::new(self.delta, workspace, &member, task.head, rows, next) };
            let (c, queries, _) = chunk.sizes();
            // SAFETY: the chunk is prepared; this member writes its own columns.
            unsafe {
                chunk.solve(Some(state.at.cast_const()), c + queries, false, chunk.w());
                if !chunk.finite() {
                    return self.odd.store(true, Relaxed);
                }
                chunk.outputs(task.o.from(chunk.tokens.start));
                chunk.advance(state.at);
            }
        }
    }

    /// The rows of a window in order, from the state before it.
    ///
    /// # Safety
    /// The head is this member's.
    unsafe fn again(&self, n: usize, head: usize, rows: Range<usize>) {
        let size = self.delta.key * self.delta.value;
        let (task, room) = (Task::new(self.delta, (n, head), self.out), self.room(self.member.id));
        Member::alone(|alone| {
            // SAFETY: the caller's.
            unsafe {
                std::ptr::copy_nonoverlapping(self.before.at(head * size).cast_const(), task.state, size);
                chunks(rows, SEGMENT).for_each(|rows| segment(self.delta, &room, alone, &task, rows));
            }
        });
    }
}
