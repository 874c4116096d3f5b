//! The arrays that the steps of every cell read, as real numbers: inputs, initial states, and the states
//! before a step.

use super::checkpoint::Checkpoint;
use super::chunk::Chunk;
use super::schedule::{ROWS, Schedule};
use super::starts::{Marked, Starts, reset_rows};
use crate::activation::{Activation, RowActivation};
use crate::error::{Error, Result};
use crate::scalar::{Real, Scalar, parts};
use crate::scratch::{Arena, Region};
use crate::sizes::{check_len, work};
use crate::transition::Part;
use std::ops::Range;

/// Most steps times sequences without features: their array does not bound the work.
const FEATURELESS: usize = 1 << 24;

/// The arguments that every cell has.
///
/// ```
/// use isometry_core::activation::Activation;
/// use isometry_core::recurrence::Run;
///
/// let x = [0.0f32; 5 * 2 * 3];
/// // 5 steps of 2 sequences of 3 features, 4 states; the second sequence has 3 steps
/// let run = Run { activation: Activation::Relu, lengths: Some(&[5, 3]), ..Run::new([5, 2, 3, 4], &x) };
/// assert!(run.h0.is_none() && !run.reverse);
/// ```
#[derive(Clone, Copy)]
pub struct Run<'a, T: Scalar> {
    /// T
    pub steps: usize,
    /// B
    pub batch: usize,
    /// d
    pub features: usize,
    /// State size.
    pub n: usize,
    /// (T, B, d)
    pub x: &'a [T],
    /// (B, n), zeros if absent
    pub h0: Option<&'a [T]>,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs, one per feature.
    pub activation_bias: Option<&'a [T::Real]>,
    /// Steps of each sequence, not increasing; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
    /// Steps before which states are reset.
    pub starts: Option<Starts<'a, T>>,
    /// The operands of the cell as [`pack`](super::super::pack) writes them: a forward call does not pack them again.
    pub packs: Option<&'a [T::Real]>,
}

impl<'a, T: Scalar> Run<'a, T> {
    /// T steps of B sequences of d features, x (T, B, d), with states of n numbers that start from zero and phi = tanh; the
    /// rest is given by `Run { .., ..Run::new(sizes, x) }`.
    pub fn new([steps, batch, features, n]: [usize; 4], x: &'a [T]) -> Self {
        Run {
            steps,
            batch,
            features,
            n,
            x,
            h0: None,
            activation: Activation::Tanh,
            activation_bias: None,
            lengths: None,
            reverse: false,
            starts: None,
            packs: None,
        }
    }

    /// Refuses sizes that do not fit.
    pub(crate) fn check(&self) -> Result<()> {
        let Run { steps, batch, features, n, .. } = *self;
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        check_len("x", self.x.len(), &[steps, batch, features])?;
        let rows = work(&[steps, batch]);
        if features == 0 && rows > FEATURELESS {
            let expected = format!("at least one feature for more than {FEATURELESS} steps times sequences");
            return Err(Error::shape("x", expected, format!("({steps}, {batch}, 0)")));
        }
        self.h0.map_or(Ok(()), |h0| check_len("h0", h0.len(), &[batch, n]))?;
        self.starts.map_or(Ok(()), |starts| starts.check([steps, batch, n]))?;
        Schedule::check(steps, batch, self.lengths)?;
        self.activation.check::<T>(n, self.activation_bias)
    }

    /// T, B and n.
    #[doc(hidden)]
    pub fn sizes(&self) -> [usize; 3] {
        [self.steps, self.batch, self.n]
    }

    /// phi, prepared.
    pub(crate) fn phi(&self) -> Result<RowActivation<T::Real>> {
        RowActivation::new::<T>(self.activation, self.n, self.activation_bias)
    }

    /// As the steps read them; they have passed their check.
    pub(crate) fn timeline(&self, checkpoint: Option<Checkpoint>) -> Result<Timeline<'a, T::Real>> {
        let Run { steps, batch, features, n, x, h0, lengths, reverse, .. } = *self;
        let rows = checkpoint.map_or(ROWS, Checkpoint::rows);
        let schedule = Schedule::new([steps, batch], lengths, reverse, rows)?;
        let (width, starts) = (n * T::PARTS, self.starts);
        let schedule = match starts {
            Some(starts) => schedule.mark(starts.marks)?,
            None => schedule,
        };
        let own = |starts: Starts<'a, T>| Starts { marks: starts.marks, state: starts.state.map(parts) };
        Ok(Timeline {
            schedule,
            marked: starts.map(|starts| Marked::new(own(starts), batch, width)).transpose()?,
            x: parts(x),
            features: features * T::PARTS,
            h0: h0.map(parts),
            width,
        })
    }
}

