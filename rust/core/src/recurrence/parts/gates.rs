//! Cells whose gates take one product: W (2n, n) of the states and U (3n, d) of the inputs, the first 2n rows for two gates,
//! the others for the candidate of the next state. What is common to their steps forward and backward.

use super::super::driver::{Back, CtRows, Pointer, Window};
use super::super::time::{Checkpoint, Chunk, ChunkRow, Copies, Run, Timeline, halves, rows_apart};
use super::activation::{BiasGatherer, Values, source};
use super::bars::Bars;
use super::drive::Drive;
use super::inputs::Inputs;
use super::padded::padded;
use crate::activation::RowActivation;
use crate::error::Result;
use crate::kernels::Buffer;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Component, DenseStep, Gather, Part, Step, Trace, Uses};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// The arrays of such a cell, checked and prepared.
pub struct Gates<'a, R: Real> {
    pub line: Timeline<'a, R>,
    pub phi: RowActivation<R>,
    pub n: usize,
    /// W (2n, n)
    w: &'a [R],
    /// U (3n, d)
    u: &'a [R],
    /// b of the gates, and of the candidate, each for whole vectors; empty without.
    biases: [Buffer<R>; 2],
    /// W, and U of the gates and of the candidate, where the caller has packed them.
    packs: [Option<&'a [R]>; 3],
    /// Arrays (T, B, n) that a step saves.
    pub saved: usize,
}

impl<'a, R: Real> Gates<'a, R> {
    /// Of arguments that have passed their check: W, U, b, and what adds to b of the gates.
    pub fn new(
        run: &Run<'a, R>,
        (w, u): (&'a [R], &'a [R]),
        [b, second]: [Option<&[R]>; 2],
        packs: [Option<&'a [R]>; 3],
        saved: usize,
        checkpoint: Option<Checkpoint>,
    ) -> Result<Self> {
        let n = run.n;
        let mut biases = [padded(b.map(|b| &b[..2 * n]).or(second))?, padded(b.map(|b| &b[2 * n..]))?];
        if let Some(second) = second.filter(|_| b.is_some()) {
            biases[0].iter_mut().zip(second).for_each(|(bias, second)| *bias += *second);
        }
        Ok(Gates { line: run.timeline(checkpoint)?, phi: run.phi()?, n, w, u, biases, packs, saved })
    }

    /// The gates of step t, rows of 2 n numbers.
    pub fn gates<P: Pointer>(&self, t: usize, window: &Window<P>) -> P {
        window.saved(t, 0, self.line.stride(), 2)
    }

    /// The i-th array of rows of n numbers that step t saves.
    pub fn saved<P: Pointer>(&self, t: usize, window: &Window<P>, i: usize) -> P {
        window.saved(t, i, self.line.stride(), 1)
    }

    /// Distance of the rows of bars: an odd number of cache lines, for the gradient of W reads them down their columns.
    fn pitch(&self) -> usize {
        let (line, arrays) = (64 / size_of::<R>(), self.saved);
        ((arrays * self.n).div_ceil(line) | 1) * line
    }
}

/// The operands of steps forward.
pub struct Operands<'s, R: Real> {
    gates: &'s Gates<'s, R>,
    pub w: DenseStep<'s, R>,
    /// U x + b of the gates and of the candidate.
    drives: [Drive<'s, R>; 2],
    /// phi of its argument, where the argument is what is saved.
    value: Region<R>,
}

impl<'s, R: Real> Operands<'s, R> {
    pub fn carve(arena: &mut Arena, gates: &'s Gates<'s, R>) -> Self {
        let Gates { line, n, u, biases: [b, own], packs: [w, of_gates, of_own], .. } = gates;
        let (n, apart) = (*n, usize::from(!gates.phi.readable()));
        let of_candidate = &u[2 * n * line.features..];
        Operands {
            gates,
            w: DenseStep::carve(
                arena,
                (2 * n, n),
                gates.w,
                None,
                Uses::forward(*w, line.schedule.products()),
            ),
            drives: [(*u, 2 * n, b, of_gates), (of_candidate, n, own, of_own)]
                .map(|(u, rows, bias, given)| Drive::carve(arena, line, (u, rows), bias, *given)),
            value: arena.take(&[apart, line.schedule.batch, n]),
        }
    }

    /// Computes what is ahead.
    ///
    /// # Safety
    /// As [`Drive::ahead`].
    pub unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        // SAFETY: the contract above.
        unsafe { self.drives.iter().for_each(|drive| drive.ahead(k, segment, part)) }
    }

    /// U x_t + b of the gates.
    pub fn of_gates(&self, t: usize, window: &Window<*mut R>) -> Affine<R> {
        self.drives[0].of(t, self.gates.gates(t, window))
    }

    /// U x_t + b of the candidate.
    pub fn of_candidate(&self, t: usize, out: *mut R) -> Affine<R> {
        self.drives[1].of(t, out)
    }

