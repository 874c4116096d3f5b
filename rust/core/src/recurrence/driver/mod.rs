//! The driver of all cells: the memory of a call, threads, windows of steps, and the way through time.
//!
//! A call is a checked [`Timeline`] and a function that makes its cell in the memory of the call.

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
use super::time::timeline::Timeline;
use crate::budget::Budget;
use crate::error::Result;
use crate::scalar::{Scalar, parts, parts_mut};
use crate::scratch::{Arena, Scratch};
use cell::{Cell, Pull};
use chunks::{Copies, Source};
use ends::{Cotangent, Trajectory, Written};
pub use pages::want_huge_pages;
use replay::Replay;
use sharing::Room;
use window::WindowMemory;

/// Fills what a forward pass writes. `saved` takes the `each` numbers that the cell saves per step and sequence, if they
/// are wanted.
///
/// # Safety
/// `written` and `saved` have passed [`Written::check`], and the arrays of the cell their check too.
pub unsafe fn forward<T: Scalar, C: Cell<T::Real>>(
    line: &Timeline<'_, T::Real>,
    mut written: Written<'_, T>,
    (saved, each): (Option<&mut [T::Real]>, usize),
    budget: &Budget<'_>,
    carve: impl Fn(&mut Arena) -> C,
) -> Result<()> {
    let (schedule, moving) = (&line.schedule, written.states.is_none());
    let one_step = if saved.is_none() { each } else { 0 };
    let memory = Scratch::new(|arena| {
        let cell = carve(arena);
        let load = (cell.work(), cell.divisible());
        let room = Room::carve(arena, schedule, load, cell.scratch(), budget.threads);
        (cell, room, WindowMemory::forward(arena, schedule, line.width, moving, one_step))
    })?;
    let (cell, room, memory) = &*memory;
    let outputs = written.outputs(line, each);
    let mut arrays = [written.states.map(parts_mut), saved];
    arrays.iter_mut().flatten().for_each(|array| want_huge_pages(array));
    let windows = memory.windows(schedule, line.width).written(arrays);
    // SAFETY: the memory was cut for this call, and the arrays have their sizes.
    unsafe {
        cell.fill();
        forward::forward(cell, room, schedule, (&windows, &outputs), budget.cancel)
    }
}

/// Completes the gradients of a cell from what its forward pass returned and saved.
///
/// # Safety
/// `states`, `ct` and `saved` have passed their checks, and the arrays of the cell theirs.
pub unsafe fn backward<T: Scalar, P: Pull<T::Real>>(
    line: &Timeline<'_, T::Real>,
    (states, ct): (Trajectory<'_, T>, Cotangent<'_, T>),
    (saved, each): (&[T::Real], usize),
    budget: &Budget<'_>,
    carve: impl Fn(&mut Arena) -> P,
) -> Result<()> {
    let (schedule, checkpoint, beside) = (&line.schedule, states.checkpoint(), states.beside());
    let memory = Scratch::new(|arena| {
        let pull = carve(arena);
        let load = (pull.work()[0], pull.divisible());
        let room = Room::carve(arena, schedule, load, pull.scratch(), budget.threads);
        (
            pull,
            room,
            WindowMemory::backward(arena, schedule, line.width, checkpoint, (beside.is_some(), each)),
        )
    })?;
    let (pull, room, memory) = &*memory;
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
    // SAFETY: the memory was cut for this call, and the arrays have their sizes.
    unsafe {
        pull.fill();
        let source = replay.map(Source::Replay).or(copies.map(Source::Copies));
        backward::backward(pull, room, schedule, (&windows, source.as_ref()), budget.cancel)
    }
}