/// Inputs and initial states of the sequences of a batch.
pub struct Timeline<'a, R: Real> {
    pub schedule: Schedule,
    /// (T, B, features)
    pub x: &'a [R],
    /// Numbers of an input.
    pub features: usize,
    /// (B, width), zeros if absent
    pub h0: Option<&'a [R]>,
    /// Numbers of a state.
    pub width: usize,
    /// The marks.
    pub marked: Option<Marked<'a, R>>,
}

/// The states before the steps of a chunk: those of some steps one after the other, then those of the step at
/// which all rows start.
pub struct Before<R> {
    pub rest: (Range<usize>, *const R),
    pub start: Option<(Range<usize>, *const R)>,
}

impl<R: Real> Timeline<'_, R> {
    /// Numbers of one time step of states.
    pub fn stride(&self) -> usize {
        self.schedule.batch * self.width
    }

    /// x_t
    pub fn x(&self, t: usize) -> *const R {
        self.x[t * self.schedule.batch * self.features..].as_ptr()
    }

    /// The position, one step earlier in the direction of the recurrence, of an array with `stride` numbers
    /// per step. Backward reads it next; at the first step it is outside the array, and only for prefetching.
    pub fn earlier(&self, rows: *const R, stride: usize) -> *const R {
        if self.schedule.reverse { rows.wrapping_add(stride) } else { rows.wrapping_sub(stride) }
    }

    /// The rows of step t by the states that they start from, each with these at row 0; null for zeros. Those of a marked
    /// step have been renewed.
    pub fn sources(&self, t: usize, states: *const R) -> [(Range<usize>, *const R); 2] {
        match &self.marked {
            Some(marked) if self.schedule.marked(&(t..t + 1)) => {
                let active = self.schedule.active(t);
                [(0..active, marked.before.0.cast_const()), (active..active, std::ptr::null())]
            }
            _ => self.beginnings(t, states),
        }
    }

    /// Those of the rows `rows` that are reset before step t.
    pub fn reset(&self, t: usize, rows: &Range<usize>) -> impl Iterator<Item = usize> + use<'_, R> {
        let marks = self.marked.as_ref().filter(|_| self.schedule.marked(&(t..t + 1)));
        let (marks, rows) = marks.map_or((&[][..], 0..0), |marked| (marked.starts.marks, rows.clone()));
        reset_rows(marks, &self.schedule, t, rows)
    }

    /// Gathers the states that the rows of a marked step start from; all members of a part that shares columns do.
    ///
    /// # Safety
    /// The states of the step before are complete for these rows, and nobody else uses their memory of a step.
    pub unsafe fn renew(&self, t: usize, states: *const R, part: &Part<'_>) {
        let Some(marked) = self.marked.as_ref().filter(|_| self.schedule.marked(&(t..t + 1))) else { return };
        let (width, before) = (self.width, marked.before.0);
        if part.leads() {
            let at = marked.at(&self.schedule, t);
            let state = marked.starts.state.map_or(std::ptr::null(), |state| state[at..].as_ptr());
            // SAFETY: the contract above; the memory has B rows, as h0 and the state of a mark have.
            unsafe {
                for (rows, source) in self.beginnings(t, states) {
                    put(source, before, width, 0, &part.rows(rows));
                }
                for row in self.reset(t, &part.rows(0..self.schedule.active(t))) {
                    put(state, before, width, 0, &(row..row + 1));
                }
            }
        }
        part.sync();
    }

    /// The rows of step t that continue from states and those that start, each with its previous states at row 0; null for zeros.
    fn beginnings(&self, t: usize, states: *const R) -> [(Range<usize>, *const R); 2] {
        let (continuing, active) = (self.schedule.continuing(t), self.schedule.active(t));
        let previous =
            self.schedule.previous(t).map_or(std::ptr::null(), |s| states.wrapping_add(s * self.stride()));
        let start = self.h0.map_or(std::ptr::null(), <[R]>::as_ptr);
        [(0..continuing, previous), (continuing..active, start)]
    }

    /// The inputs of a chunk, row after row.
    pub fn inputs(&self, chunk: &Chunk<'_>, copies: &Copies<R>) -> *const R {
        if chunk.copied {
            copies.x.at(chunk.begin() * self.features).cast_const()
        } else {
            self.x(chunk.steps.start)
        }
    }

    /// The states before the steps of a chunk.
    pub fn before(&self, chunk: &Chunk<'_>, copies: &Copies<R>, states: *const R) -> Before<R> {
        let (Chunk { steps, half, .. }, schedule) = (chunk, &self.schedule);
        if chunk.copied {
            let row = chunk.row(steps.start) + half.rows.start;
            let rest = ((*steps).clone(), copies.previous.at(row * self.width).cast_const());
            return Before { rest, start: None };
        }
        let start = Some(schedule.step(0)).filter(|t| steps.contains(t));
        let rest = match start {
            Some(t) if t == steps.start => t + 1..steps.end,
            Some(t) => steps.start..t,
            None => steps.start..steps.end,
        };
        // Rows ascend in t also backwards in time; an empty rest may have any address.
        let t = if schedule.reverse { rest.start + 1 } else { rest.start.max(1) - 1 };
        let start = start.zip(self.h0).map(|(t, h0)| (t..t + 1, h0.as_ptr()));
        Before { rest: (rest, states.wrapping_add(t * self.stride())), start }
    }
}

