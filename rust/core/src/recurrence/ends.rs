//! What a recurrence returns and keeps: all states, or the last of each sequence, and checkpoints.

use super::forward::Outputs;
use super::plan::Checkpoint;
use super::schedule::Schedule;
use super::timeline::Timeline;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::{Real, Scalar, parts_mut};
use crate::sizes::check_len;

/// The arrays that a forward pass fills; None where one is not wanted.
pub struct Written<'a, T> {
    /// All states (T, B, n).
    pub states: Option<&'a mut [T]>,
    /// The last state of each sequence (B, n).
    pub last: Option<&'a mut [T]>,
    /// The states at the borders of the segments of a checkpoint (K, B, n).
    pub marks: Option<(Checkpoint, &'a mut [T])>,
}

impl<'a, T> From<&'a mut [T]> for Written<'a, T> {
    fn from(states: &'a mut [T]) -> Self {
        Written { states: Some(states), last: None, marks: None }
    }
}

impl<'a, T, const N: usize> From<&'a mut [T; N]> for Written<'a, T> {
    fn from(states: &'a mut [T; N]) -> Self {
        states.as_mut_slice().into()
    }
}

impl<'a, T> From<&'a mut Vec<T>> for Written<'a, T> {
    fn from(states: &'a mut Vec<T>) -> Self {
        states.as_mut_slice().into()
    }
}

impl<T: Scalar> Written<'_, T> {
    /// What the driver writes besides the states, of a cell that saves so many; sequences without a step get theirs.
    pub(super) fn outputs(&mut self, line: &Timeline<'_, T::Real>, saved: usize) -> Outputs<T::Real> {
        let Schedule { steps, batch, .. } = line.schedule;
        let last = self.last.as_mut().map(|last| {
            let last = parts_mut(last);
            let from = line.schedule.active(0) * line.width;
            match line.h0 {
                Some(h0) => last[from..].copy_from_slice(&h0[from..]),
                None => last[from..].fill(num_traits::Zero::zero()),
            }
            Shared(last.as_mut_ptr())
        });
        let marks = self
            .marks
            .as_mut()
            .map(|(kind, marks)| (Shared(parts_mut(marks).as_mut_ptr()), kind.segments(steps, batch, saved)));
        Outputs { last, marks }
    }
}

impl<T> Written<'_, T> {
    /// The checkpoint.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.marks.as_ref().map(|(kind, _)| *kind)
    }

    /// Refuses arrays of other sizes, for a cell that saves so many states per step.
    pub fn check(&self, [steps, batch, n]: [usize; 3], saved: usize) -> Result<()> {
        match &self.states {
            Some(states) => check_len("states", states.len(), &[steps, batch, n])?,
            None if self.last.is_none() => return Err(Error::shape("states", "states or last", "neither")),
            None => {}
        }
        if let Some(last) = &self.last {
            check_len("last", last.len(), &[batch, n])?;
        }
        match &self.marks {
            Some((kind, marks)) => check_marks(*kind, marks, [steps, batch, n], saved),
            None => Ok(()),
        }
    }
}

fn check_marks<T>(kind: Checkpoint, marks: &[T], [steps, batch, n]: [usize; 3], saved: usize) -> Result<()> {
    let borders = kind.segments(steps, batch, saved).borders();
    check_len("marks", marks.len(), &[borders, batch, n])
}

/// The states that backward gets from forward.
#[derive(Clone, Copy)]
pub enum Kept<'a, T> {
    /// All (T, B, n).
    States(&'a [T]),
    /// Those at the borders of segments (K, B, n), and the last of each sequence (B, n).
    Marks(Checkpoint, &'a [T], &'a [T]),
}

impl<'a, T> From<&'a [T]> for Kept<'a, T> {
    fn from(states: &'a [T]) -> Self {
        Kept::States(states)
    }
}

impl<'a, T> From<&'a Vec<T>> for Kept<'a, T> {
    fn from(states: &'a Vec<T>) -> Self {
        Kept::States(states)
    }
}

