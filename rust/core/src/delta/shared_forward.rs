//! [`forward`](super::forward()) with every head shared among all members ([`Window`]).

use super::chunk::{Chunk, chunks};
use super::solve::{columns, copy_columns};
use super::state::State;
use super::task::{Out, Room, Task, segment, whole};
use super::window::{Meter, Place, Window};
use super::workspace::{Triangles, Workspace, chunk_rows};
use super::{Delta, SEGMENT};
use crate::error::Result;
use crate::parallel::{self, Member};
use crate::scalar::Real;
use crate::scratch::{Frames, Region, Scratch};
use isometry_kernels::delta::Matrix;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Segments of a window for each member.
const SEGMENTS: usize = if cfg!(test) { 1 } else { 4 };

/// All heads of one sequence after another.
pub fn run<R: Real>(delta: &Delta<'_, R>, out: Out<R>, threads: usize) -> Result<()> {
    let Delta { value_heads: hv, key, value, .. } = *delta;
    let window = Window::new(delta, hv, threads, SEGMENTS);
    let scratch = Scratch::new(|arena| {
        let rooms = arena.frames(threads, |arena| Room::carve(arena, delta));
        let triangles = arena.frames(window.chunks(), |arena| Triangles::carve(arena, delta));
        let states = [(); 2].map(|()| arena.take::<R>(&[hv, State::<R>::len(key, value)]));
        (rooms, triangles, states)
    })?;
    let (odd, alone) = (AtomicBool::new(false), AtomicBool::new(false));
    parallel::run(threads, &|member| {
        let (rooms, triangles, states) = *scratch;
        let room = Room::carve(&mut rooms.of(member.id).arena(), delta);
        let Some(workspace) = room.workspace() else { return };
        let room = (&room, workspace);
        let call = Forward { delta, out, window, room, triangles, states, odd: &odd, alone: &alone, member };
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
    /// The member's.
    room: (&'a Room<R>, &'a Workspace<R>),
    /// Of the chunks of a window.
    triangles: Frames,
    /// The states, and those before the window.
    states: [Region<R>; 2],
    /// Whether a number of the window is not finite: then its chunks are computed in order, from the state before it.
    odd: &'a AtomicBool,
    /// Whether the caller continues alone.
    alone: &'a AtomicBool,
    member: &'a Member<'a>,
}

impl<R: Real> Forward<'_, R> {
    fn triangles(&self, head: usize, i: usize) -> Triangles<R> {
        Triangles::carve(&mut self.triangles.of(self.window.place(head, i)).arena(), self.delta)
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
        let Forward { delta, out, window, member, .. } = *self;
        let (hv, mut meter) = (delta.value_heads, Meter::new(self.alone, member));
        for n in place.0..delta.sequences() {
            let all = delta.sequence(n).0.len() * delta.householders;
            if all <= SEGMENT {
                for head in self.dealt(hv) {
                    let room = self.room.0;
                    // SAFETY: heads are disjoint.
                    Member::alone(|alone| unsafe { whole(delta, room, alone, (n, head), out) });
                }
                meter.meet();
                continue;
            }
            let first = if n == place.0 { place.1 } else { 0 };
            for (i, rows) in chunks(0..all, window.rows()).enumerate().skip(first) {
                self.prepare(n, rows.clone());
                if meter.alone() {
                    return Some((n, i));
                }
                let last = rows.end == all;
                for head in 0..hv {
                    // SAFETY: columns are disjoint.
                    unsafe { self.pass((n, head), rows.clone(), last) };
                }
                meter.meet();
                if self.odd.load(Relaxed) {
                    for head in self.dealt(hv) {
                        // SAFETY: heads are disjoint.
                        unsafe { self.again((n, head), rows.clone()) };
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
            let (head, triangles, next) =
                (Task::new(self.delta, (n, head), self.out).head, self.triangles(head, i), rows.end);
            Member::alone(|alone| {
                let chunk = Chunk::new(self.delta, self.room.1, alone, head, rows, next);
                // SAFETY: the triangles belong to this chunk.
                unsafe { Chunk { triangles: &triangles, ..chunk }.triangulate() };
            });
        }
    }

    /// The two states of a head.
    fn states(&self, head: usize) -> [State<R>; 2] {
        let (key, value) = (self.delta.key, self.delta.value);
        self.states.map(|states| State::panels(states.at(head * State::<R>::len(key, value)), key))
    }

    /// The state through a window, in this member's columns, which need all keys and queries: to write them once more takes less
    /// time than to read them from another core.
    ///
    /// # Safety
    /// The window is prepared.
    unsafe fn pass(&self, (n, head): (usize, usize), rows: Range<usize>, last: bool) {
        let Delta { key, value, .. } = *self.delta;
        let member = self.window.turned(self.member, head);
        if columns::<R>(&member, value).next().is_none() {
            return;
        }
        let (task, [state, before]) = (Task::new(self.delta, (n, head), self.out), self.states(head));
        let copy = |x: Option<State<R>>, to: State<R>| {
            // SAFETY: all of them are (K, V), and the columns are this member's.
            unsafe { copy_columns(&member, x, to, (key, value)) };
        };
        let given = |at: *mut R| State::whole(Matrix { at, pitch: value });
        if rows.start == 0 {
            copy(task.initial.map(|initial| given(initial.cast_mut())), state);
        }
        copy(Some(state), before);
        for (i, rows) in chunks(rows, chunk_rows(&self.delta.gate)).enumerate() {
            let (triangles, next) = (self.triangles(head, i), rows.end);
            if let Some(saved) = task.saved(rows.start) {
                copy(Some(state), given(saved));
            }
            let chunk = Chunk::new(self.delta, self.room.1, &member, task.head, rows, next);
            let chunk = Chunk { triangles: &triangles, ..chunk };
            let (c, queries, _) = chunk.sizes();
            // SAFETY: the triangles are there; this member writes its own columns.
            unsafe {
                chunk.decayed();
                chunk.solve(Some(state), c + queries, false, chunk.w());
                if !chunk.finite() {
                    return self.odd.store(true, Relaxed);
                }
                chunk.outputs(task.o.from(chunk.tokens.start));
                chunk.advance(state);
            }
        }
        if last {
            copy(Some(state), given(task.state));
        }
    }

    /// The rows of a window in order, from the state before it.
    ///
    /// # Safety
    /// The head is this member's.
    unsafe fn again(&self, (n, head): (usize, usize), rows: Range<usize>) {
        let Delta { key, value, .. } = *self.delta;
        let (task, [state, before]) = (Task::new(self.delta, (n, head), self.out), self.states(head));
        let given = State::whole(Matrix { at: task.state, pitch: value });
        Member::alone(|alone| {
            // SAFETY: the caller's.
            unsafe {
                copy_columns(alone, Some(before), given, (key, value));
                chunks(rows, SEGMENT).for_each(|rows| segment(self.delta, self.room.0, alone, &task, rows));
                copy_columns(alone, Some(given), state, (key, value));
            }
        });
    }
}
