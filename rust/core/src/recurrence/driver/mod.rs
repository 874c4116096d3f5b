//! The driver of all cells: the memory of a call, threads, windows of steps, and the way through time.
//!
//! A call is checked ([`Unit`](super::Unit)); its law prepares what the steps read, and says how its cell is made.

mod backward;
pub mod cell;
mod chunks;
pub mod ends;
mod forward;
mod pages;
mod replay;
pub mod sharing;
pub mod window;

use super::beside::Beside;
use super::call::{OWN, Outcome};
use super::parts::{Bars, InputBars};
use super::time::{Checkpoint, Timeline};
use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::{Scalar, parts, parts_mut};
use crate::scratch::{Arena, Scratch};
pub use cell::{Again, Back, Cell, Pull, Undo};
use chunks::{Copies, Source};
pub use ends::{Cotangent, CtRows, Trajectory, Written};
pub use pages::want_huge_pages;
use replay::Replay;
use sharing::Room;
use std::mem::take;
use window::WindowMemory;
pub use window::{Pointer, Window};

/// A forward pass whose arrays have passed their checks.
pub struct Forward<'c, T: Scalar> {
    pub written: Written<'c, T>,
    /// The memory, empty without one.
    pub last: &'c mut [T],
    /// The room for what the cell saves, if it is wanted, and how many numbers per step and sequence that takes.
    pub saved: (Option<&'c mut [T::Real]>, usize),
    pub budget: &'c Budget<'c>,
}

/// A backward pass whose arrays have passed their checks.
pub struct Backward<'c, T: Scalar> {
    /// What forward wrote, and the cotangents.
    pub outcome: Outcome<'c, T>,
    /// What it saved, and how many numbers per step and sequence that is.
    pub saved: (&'c [T::Real], usize),
    /// The gradients, those of the cell's own arrays in the order of its arguments.
    pub x: Bar<'c, T>,
    pub own: [Bar<'c, T>; OWN],
    pub h0: Bar<'c, T>,
    pub activation_bias: Bar<'c, T>,
    pub start_state: Bar<'c, T>,
    pub budget: &'c Budget<'c>,
}

impl<T: Scalar> Forward<'_, T> {
    /// Fills what is wanted, by a cell that is made in the memory of the call.
    ///
    /// # Safety
    /// The timeline, the cell and the arrays belong to one call.
    pub unsafe fn drive<C: Cell<T::Real>>(
        self,
        line: &Timeline<'_, T::Real>,
        carve: impl Fn(&mut Arena) -> C,
    ) -> Result<()> {
        let Forward { mut written, saved: (saved, each), budget, .. } = self;
        let (schedule, moving) = (&line.schedule, written.states.is_none());
        let one_step = if saved.is_none() { each } else { 0 };
        let memory = Scratch::new(|arena| {
            let cell = carve(arena);
            let needs = cell.needs(0);
            let load = (needs.step(), needs.divisible);
            let room = Room::carve(arena, schedule, load, needs.scratch(), budget.threads);
            (cell, needs.step(), room, WindowMemory::forward(arena, schedule, line.width, moving, one_step))
        })?;
        let (cell, work, room, memory) = &*memory;
        let outputs = written.outputs(line, each);
        let mut arrays = [written.states.map(parts_mut), saved];
        arrays.iter_mut().flatten().for_each(|array| want_huge_pages(array));
        let windows = memory.windows(schedule, line.width).written(arrays);
        budget.stoppable(|| {
            // SAFETY: the memory was cut for this call, and the arrays have their sizes.
            unsafe {
                cell.fill();
                forward::forward((cell, *work), room, schedule, (&windows, &outputs));
            }
            Ok(())
        })
    }
}

impl<'c, T: Scalar> Backward<'c, T> {
    /// Whether segments are replayed or undone.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.outcome.states.checkpoint()
    }

    /// What the cell reads and writes: the cotangents, and the gradients, of which it gives those of W, U and b. Where no step
    /// writes a gradient, it is written here.
    ///
    /// # Safety
    /// The timeline belongs to the call.
    pub unsafe fn bars(&mut self, line: &Timeline<'_, T::Real>, own: [Option<Shared<T>>; 3]) -> Bars<'c, T> {
        let [x, h0, state] = [&mut self.x, &mut self.h0, &mut self.start_state].map(|bar| take(bar).shared());
        let [h0, state] = [h0, state].map(|bar| bar.map(|bar| Shared(bar.0.cast())));
        let ([w, weight, bias], ct) = (own, self.outcome.ct.rows(line, h0, state));
        // SAFETY: the contract above.
        unsafe { ct.fill(line) };
        let activation_bias = take(&mut self.activation_bias).shared_real();
        Bars { ct, w, inputs: InputBars { x, weight, bias }, activation_bias }
    }

    /// Completes the gradients by a cell that is made in the memory of the call.
    ///
    /// # Safety
    /// As [`Forward::drive`].
    pub unsafe fn drive<P: Pull<T::Real>>(
        self,
        line: &Timeline<'_, T::Real>,
        carve: impl Fn(&mut Arena) -> P,
    ) -> Result<()> {
        let Backward { outcome: Outcome { states, ct, .. }, saved: (saved, each), budget, .. } = self;
        let (schedule, checkpoint, beside) = (&line.schedule, states.checkpoint(), states.beside());
        let memory = Scratch::new(|arena| {
            let pull = carve(arena);
            let needs = pull.needs(schedule.chunk_rows());
            let load = (needs.work[0], needs.divisible);
            let room = Room::carve(arena, schedule, load, needs.scratch(), budget.threads);
            let own = (beside.is_some(), each);
            (pull, needs, room, WindowMemory::backward(arena, schedule, line.width, checkpoint, own))
        })?;
        let (pull, needs, room, memory) = &*memory;
        let saved = checkpoint.is_none().then_some(saved);
        let own = memory.windows(schedule, line.width);
        let windows = own.read([states.all().map(parts), saved]);
        let copies = beside.map(|states| Copies {
            windows: &own,
            states: states.of_real(),
            cts: ct.beside().map(Beside::of_real),
        });
        let replay = states.marks().zip(pull.again()).map(|([marks, last], cell)| Replay {
            cell,
            windows: &own,
            segments: memory.segments,
            marks: parts(marks).as_ptr(),
            undo: pull.undo().map(|undo| (undo, parts(last).as_ptr())),
        });
        let source = replay.map(Source::Replay).or(copies.map(Source::Copies));
        budget.stoppable(|| {
            // SAFETY: the memory was cut for this call, and the arrays have their sizes.
            unsafe {
                pull.fill();
                backward::backward((pull, needs), room, schedule, (&windows, source.as_ref()));
            }
            Ok(())
        })
    }
}