impl<T> Kept<'_, T> {
    /// Refuses arrays of other sizes.
    pub fn check(&self, sizes: [usize; 3], saved: usize) -> Result<()> {
        let [steps, batch, n] = sizes;
        match *self {
            Kept::States(states) => check_len("states", states.len(), &[steps, batch, n]),
            Kept::Marks(kind, marks, last) => {
                check_marks(kind, marks, sizes, saved)?;
                check_len("last", last.len(), &[batch, n])
            }
        }
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        if let Kept::Marks(kind, ..) = self { Some(*kind) } else { None }
    }
}

impl<'a, T> Kept<'a, T> {
    /// All states.
    pub(super) fn states(&self) -> Option<&'a [T]> {
        if let Kept::States(states) = *self { Some(states) } else { None }
    }

    /// Those at the borders, and the last ones.
    pub(super) fn marks(&self) -> Option<[&'a [T]; 2]> {
        if let Kept::Marks(_, marks, last) = *self { Some([marks, last]) } else { None }
    }
}

/// The cotangents of what forward returned.
#[derive(Clone, Copy)]
pub enum Cotangent<'a, T> {
    /// Of all states (T, B, n); ignored past the end of a sequence.
    States(&'a [T]),
    /// Of the last state of each sequence (B, n).
    Last(&'a [T]),
}

impl<'a, T> From<&'a [T]> for Cotangent<'a, T> {
    fn from(states: &'a [T]) -> Self {
        Cotangent::States(states)
    }
}

impl<'a, T> From<&'a Vec<T>> for Cotangent<'a, T> {
    fn from(states: &'a Vec<T>) -> Self {
        Cotangent::States(states)
    }
}

impl<'a, T> Cotangent<'a, T> {
    /// Refuses an array of another size.
    pub fn check(&self, [steps, batch, n]: [usize; 3]) -> Result<()> {
        match *self {
            Cotangent::States(ct) => check_len("ct", ct.len(), &[steps, batch, n]),
            Cotangent::Last(ct) => check_len("ct", ct.len(), &[batch, n]),
        }
    }

    /// As the steps read them, with so many real numbers per step.
    pub(super) fn rows<R>(&self, stride: usize) -> CtRows<R> {
        match *self {
            Cotangent::States(ct) => CtRows { start: ct.as_ptr().cast(), stride },
            Cotangent::Last(ct) => CtRows { start: ct.as_ptr().cast(), stride: 0 },
        }
    }
}

/// Cotangents per step.
#[derive(Clone, Copy)]
pub(super) struct CtRows<R> {
    start: *const R,
    /// Numbers of a step; 0 for those of the last states.
    stride: usize,
}

impl<R: Real> CtRows<R> {
    /// For the rows that end with step t.
    pub fn ending(&self, t: usize) -> *const R {
        self.start.wrapping_add(t * self.stride)
    }

    /// For the rows that continue after step t; null for zeros.
    pub fn continued(&self, t: usize) -> *const R {
        if self.stride == 0 { std::ptr::null() } else { self.ending(t) }
    }

    /// Those from the step after, `g`, and the same: the two parts of a sum, of which the second may be null.
    pub fn beside(&self, t: usize, g: *const R) -> [*const R; 2] {
        [g, self.continued(t)]
    }

    /// That of h0 for the sequences without a step, whose last state is h0.
    ///
    /// # Safety
    /// The arrays have B rows of `width` numbers, and nobody else uses `h0_bar`.
    pub unsafe fn of_no_step(&self, schedule: &Schedule, width: usize, h0_bar: *mut R) {
        let rows = schedule.active(0)..schedule.batch;
        let (at, count) = (rows.start * width, rows.len() * width);
        // SAFETY: the contract above.
        unsafe {
            if self.stride == 0 {
                h0_bar.add(at).copy_from_nonoverlapping(self.start.add(at), count);
            } else {
                h0_bar.add(at).write_bytes(0, count);
            }
        }
    }
}
