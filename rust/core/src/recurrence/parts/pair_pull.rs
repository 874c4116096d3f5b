//! The steps of a cell whose state is a pair, backward: what is common to them, and the gradients gathered from many.

use super::super::driver::ends::CtRows;
use super::super::driver::window::Window;
use super::super::time::chunk::{Chunk, ChunkRow};
use super::super::time::halves::halves;
use super::super::time::timeline::{Copies, rows_apart};
use super::inputs::{InputBars, Inputs};
use super::pairs::Pairs;
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Gather, Trace, Uses};
use std::ops::Range;

/// What a backward pass reads and writes, besides the states.
#[derive(Clone, Copy)]
pub struct PairBars<'a, R: Real> {
    pub ct: CtRows<'a, R>,
    pub w: Option<Shared<R>>,
    /// Of x, U and b.
    pub inputs: InputBars<R>,
}

/// Rows of a step that begin from the same states and get the same cotangents, each at row 0 of the step; null for zeros.
pub struct Piece<R> {
    pub rows: Range<usize>,
    pub previous: *const R,
    /// Of both parts, from the step after.
    pub g: [*const R; 2],
    /// Of the state, which are added.
    pub ct: *const R,
}

/// The memory of steps backward.
pub struct PairPull<'s, R: Real> {
    pairs: &'s Pairs<'s, R>,
    pub halves: usize,
    /// The cotangents of the arguments of the gates, for the rows of each chunk, and copies of what they came from.
    chunks: [(Region<R>, Copies<R>); 2],
    /// Numbers from one row of bars to the next.
    pub pitch: usize,
    /// The cotangents of both parts from the step after, rows of one step.
    pub g: [Region<R>; 2],
    ct: CtRows<'s, R>,
    inputs: Inputs<'s, R>,
}

impl<'s, R: Real> PairPull<'s, R> {
    /// `states`: gathering reads the states of the steps, too.
    pub fn carve(arena: &mut Arena, pairs: &'s Pairs<'s, R>, bars: PairBars<'s, R>, states: bool) -> Self {
        let &Pairs { ref line, n, .. } = pairs;
        let (schedule, halves, inputs) = (&line.schedule, halves(&line.schedule), pairs.inputs());
        // An odd number of cache lines: the gradient of W reads the bars down their columns.
        let cache_line = 64 / size_of::<R>();
        let pitch = (inputs.1.div_ceil(cache_line) | 1) * cache_line;
        PairPull {
            pairs,
            halves,
            chunks: [(); 2].map(|()| {
                let rows = rows_apart(arena, true, schedule.chunk_rows(), pitch);
                (rows, Copies::carve(arena, line, halves, states))
            }),
            pitch,
            g: [(); 2].map(|()| arena.take(&[schedule.batch, n])),
            ct: bars.ct,
            inputs: Inputs::carve(arena, line, inputs, halves, bars.inputs),
        }
    }

