//! [`backward`](super::backward()) with every head shared among all members ([`Window`]): the chunks of a window from their states;
//! the gradient of the state back through them, by columns of V; the gradients of the arguments, chunk by chunk.

use super::chunk::{Chunk, chunks};
use super::pull::{Arrays, rows_of};
use super::solve::{columns, copy_columns};
use super::state::State;
use super::task_pull::{Room, Task, normalised};
use super::window::{Meter, Place, Window};
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT};
use crate::error::Result;
use crate::parallel::{self, Member};
use crate::scalar::Real;
use crate::scratch::{Frames, Region, Scratch};
use isometry_kernels::delta::Matrix;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// All heads of one sequence after another.
pub fn run<R: Real>(delta: &Delta<'_, R>, arrays: &Arrays<R>, threads: usize) -> Result<()> {
    let Delta { value_heads: hv, key, value, .. } = *delta;
    let window = Window::new(delta, delta.heads, threads, 1);
    let scratch = Scratch::new(|arena| {
        let rooms = arena.frames(window.chunks() + threads, |arena| Room::carve(arena, delta));
        (rooms, arena.take::<R>(&[hv, State::<R>::len(key, value)]))
    })?;
    let alone = AtomicBool::new(false);
    parallel::run(threads, &|member| {
        let (rooms, carried) = *scratch;
        let call = Backward { delta, arrays, window, rooms, carried, alone: &alone, member };
        // SAFETY: members write disjoint parts between barriers.
        if let Some(place) = unsafe { call.windows((0, 0)) }
            && member.id == 0
        {
            // SAFETY: the only member left.
            Member::alone(|member| unsafe { Backward { member, ..call }.windows(place) });
        }
    });
    Ok(())
}

/// A member of a call.
struct Backward<'a, R: Real> {
    delta: &'a Delta<'a, R>,
    arrays: &'a Arrays<R>,
    window: Window,
    /// For the chunks of a window, then for the members.
    rooms: Frames,
    /// The gradients of the states behind the window.
    carried: Region<R>,
    /// Whether the caller continues alone.
    alone: &'a AtomicBool,
    member: &'a Member<'a>,
}