    /// Where phi of the array at `saved` goes: there, or beside it where its argument is what is saved.
    pub fn value(&self, saved: *mut R) -> *mut R {
        if self.gates.phi.readable() { saved } else { self.value.ptr() }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real> Component<R> for Operands<'_, R> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        f(&self.w);
        self.drives.iter().for_each(|drive| f(drive));
    }
}

/// The arrays of a chunk, row after row.
struct Rows<R> {
    /// The cotangents of the arguments of the gates, of the candidate, and what else a cell adds.
    bars: Region<R>,
    /// The candidate or its argument, and its cotangents, for the gradient of modReLU's bias.
    value: Region<R>,
    value_bar: Region<R>,
    copies: Copies<R>,
}

/// The memory of steps backward.
pub struct GatePull<'s, R: Real> {
    gates: &'s Gates<'s, R>,
    pub halves: usize,
    pub w: DenseStep<'s, R>,
    chunks: [Rows<R>; 2],
    /// Rows of one step: the cotangent of h, its direct part for the step before, that of the candidate, and the candidate
    /// where its argument was saved.
    pub g: Region<R>,
    pub carry: Region<R>,
    pub c_bar: Region<R>,
    pub c: Region<R>,
    pub ct: CtRows<'s, R>,
    inputs: Inputs<'s, R>,
    own_bias: BiasGatherer<'s, R>,
    /// Numbers from one row of bars to the next.
    pub pitch: usize,
}

impl<'s, R: Real> GatePull<'s, R> {
    pub fn carve(arena: &mut Arena, gates: &'s Gates<'s, R>, bars: Bars<'s, R>) -> Self {
        let Gates { line, phi, n, .. } = gates;
        let (n, pitch, halves) = (*n, gates.pitch(), halves(&line.schedule));
        let mut step = |wanted: bool| arena.take(&[usize::from(wanted), line.schedule.batch, n]);
        let [g, carry, c_bar] = [(); 3].map(|()| step(true));
        let c = step(!phi.readable());
        let uses = Uses::backward(halves, line.schedule.products());
        GatePull {
            gates,
            halves,
            w: DenseStep::carve(arena, (2 * n, n), gates.w, bars.w, uses),
            chunks: [(); 2].map(|()| {
                let own = bars.activation_bias.is_some();
                let rows = line.schedule.chunk_rows();
                let mut array = |wanted: bool, width: usize| rows_apart(arena, wanted, rows, width);
                Rows {
                    bars: array(true, pitch),
                    value: array(own, n),
                    value_bar: array(own, n),
                    copies: Copies::carve(arena, line, halves, false),
                }
            }),
            g,
            carry,
            c_bar,
            c,
            ct: bars.ct,
            inputs: Inputs::carve(arena, line, (gates.u, 3 * n), halves, bars.inputs),
            own_bias: BiasGatherer::carve(arena, phi, halves, bars.activation_bias),
            pitch,
        }
    }

    /// The bars at row 0 of a step.
    pub fn bars(&self, row: ChunkRow) -> *mut R {
        self.chunks[row.turn].bars.at(row.row * self.pitch)
    }

    /// The map to the cotangents of the states before a step, carry + W^T bars; W^T takes its first term.
    fn previous(&self, bars: *const R, out: *mut R) -> Affine<R> {
        let Gates { line, n, .. } = self.gates;
        let mut map = Affine::new(*n, line.schedule.batch, out);
        map.add = self.carry.ptr();
        self.w.adjoint(&mut map, 0, self.trace(bars, 0));
        map
    }

    /// Begins step t: the cotangents of its states from the step after it, whose bars are `above`, in `g`. `run` completes and runs a
    /// map to the cotangents of the states before a step, from its bars, for some rows.
    ///
    /// # Safety
    /// As [`Pull::pull`](super::super::driver::cell::Pull::pull).
    pub unsafe fn begin(&self, at: Back<'_, R>, run: impl Fn(*const R, Affine<R>, Range<usize>)) {
        let Back { t, window, above, chunk, .. } = at;
        let (Gates { line, n, .. }, part) = (self.gates, chunk.part());
        let (late, columns) = (part.rows(0..line.schedule.continued(t)), part.columns::<R>(*n));
        // SAFETY: the contract above.
        unsafe {
            line.renew(t, window.states, part);
            let Some(above) = above.filter(|_| !late.is_empty()).map(|above| self.bars(above)) else {
                return;
            };
            let mut map = self.previous(above, self.g.ptr());
            // meanwhile the gates of t are prefetched: this part's rows of them as twice as many of n numbers
            let first = self.gates.gates(t, window).wrapping_add(late.start * n);
            map.soon = [first, first.wrapping_add(late.len() * n)];
            run(above, map, late.clone());
            for row in line.schedule.next(t).into_iter().flat_map(|after| line.reset(after, &late)) {
                self.g.at(row * n + columns.start).write_bytes(0, columns.len());
            }
        }
    }

