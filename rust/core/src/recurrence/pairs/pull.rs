//! A step backward of a cell whose state is a pair, and the gradients gathered from many.

use super::super::driver::{Again, Back, Cell, CtRows, Pull, Window};
use super::super::parts::{Bars, Inputs};
use super::super::time::{Chunk, ChunkRow, Copies, halves, rows_apart};
use super::{Law, PairCell, Pairs, PassPull};
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Component, DenseStep, Gather, On, Part, Step, Trace, Uses};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// The cell in a backward pass.
pub struct PairPull<'s, R: Real, L, const N: usize> {
    pairs: &'s Pairs<'s, R, L, N>,
    halves: usize,
    /// The matrices of each product.
    w: [DenseStep<'s, R>; N],
    /// The steps of replayed segments.
    again: Again<PairCell<'s, R, L, N>>,
    /// The cotangents of the arguments of the gates, for the rows of each chunk, and copies of what they came from.
    chunks: [(Region<R>, Copies<R>); 2],
    /// Numbers from one row of bars to the next.
    pitch: usize,
    /// The cotangents of both parts from the step after, rows of one step.
    g: [Region<R>; 2],
    /// Those of the parts before a step without the products with W, where these are added apart.
    carry: [Region<R>; 2],
    ct: CtRows<'s, R>,
    inputs: Inputs<'s, R>,
}

impl<'s, R: Real, L: Law<R, N>, const N: usize> PairPull<'s, R, L, N> {
    /// For gradients that have passed their check.
    pub fn carve(
        arena: &mut Arena,
        pairs: &'s Pairs<'s, R, L, N>,
        replayed: bool,
        bars: Bars<'s, R>,
    ) -> Self {
        let &Pairs { ref line, n, u, of_u, .. } = pairs;
        let (schedule, halves) = (&line.schedule, halves(&line.schedule));
        // An odd number of cache lines: the gradient of W reads the bars down their columns.
        let cache_line = 64 / size_of::<R>();
        let pitch = ((of_u * n).div_ceil(cache_line) | 1) * cache_line;
        let after = L::PRODUCTS.iter().any(|product| product.after);
        let mut before = 0;
        PairPull {
            pairs,
            halves,
            w: std::array::from_fn(|i| {
                let uses = Uses::backward(halves, schedule.products());
                let bar = bars.w.map(|bar| Shared(bar.at(before)));
                before += pairs.w[i].len();
                DenseStep::carve(arena, (pairs.w[i].len() / n, n), pairs.w[i], bar, uses).apart(2 * n)
            }),
            again: Again(replayed.then(|| PairCell::carve(arena, pairs))),
            chunks: [(); 2].map(|()| {
                let rows = rows_apart(arena, true, schedule.chunk_rows(), pitch);
                (rows, Copies::carve(arena, line, halves, after))
            }),
            pitch,
            g: [(); 2].map(|()| arena.take(&[schedule.batch, n])),
            carry: L::CARRIES.map(|carries| arena.take(&[usize::from(carries), schedule.batch, n])),
            ct: bars.ct,
            inputs: Inputs::carve(arena, line, (u, of_u * n), halves, bars.inputs),
        }
    }

    /// The bars at row 0 of a step.
    fn bars(&self, at: ChunkRow) -> *mut R {
        self.chunks[at.turn].0.at(at.row * self.pitch)
    }

    /// Those of the gates of the i-th product.
    fn trace(&self, bars: *const R, i: usize) -> Trace<R> {
        let bar = bars.wrapping_add(L::PRODUCTS[i].gates.start * self.pairs.n);
        Trace { bar, apart: self.pitch, kept: std::ptr::null_mut() }
    }

    /// Adds W^T bars of the i-th product to the cotangent of its part of a state in `g`: to what is there, or to what was carried.
    ///
    /// # Safety
    /// The cotangents of the step are complete for these rows, and no other thread uses these columns of `g`.
    unsafe fn turn(
        &self,
        (i, add): (usize, Region<R>),
        bars: *const R,
        rows: Range<usize>,
        part: &Part<'_>,
        scratch: *mut R,
    ) {
        let Pairs { line, n, .. } = self.pairs;
        let mut map = Affine::new(*n, line.schedule.batch, self.g[L::PRODUCTS[i].part].ptr());
        map.add = add.or_null();
        // SAFETY: the contract above; the packed W has n columns.
        unsafe { self.w[i].backward(self.trace(bars, i), map, On { rows, part, scratch }) }
    }

    /// The cotangents of the state before a step, whose bars are given, in `g`.
    ///
    /// # Safety
    /// As [`PairPull::turn`].
    unsafe fn previous(&self, bars: *const R, rows: Range<usize>, part: &Part<'_>, scratch: *mut R) {
        for (i, product) in L::PRODUCTS.iter().enumerate().filter(|(_, product)| !product.after) {
            // SAFETY: the contract above.
            unsafe { self.turn((i, self.carry[product.part]), bars, rows.clone(), part, scratch) }
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
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real, L: Law<R, N>, const N: usize> Component<R> for PairPull<'_, R, L, N> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        self.w.iter().for_each(|w| f(w));
        f(&self.inputs);
        f(&self.again);
    }
}

// SAFETY: the cell is the one of the forward pass.
unsafe impl<R: Real, L: Law<R, N>, const N: usize> Pull<R> for PairPull<'_, R, L, N> {
    fn halves(&self) -> usize {
        self.halves
    }
    fn again(&self) -> Option<&dyn Cell<R>> {
        self.again.cell()
    }

