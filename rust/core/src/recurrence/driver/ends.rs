//! What a recurrence returns and keeps: all states, or the last of each sequence, and checkpoints.

use super::super::beside::{Beside, BesideMut};
use super::super::time::{Checkpoint, Schedule, Timeline};
use super::forward::Outputs;
use super::window::Window;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::{Real, Scalar, parts, parts_mut};
use crate::sizes::check_len;
use std::ops::Range;

/// The arrays that a forward pass fills; None where one is not wanted.
pub struct Written<'a, T> {
    /// All states (T, B, n).
    pub states: Option<&'a mut [T]>,
    /// All states among those of other recurrences, in place of `states`.
    #[doc(hidden)]
    pub beside: Option<BesideMut<'a, T>>,
    /// The last state of each sequence (B, n).
    pub last: Option<&'a mut [T]>,
    /// The states at the borders of the segments of a checkpoint (K, B, n).
    pub marks: Option<(Checkpoint, &'a mut [T])>,
}

impl<T> Default for Written<'_, T> {
    fn default() -> Self {
        Written { states: None, beside: None, last: None, marks: None }
    }
}

impl<'a, T, S: AsMut<[T]> + ?Sized> From<&'a mut S> for Written<'a, T> {
    fn from(states: &'a mut S) -> Self {
        Written { states: Some(states.as_mut()), ..Written::default() }
    }
}

impl<T: Scalar> Written<'_, T> {
    /// What the driver writes besides the states, of a cell that saves so many numbers per step and sequence; sequences without a step
    /// get theirs.
    pub(crate) fn outputs(&mut self, line: &Timeline<'_, T::Real>, saved: usize) -> Outputs<T::Real> {
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
        let marks = self.marks.as_mut().map(|(kind, marks)| {
            (Shared(parts_mut(marks).as_mut_ptr()), kind.segments(steps, batch, [saved, line.width]))
        });
        Outputs { beside: self.beside.as_ref().map(BesideMut::lane), last, marks }
    }

    /// The checkpoint.
    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        self.marks.as_ref().map(|(kind, _)| *kind)
    }

    /// Refuses arrays of other sizes, for a cell that saves `each` numbers per step and sequence, and `saved` beside less than all states.
    pub(crate) fn check(
        &self,
        [steps, batch, n]: [usize; 3],
        (saved, each): (Option<usize>, usize),
    ) -> Result<()> {
        match (&self.states, &self.beside) {
            (Some(states), None) => check_len("states", states.len(), &[steps, batch, n])?,
            (None, Some(beside)) => beside.check("states", [steps, batch, n])?,
            (Some(_), Some(_)) => return Err(Error::shape("states", "one array", "two")),
            (None, None) if self.last.is_none() => {
                return Err(Error::shape("states", "states or last", "neither"));
            }
            (None, None) => {}
        }
        if let Some(last) = &self.last {
            check_len("last", last.len(), &[batch, n])?;
        }
        if let Some((kind, marks)) = &self.marks {
            check_marks(*kind, marks, [steps, batch, n], each)?;
        }
        match saved {
            Some(_) if self.states.is_none() && self.beside.is_none() => {
                Err(Error::shape("saved", "nothing beside less than all states", "an array"))
            }
            Some(saved) => check_len("saved", saved, &[each, steps, batch]),
            None => Ok(()),
        }
    }
}

fn check_marks<T>(kind: Checkpoint, marks: &[T], [steps, batch, n]: [usize; 3], saved: usize) -> Result<()> {
    let borders = kind.segments(steps, batch, [saved, n]).borders();
    check_len("marks", marks.len(), &[borders, batch, n])
}

/// The states that backward gets from forward.
#[derive(Clone, Copy)]
pub enum Trajectory<'a, T> {
    /// All (T, B, n).
    All(&'a [T]),
    /// All, among those of other recurrences.
    #[doc(hidden)]
    Beside(Beside<'a, T>),
    /// Those at the borders of segments (K, B, n), and the last of each sequence (B, n).
    Marks(Checkpoint, &'a [T], &'a [T]),
}

impl<'a, T, S: AsRef<[T]> + ?Sized> From<&'a S> for Trajectory<'a, T> {
    fn from(states: &'a S) -> Self {
        Trajectory::All(states.as_ref())
    }
}

impl<T: Scalar> Trajectory<'_, T> {
    /// Refuses arrays of other sizes, for a cell that saves `each` numbers per step and sequence: `saved` has these if
    /// all states are there.
    pub(crate) fn check(&self, sizes: [usize; 3], (saved, each): (usize, usize)) -> Result<()> {
        let [steps, batch, n] = sizes;
        let whole = self.checkpoint().is_none();
        check_len("saved", saved, &[if whole { each } else { 0 }, steps, batch])?;
        match *self {
            Trajectory::All(states) => check_len("states", states.len(), &[steps, batch, n]),
            Trajectory::Beside(states) => states.check("states", sizes),
            Trajectory::Marks(kind, marks, last) => {
                check_marks(kind, marks, sizes, each)?;
                check_len("last", last.len(), &[batch, n])
            }
        }
    }

    /// The checkpoint.
    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        if let Trajectory::Marks(kind, ..) = self { Some(*kind) } else { None }
    }
}