    /// What the steps do with a matrix.
    pub fn uses(&self) -> Uses<'static, R> {
        Uses::backward(self.halves, self.pairs.line.schedule.once())
    }

    /// Real numbers of scratch that a member needs.
    pub fn scratch(&self) -> usize {
        self.inputs.scratch()
    }

    /// Writes the initial data of the call.
    ///
    /// # Safety
    /// The memory lives, and nobody else uses it.
    pub unsafe fn fill(&self) {
        // SAFETY: the contract above.
        unsafe {
            self.ct.fill(&self.pairs.line);
            self.inputs.fill();
        }
    }

    /// Packs operands; a barrier has to follow.
    pub fn pack(&self, member: &Member<'_>) {
        self.inputs.pack(member);
    }

    /// The bars at row 0 of a step.
    pub fn bars(&self, at: ChunkRow) -> *mut R {
        self.chunks[at.turn].0.at(at.row * self.pitch)
    }

    /// The bars of some matrix: those behind so many others of n numbers.
    pub fn trace(&self, bars: *const R, before: usize) -> Trace<R> {
        let bar = bars.wrapping_add(before * self.pairs.n);
        Trace { bar, apart: self.pitch, kept: std::ptr::null_mut() }
    }

    /// Begins step t: `g` of the rows that go on in the step after it, whose bars are `above`. `previous` writes the cotangents of
    /// the states before a step to `g`, from its bars.
    ///
    /// # Safety
    /// As [`Pull::pull`](super::super::driver::cell::Pull::pull).
    pub unsafe fn begin(
        &self,
        t: usize,
        window: &Window<*const R>,
        above: Option<ChunkRow>,
        chunk: &Chunk<'_>,
        previous: impl Fn(*const R, Range<usize>),
    ) {
        let (Pairs { line, n, .. }, part) = (self.pairs, chunk.part());
        let (late, columns) = (part.rows(0..line.schedule.continued(t)), part.columns::<R>(*n));
        // SAFETY: the contract above.
        unsafe {
            line.renew(t, window.states, part);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                previous(self.bars(above), late.clone());
                for row in line.schedule.next(t).into_iter().flat_map(|after| line.reset(after, &late)) {
                    for g in self.g {
                        g.at(row * n + columns.start).write_bytes(0, columns.len());
                    }
                }
            }
        }
    }

    /// This part's rows of step t.
    pub fn pieces(
        &self,
        t: usize,
        window: &Window<*const R>,
        chunk: &Chunk<'_>,
    ) -> impl Iterator<Item = Piece<R>> {
        let (Pairs { line, .. }, part) = (self.pairs, chunk.part());
        let (active, continued) = (line.schedule.active(t), line.schedule.continued(t));
        let ending = (continued..active, [std::ptr::null(); 2], self.ct.ending(t, window));
        let continuing = (0..continued, self.g.map(|g| g.ptr().cast_const()), self.ct.continued(t, window));
        let sources = line.sources(t, window.states);
        sources.into_iter().flat_map(move |(all, previous)| {
            [continuing.clone(), ending.clone()].map(|(rows, g, ct)| {
                let rows = part.rows(rows.start.max(all.start)..rows.end.min(all.end));
                Piece { rows, previous, g, ct }
            })
        })
    }

    /// Ends step t, whose bars are complete in this part's rows and columns: the cotangents of the states before those of its rows
    /// that start, and what gathering reads.
    ///
    /// # Safety
    /// As [`PairPull::begin`].
    pub unsafe fn end(
        &self,
        t: usize,
        window: &Window<*const R>,
        chunk: &Chunk<'_>,
        previous: impl Fn(*const R, Range<usize>),
    ) {
        let (Pairs { line, n, .. }, part, bars) = (self.pairs, chunk.part(), self.bars(chunk.place(t)));
        let (columns, active) = (part.columns::<R>(*n), line.schedule.active(t));
        part.sync();
        // SAFETY: the contract above.
        unsafe {
            let starting = part.rows(line.schedule.continuing(t)..active);
            if let Some(h0_bar) = self.ct.starting(&starting) {
                previous(bars, starting.clone());
                starting.clone().for_each(|row| self.put(h0_bar, row, &columns, false));
                for row in line.reset(t, &starting) {
                    for part in 0..2 {
                        h0_bar.add((2 * row + part) * n + columns.start).write_bytes(0, columns.len());
                    }
                }
            }
            if let Some(fresh) = self.ct.fresh(line, t) {
                for row in line.reset(t, &part.rows(0..active)) {
                    previous(bars, row..row + 1);
                    self.put(fresh, row, &columns, true);
                }
            }
            self.chunks[chunk.turn()].1.put(line, chunk, t, window.states);
        }
    }

    /// Adds these columns of a row of `g` to a cotangent of states (B, 2n), or writes them there.
    ///
    /// # Safety
    /// The row is complete; nobody else uses these columns of it.
    unsafe fn put(&self, into: *mut R, row: usize, columns: &Range<usize>, add: bool) {
        let n = self.pairs.n;
        for (part, from) in self.g.into_iter().enumerate() {
            for column in columns.clone() {
                // SAFETY: the contract above.
                unsafe {
                    let to = into.add((2 * row + part) * n + column);
                    let before = if add { *to } else { R::zero() };
                    *to = before + *from.at(row * n + column);
                }
            }
        }
    }

    /// Adds the rows of a chunk to the gradients; `before` and `after` add those of the matrices of the states before and after its
    /// steps, from rows of bars.
    ///
    /// # Safety
    /// As [`Pull::gather`](super::super::driver::cell::Pull::gather).
    pub unsafe fn gather(
        &self,
        window: &Window<*const R>,
        chunk: &Chunk<'_>,
        scratch: *mut R,
        before: impl Fn(Gather<R>),
        after: impl Fn(Gather<R>),
    ) {
        let (Pairs { line, .. }, half) = (self.pairs, chunk.half);
        let (bars, copies) = &self.chunks[chunk.turn()];
        let rows = |steps: &Range<usize>, previous: *const R, first: bool| {
            let row = chunk.row(steps.start) + half.rows.start;
            let trace = self.trace(bars.at(row * self.pitch), 0);
            Gather { half: half.index, rows: chunk.rows(steps), trace, previous, first }
        };
        let (first, states) = (chunk.index == 0, line.before(chunk, copies, window.states));
        before(rows(&states.rest.0, states.rest.1, first));
        if let Some((steps, h0)) = states.start {
            chunk.part().member.barrier();
            before(rows(&steps, h0, false));
        }
        // copies are there where `after` reads them
        let own = match chunk.copied {
            true => copies.states.ptr().wrapping_add(chunk.begin() * line.width),
            false => window.states.wrapping_add(chunk.steps.start * line.stride()),
        };
        after(rows(chunk.steps, own, first));
        let bars = bars.at(chunk.begin() * self.pitch).cast_const();
        // SAFETY: the contract above; members write different columns of the sums.
        unsafe { self.inputs.gather(chunk, bars, self.pitch, line.inputs(chunk, copies), scratch) }
    }

    /// Completes the gradients.
    ///
    /// # Safety
    /// Every chunk has been gathered by all members.
    pub unsafe fn finish(&self, member: &Member<'_>) {
        // SAFETY: the contract above.
        unsafe { self.inputs.finish(member) }
    }
}