    unsafe fn pull(&self, at: Back<'_, R>) {
        let Back { t, window, above, chunk, scratch } = at;
        let (Pairs { law, line, n, .. }, ct, part) = (self.pairs, &self.ct, chunk.part());
        let (n, schedule, columns) = (*n, &line.schedule, part.columns::<R>(*n));
        let (active, continued) = (schedule.active(t), schedule.continued(t));
        let (bars, gates) = (self.bars(chunk.place(t)), self.pairs.gates(t, window));
        let state = window.states.wrapping_add(t * line.stride());
        let carry = [0, 1].map(|part| if L::CARRIES[part] { self.carry[part] } else { self.g[part] });
        let pass = |i: usize, rows: &Range<usize>, previous: *const R, g: [*const R; 2], ct: *const R| {
            if rows.is_empty() {
                return;
            }
            let (area, carry) = (self.pairs.area(rows, &columns), carry.map(Region::ptr));
            let at = PassPull { gates, previous, state, g, ct, carry, bars, pitch: self.pitch, area };
            // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
            unsafe { law.pull(i, at) }
        };
        let none = std::ptr::null();
        // SAFETY: as above.
        unsafe {
            line.renew(t, window.states, part);
            let late = part.rows(0..continued);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                self.previous(self.bars(above), late.clone(), part, scratch);
                for row in schedule.next(t).into_iter().flat_map(|after| line.reset(after, &late)) {
                    for g in self.g {
                        g.at(row * n + columns.start).write_bytes(0, columns.len());
                    }
                }
            }
            let sources = line.sources(t, window.states);
            let g = self.g.map(|g| g.ptr().cast_const());
            for (all, previous) in &sources {
                let rows = |rows: Range<usize>| part.rows(rows.start.max(all.start)..rows.end.min(all.end));
                pass(N - 1, &rows(0..continued), *previous, g, ct.continued(t, window));
                pass(N - 1, &rows(continued..active), *previous, [none; 2], ct.ending(t, window));
            }
            for (i, product) in L::PRODUCTS.iter().enumerate().rev().filter(|(_, product)| product.after) {
                part.sync();
                self.turn((i, self.g[product.part]), bars, part.rows(0..active), part, scratch);
                for (rows, previous) in &sources {
                    pass(i - 1, &part.rows(rows.clone()), *previous, [none; 2], none);
                }
            }
            part.sync();
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = ct.starting(&starting) {
                self.previous(bars, starting.clone(), part, scratch);
                starting.clone().for_each(|row| self.put(h0_bar, row, &columns, false));
                for row in line.reset(t, &starting) {
                    for part in 0..2 {
                        h0_bar.add((2 * row + part) * n + columns.start).write_bytes(0, columns.len());
                    }
                }
            }
            if let Some(fresh) = ct.fresh(line, t) {
                for row in line.reset(t, &part.rows(0..active)) {
                    self.previous(bars, row..row + 1, part, scratch);
                    self.put(fresh, row, &columns, true);
                }
            }
            self.chunks[chunk.turn()].1.put(line, chunk, t, window.states);
        }
    }

    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let (Pairs { line, n, .. }, half) = (self.pairs, chunk.half);
        let (bars, copies) = &self.chunks[chunk.turn()];
        // those of the matrices of the states before or after these steps
        let add = |after: bool, steps: &Range<usize>, states: *const R, first: bool| {
            let row = chunk.row(steps.start) + half.rows.start;
            for (i, product) in L::PRODUCTS.iter().enumerate().filter(|(_, product)| product.after == after) {
                let trace = self.trace(bars.at(row * self.pitch), i);
                let previous = states.wrapping_add(product.part * n);
                let rows = Gather { half: half.index, rows: chunk.rows(steps), trace, previous, first };
                // SAFETY: the contract of the trait; members write different parts of W_bar.
                unsafe { self.w[i].gather(&rows, scratch, &half.gatherer) }
            }
        };
        let (first, states) = (chunk.index == 0, line.before(chunk, copies, window.states));
        add(false, &states.rest.0, states.rest.1, first);
        if let Some((steps, h0)) = states.start {
            chunk.part().member.barrier();
            add(false, &steps, h0, false);
        }
        // copies are there where a product reads the states after
        let own = match chunk.copied {
            true => copies.states.ptr().wrapping_add(chunk.begin() * line.width),
            false => window.states.wrapping_add(chunk.steps.start * line.stride()),
        };
        add(true, chunk.steps, own, first);
        let bars = bars.at(chunk.begin() * self.pitch).cast_const();
        // SAFETY: the contract of the trait; members write different columns of the sums.
        unsafe { self.inputs.gather(chunk, bars, self.pitch, line.inputs(chunk, copies), scratch) }
    }
}