    /// Ends step t, whose bars are complete in this part's rows: the cotangents of the states before those of its rows that start, and
    /// what gathering reads.
    ///
    /// # Safety
    /// As [`GatePull::begin`].
    pub unsafe fn end(&self, at: Back<'_, R>, run: impl Fn(*const R, Affine<R>, Range<usize>)) {
        let Back { t, window, chunk, .. } = at;
        let (Gates { line, n, .. }, part, bars) = (self.gates, chunk.part(), self.bars(chunk.place(t)));
        let (active, columns) = (line.schedule.active(t), part.columns::<R>(*n));
        // SAFETY: the contract above.
        unsafe {
            let starting = part.rows(line.schedule.continuing(t)..active);
            if let Some(h0_bar) = self.ct.starting(&starting) {
                run(bars, self.previous(bars, h0_bar), starting.clone());
                for row in line.reset(t, &starting) {
                    h0_bar.add(row * n + columns.start).write_bytes(0, columns.len());
                }
            }
            if let Some(fresh) = self.ct.fresh(line, t) {
                for row in line.reset(t, &part.rows(0..active)) {
                    run(bars, self.previous(bars, self.g.ptr()), row..row + 1);
                    for at in columns.clone().map(|column| row * n + column) {
                        *fresh.add(at) = *fresh.add(at) + *self.g.at(at);
                    }
                }
            }
            self.chunks[chunk.turn()].copies.put(line, chunk, t, window.states);
        }
    }

    /// The i-th array of n numbers beside others in the rows at `bars`.
    pub fn trace(&self, bars: *const R, i: usize) -> Trace<R> {
        let bar = bars.wrapping_add(i * self.gates.n);
        Trace { bar, apart: self.pitch, kept: std::ptr::null_mut() }
    }

    /// Copies rows and columns of what the gradient of modReLU's bias needs of step t: the candidate as it was saved, and
    /// its cotangent.
    ///
    /// # Safety
    /// The rows of both are complete; nobody else writes these rows and columns of the chunk.
    pub unsafe fn keep(
        &self,
        t: usize,
        chunk: &Chunk<'_>,
        saved: *const R,
        rows: &Range<usize>,
        columns: &Range<usize>,
    ) {
        let (n, work) = (self.gates.n, &self.chunks[chunk.turn()]);
        for (from, to) in [(self.c_bar.ptr().cast_const(), work.value_bar), (saved, work.value)] {
            for i in if to.is_empty() { 0..0 } else { rows.clone() } {
                let (from, to) = (from.wrapping_add(i * n), to.at((chunk.row(t) + i) * n));
                // SAFETY: the contract above.
                unsafe {
                    to.add(columns.start).copy_from_nonoverlapping(from.add(columns.start), columns.len())
                }
            }
        }
    }

    /// Adds the rows of a chunk to the gradients; `own` adds those of another transition of the states, from rows of bars.
    ///
    /// # Safety
    /// As [`Pull::gather`](super::super::driver::cell::Pull::gather).
    pub unsafe fn gather(
        &self,
        window: &Window<*const R>,
        chunk: &Chunk<'_>,
        scratch: *mut R,
        own: impl Fn(Gather<R>),
    ) {
        let Gates { line, phi, n, .. } = self.gates;
        let (half, work) = (chunk.half, &self.chunks[chunk.turn()]);
        let states = |steps: Range<usize>, previous: *const R, first: bool| {
            let row = chunk.row(steps.start) + half.rows.start;
            let trace = self.trace(work.bars.at(row * self.pitch), 0);
            let rows = Gather { half: half.index, rows: chunk.rows(&steps), trace, previous, first };
            // SAFETY: the contract above; members write different parts of W_bar.
            unsafe { self.w.gather(&rows, scratch, &half.gatherer) }
            own(rows);
        };
        let before = line.before(chunk, &work.copies, window.states);
        states(before.rest.0, before.rest.1, chunk.index == 0);
        if let Some((steps, h0)) = before.start {
            chunk.part().member.barrier();
            states(steps, h0, false);
        }
        let bars = work.bars.at(chunk.begin() * self.pitch).cast_const();
        // SAFETY: the contract above; members write different columns of the sums.
        unsafe {
            self.inputs.gather(chunk, bars, self.pitch, line.inputs(chunk, &work.copies), scratch);
            if !work.value.is_empty() {
                let at = |array: Region<R>| array.at(chunk.begin() * n).cast_const();
                let values =
                    Values { bar: at(work.value_bar), y: at(work.value), from: source(phi), apart: 0 };
                self.own_bias.gather(chunk, &values);
            }
        }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real> Component<R> for GatePull<'_, R> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        f(&self.w);
        f(&self.inputs);
        f(&self.own_bias);
    }
}