impl<R: Real> Backward<'_, R> {
    fn room(&self, place: usize) -> Room<R> {
        Room::carve(&mut self.rooms.of(place).arena(), self.delta)
    }

    fn task(&self, n: usize, head: usize) -> Task<'_, R> {
        Task { delta: self.delta, arrays: self.arrays, n, head }
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
        let Backward { delta, window, member, .. } = *self;
        let (hv, value) = (delta.value_heads, delta.value);
        let mut meter = Meter::new(self.alone, member);
        for n in place.0..delta.sequences() {
            let rows = delta.sequence(n).0.len() * delta.householders;
            let first = if n == place.0 { place.1 } else { 0 };
            // SAFETY: parts between barriers are disjoint.
            unsafe {
                if first == 0 {
                    for head in 0..hv {
                        let state = self.task(n, head).state(self.arrays.state, n);
                        self.carry(State::whole(Matrix::of(state, value)), self.carried(head), head);
                    }
                }
                for (i, rows) in chunks(0..rows, window.rows()).rev().enumerate().skip(first) {
                    self.solve(n, rows.clone());
                    if meter.alone() {
                        return Some((n, i));
                    }
                    (0..hv).for_each(|head| self.pass(n, head, rows.clone()));
                    meter.meet();
                    self.rest(n, rows);
                    meter.meet();
                }
                if let Some(initial) = self.arrays.initial {
                    for head in 0..hv {
                        let at = self.task(n, head).state(initial, n);
                        self.carry(self.carried(head), State::whole(Matrix { at, pitch: value }), head);
                    }
                }
            }
        }
        None
    }

    fn carried(&self, head: usize) -> State<R> {
        let (key, value) = (self.delta.key, self.delta.value);
        State::panels(self.carried.at(head * State::<R>::len(key, value)), key)
    }

    /// to = from, the gradients of a state, in this member's columns.
    unsafe fn carry(&self, from: State<R>, to: State<R>, head: usize) {
        let (key, n) = (self.delta.key, self.delta.value);
        let member = self.window.turned(self.member, head);
        // SAFETY: both are (K, V).
        unsafe { copy_columns(&member, Some(from), to, (key, n)) }
    }

    /// What does not depend on the gradients of the states.
    unsafe fn solve(&self, n: usize, rows: Range<usize>) {
        let (most, hv) = (chunk_rows(&self.delta.gate), self.delta.value_heads);
        let segments = chunks(rows, SEGMENT);
        for at in self.dealt(segments.len() * hv) {
            let (i, head) = (at / hv, at % hv);
            let (Some(segment), task) = (segments.clone().nth(i), self.task(n, head)) else { continue };
            let place = |part: usize| self.room(self.window.place(head, i * (SEGMENT / most) + part));
            let room = place(0);
            Member::alone(|alone| {
                // SAFETY: the segment's places belong to this member.
                unsafe {
                    task.replay(&room, alone, segment.clone());
                    for (part, rows) in chunks(segment.clone(), most).enumerate() {
                        let gradients = place(part).gradients;
                        let pull = task.pull(task.chunk(&gradients, alone, rows), &gradients);
                        pull.solve(task.behind(&room, segment.start, part));
                    }
                }
            });
        }
    }

    /// The gradient of the state through a window, in this member's columns; every chunk keeps that of the state behind it.
    unsafe fn pass(&self, n: usize, head: usize, rows: Range<usize>) {
        let Delta { value_heads: hv, value, .. } = *self.delta;
        let (task, member) = (self.task(n, head), self.window.turned(self.member, head));
        if columns::<R>(&member, value).next().is_none() {
            return;
        }
        let (own, carried) = (self.room(self.window.chunks() + self.member.id).gradients, self.carried(head));
        for (i, rows) in chunks(rows, chunk_rows(&self.delta.gate)).enumerate().rev() {
            let of_chunk = self.room(self.window.place(head, i)).gradients;
            let triangles = &of_chunk.chunk.triangles;
            let pull = task.pull(Chunk { triangles, ..task.chunk(&own, &member, rows) }, &own);
            let (c, queries, _) = pull.chunk.sizes();
            let o = rows_of(self.arrays.o, pull.first + pull.chunk.tokens.start, (hv, head), value);
            let (o_to, r_bar) = (pull.of_value(own.vo).from(c), pull.of_value(of_chunk.r_bar));
            // SAFETY: the chunks are solved, and the columns this member's.
            unsafe {
                self.carry(carried, State::whole(of_chunk.s_bar(self.delta)), head);
                pull.chunk.decayed();
                copy_columns(&member, Some(State::whole(o)), State::whole(o_to), (queries, value));
                pull.residual_gradient(carried, r_bar);
                pull.values(r_bar, r_bar, Matrix::none(), own.beta_bar.ptr());
                pull.retreat(carried, None);
            }
        }
    }

    /// The gradients of the arguments, chunk by chunk; value heads of a key head in order.
    unsafe fn rest(&self, n: usize, rows: Range<usize>) {
        let (most, h) = (chunk_rows(&self.delta.gate), self.delta.heads);
        let (each, all) = (self.delta.value_heads / h, chunks(rows.clone(), most));
        let parts = SEGMENT / most;
        for at in self.dealt(all.len() * h) {
            let (i, group) = (at / h, at % h);
            let Some(own) = all.clone().nth(i) else { continue };
            let segment = i / parts;
            let first = rows.start + segment * SEGMENT;
            Member::alone(|alone| {
                // SAFETY: the rows of the gradients of this key head belong to this member.
                unsafe {
                    for head in group * each..(group + 1) * each {
                        let (task, place) = (self.task(n, head), |i| self.room(self.window.place(head, i)));
                        let (gradients, states) = (place(i).gradients, place(segment * parts));
                        let pull = task.pull(task.chunk(&gradients, alone, own.clone()), &gradients);
                        pull.rest(task.behind(&states, first, i % parts), task.adds());
                    }
                    normalised(self.delta, self.arrays, (n, group), own.clone());
                }
            });
        }
    }
}