impl<'a, T> Trajectory<'a, T> {
    /// All states in an array of their own.
    pub(crate) fn all(&self) -> Option<&'a [T]> {
        if let Trajectory::All(states) = *self { Some(states) } else { None }
    }

    /// All states among those of other recurrences.
    pub(crate) fn beside(&self) -> Option<Beside<'a, T>> {
        if let Trajectory::Beside(states) = *self { Some(states) } else { None }
    }

    /// Those at the borders, and the last ones.
    pub(crate) fn marks(&self) -> Option<[&'a [T]; 2]> {
        if let Trajectory::Marks(_, marks, last) = *self { Some([marks, last]) } else { None }
    }
}

/// The cotangents of what forward returned.
#[derive(Clone, Copy)]
pub enum Cotangent<'a, T> {
    /// Of all states (T, B, n); ignored past the end of a sequence.
    States(&'a [T]),
    /// Of all states, among those of other recurrences, as the states are.
    #[doc(hidden)]
    Beside(Beside<'a, T>),
    /// Of the last state of each sequence (B, n).
    Last(&'a [T]),
}

impl<'a, T, S: AsRef<[T]> + ?Sized> From<&'a S> for Cotangent<'a, T> {
    fn from(states: &'a S) -> Self {
        Cotangent::States(states.as_ref())
    }
}

impl<'a, T: Scalar> Cotangent<'a, T> {
    /// Refuses an array of another size.
    pub(crate) fn check(&self, sizes: [usize; 3], states: &Trajectory<'_, T>) -> Result<()> {
        let [steps, batch, n] = sizes;
        match *self {
            Cotangent::States(ct) => check_len("ct", ct.len(), &[steps, batch, n]),
            Cotangent::Beside(_) if states.beside().is_none() => {
                Err(Error::value("ct", "must not lie beside others where the states do not"))
            }
            Cotangent::Beside(ct) => ct.check("ct", sizes),
            Cotangent::Last(ct) => check_len("ct", ct.len(), &[batch, n]),
        }
    }

    /// Of all states, among those of other recurrences.
    pub(crate) fn beside(&self) -> Option<Beside<'a, T>> {
        if let Cotangent::Beside(ct) = *self { Some(ct) } else { None }
    }

    /// As the steps read them, and where that of h0 goes.
    pub(crate) fn rows(
        &self,
        line: &Timeline<'_, T::Real>,
        h0: Option<Shared<T::Real>>,
        fresh: Option<Shared<T::Real>>,
    ) -> CtRows<'a, T::Real> {
        let (ct, stride) = match *self {
            Cotangent::States(ct) => (Some(parts(ct)), line.stride()),
            Cotangent::Beside(_) => (None, line.stride()),
            Cotangent::Last(ct) => (Some(parts(ct)), 0),
        };
        CtRows { ct, stride, h0, fresh }
    }
}

/// Cotangents per step.
#[derive(Clone, Copy)]
pub struct CtRows<'a, R> {
    /// None where those of a chunk are in its window.
    ct: Option<&'a [R]>,
    /// Numbers of a step; 0 for those of the last states.
    stride: usize,
    /// The cotangent of h0 (B, width), if it is wanted.
    h0: Option<Shared<R>>,
    /// The cotangent of the state before marked steps, of its shape, if it is wanted.
    fresh: Option<Shared<R>>,
}

impl<R: Real> CtRows<'_, R> {
    /// For the rows that end with step t.
    pub fn ending(&self, t: usize, window: &Window<*const R>) -> *const R {
        self.ct.map_or(window.cts, <[R]>::as_ptr).wrapping_add(t * self.stride)
    }

    /// For the rows that continue after step t; null for zeros.
    pub fn continued(&self, t: usize, window: &Window<*const R>) -> *const R {
        if self.stride == 0 { std::ptr::null() } else { self.ending(t, window) }
    }

    /// Those from the step after, `g`, and the same: the two parts of a sum, of which the second may be null.
    pub fn beside(&self, t: usize, window: &Window<*const R>, g: *const R) -> [*const R; 2] {
        [g, self.continued(t, window)]
    }

    /// Where the cotangents of h0 for the rows of a step that start go; None if there are none, or they are not wanted.
    pub fn starting(&self, rows: &Range<usize>) -> Option<*mut R> {
        self.h0.filter(|_| !rows.is_empty()).map(|h0| h0.0)
    }

    /// Where the cotangents of the state before step t are summed, if they are wanted and it is marked.
    pub fn fresh(&self, line: &Timeline<'_, R>, t: usize) -> Option<*mut R> {
        let (fresh, marked) = self.fresh.zip(line.marked.as_ref())?;
        Some(fresh.at(marked.at(&line.schedule, t)))
    }

    /// Writes zeros for the state before marked steps, and the cotangents of h0 for the sequences without a step, whose last state is h0.
    ///
    /// # Safety
    /// The arrays have the sizes of h0 and of the given states, and nobody else uses them.
    pub unsafe fn fill(&self, line: &Timeline<'_, R>) {
        let state = line.marked.as_ref().and_then(|marked| marked.starts.state);
        if let Some((fresh, state)) = self.fresh.zip(state) {
            // SAFETY: the contract above.
            unsafe { fresh.0.write_bytes(0, state.len()) }
        }
        let Some(h0) = self.h0 else { return };
        let at = line.schedule.active(0) * line.width;
        let count = line.stride() - at;
        // SAFETY: the contract above; cotangents of last states have the sizes of h0.
        unsafe {
            match self.ct.filter(|_| self.stride == 0) {
                Some(ct) => h0.at(at).copy_from_nonoverlapping(ct[at..].as_ptr(), count),
                None => h0.at(at).write_bytes(0, count),
            }
        }
    }
}