/// Copies of rows that the gradients of a chunk need to be contiguous ([`Chunk::copied`]).
pub struct Copies<R> {
    /// The states before the steps.
    pub previous: Region<R>,
    /// The inputs.
    pub x: Region<R>,
    /// The states.
    pub states: Region<R>,
}

impl<R: Real> Copies<R> {
    /// Memory for the copies of a chunk, if it can have any; for states only if they are wanted.
    pub fn carve(arena: &mut Arena, line: &Timeline<'_, R>, halves: usize, states: bool) -> Self {
        let rows = line.schedule.chunk_rows();
        let all = 0..line.schedule.steps;
        let varied = halves > 1 || line.schedule.marked(&all) || !line.schedule.full(&all);
        let mut array = |wanted: bool, width: usize| rows_apart(arena, wanted, rows, width);
        Copies {
            previous: array(varied, line.width),
            x: array(varied, line.features),
            states: array(varied && states, line.width),
        }
    }

    /// Copies this member's rows of step t.
    ///
    /// # Safety
    /// The arrays have the rows of the timeline; nobody else writes this member's rows of the chunk.
    pub unsafe fn put(&self, line: &Timeline<'_, R>, chunk: &Chunk<'_>, t: usize, states: *const R) {
        let part = chunk.part();
        if !chunk.copied || !part.leads() {
            return;
        }
        let (rows, before) = (part.rows(0..line.schedule.active(t)), chunk.row(t));
        // SAFETY: the contract above; a copy has room for the rows of the chunk.
        unsafe {
            put(line.x(t), self.x.ptr(), line.features, before, &rows);
            if !self.states.is_empty() {
                put(states.add(t * line.stride()), self.states.ptr(), line.width, before, &rows);
            }
            for (rows, source) in line.sources(t, states) {
                put(source, self.previous.ptr(), line.width, before, &part.rows(rows));
            }
        }
    }
}

/// An array of a chunk, if it is wanted: `rows` rows, and 16 numbers more between it and the next.
pub fn rows_apart<R>(arena: &mut Arena, wanted: bool, rows: usize, width: usize) -> Region<R> {
    let array: Region<R> = arena.take(&[usize::from(wanted), rows, width]);
    arena.take::<R>(&[if array.is_empty() { 0 } else { 16 }]);
    array
}

/// Copies rows of a step to rows of a chunk, zeros where there is no source.
///
/// # Safety
/// The rows exist at the source, if there is one, and in the chunk, where nobody else touches them.
unsafe fn put<R: Copy>(source: *const R, copy: *mut R, width: usize, before: usize, rows: &Range<usize>) {
    let (to, count) = (copy.wrapping_add((before + rows.start) * width), rows.len() * width);
    // SAFETY: the contract above.
    unsafe {
        if count > 0 && source.is_null() {
            to.write_bytes(0, count);
        } else if count > 0 {
            std::ptr::copy_nonoverlapping(source.add(rows.start * width), to, count);
        }
    }
}
