//! A step of a GRU backward, and the gradients gathered from many.

use super::super::cell::{Cell, Pull};
use super::super::chunk::{Chunk, Place};
use super::super::ends::CtRows;
use super::super::frame::Frame;
use super::super::inputs::{Gatherer, InputBars, halves_added};
use super::super::modrelu::{BiasGatherer, Values};
use super::cell::{GruCell, Saved};
use super::places::Places;
use super::{Gru, GruGradients, Reset, Setting};
use crate::activation::Source;
use crate::kernels::{Operand, Product, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::Region;
use crate::transition::Part;
use crate::transition::{Gather, Trace};
use isometry_kernels::activation::Columns;
use isometry_kernels::recurrence::{Affine, Area, BlendPull, ResetPull};
use std::ops::Range;

/// A GRU in a backward pass.
pub(super) struct GruPull<'a, R: Real> {
    setting: &'a Setting<'a, R>,
    places: &'a Places<'a, R>,
    halves: usize,
    ct: CtRows<R>,
    /// The steps of replayed segments.
    again: Option<&'a GruCell<'a, R>>,
    inputs: Gatherer<'a, R>,
    own_bias: BiasGatherer<'a, R>,
    w_bar: Option<Shared<R>>,
    h0_bar: Option<Shared<R>>,
    hidden_bias_bar: Option<Shared<R>>,
}

// SAFETY: cotangents are only read.
unsafe impl<R: Real> Sync for GruPull<'_, R> {}

impl<'a, R: Real> GruPull<'a, R> {
    /// For gradients that have passed their check; that of w goes to `w_bar`.
    ///
    /// # Safety
    /// The memory lives, was cut for these gradients, and nobody else uses it; the arrays have their sizes.
    pub unsafe fn new(
        setting: &'a Setting<'a, R>,
        places: &'a Places<'a, R>,
        halves: usize,
        again: Option<&'a GruCell<'a, R>>,
        ct: CtRows<R>,
        w_bar: Option<Shared<R>>,
        gradients: GruGradients<'a, R>,
    ) -> Self {
        let Setting { gru, line, phi, .. } = setting;
        let GruGradients { x, w: _, u, b, mut h0, hidden_bias, activation_bias } = gradients;
        let bars = InputBars { x, weight: u, bias: b };
        let share = |bar: &mut [R]| Shared(bar.as_mut_ptr());
        let weight = Operand::new(gru.u.as_ptr(), gru.features);
        // SAFETY: the contract above.
        unsafe {
            places.sums.zeroed();
            if let Some(h0_bar) = h0.as_deref_mut() {
                ct.of_no_step(&line.schedule, line.width, h0_bar.as_mut_ptr());
            }
            GruPull {
                setting,
                places,
                halves,
                again,
                ct,
                inputs: Gatherer::new(line, (weight, 3 * gru.n), &places.gathered, bars),
                own_bias: BiasGatherer::new(phi, halves, places.own_bias, activation_bias),
                w_bar,
                h0_bar: h0.map(share),
                hidden_bias_bar: hidden_bias.map(share),
            }
        }
    }

    /// Numbers of a row of bars.
    fn pitch(&self) -> usize {
        self.setting.gru.pitch()
    }

    /// The bars at row 0 of a step.
    fn bars(&self, place: Place) -> *mut R {
        self.places.chunks[place.turn].bars.at(place.row * self.pitch())
    }

    /// The cotangent of the states before a step: carry + W_zr^T (z', r'), and for "after" + W_h^T q.
    /// Meanwhile some rows of n numbers are prefetched.
    ///
    /// # Safety
    /// The bars of the step are complete for these rows; nobody else writes these columns of `out`.
    unsafe fn previous(
        &self,
        bars: *const R,
        soon: [*const R; 2],
        out: *mut R,
        rows: Range<usize>,
        part: &Part<'_>,
        scratch: *mut R,
    ) {
        let (Gru { n, batch, reset, .. }, pitch) = (self.setting.gru, self.pitch());
        let mut map = Affine::new(n, batch, out);
        (map.add, map.soon) = (self.places.carry.ptr(), soon);
        map.terms[0] = self.places.w.times_apart(bars, pitch);
        // SAFETY: the contract above; the packed W has n columns.
        unsafe {
            match reset {
                Reset::Before => map.run(rows, part.columns::<R>(n)),
                Reset::After => self.places.own.step().backward(self.own(bars), map, rows, part, scratch),
            }
        }
    }

    /// The cotangents of the product with W_h, beside the bars at `bars`: c', or q.
    fn own(&self, bars: *const R) -> Trace<R> {
        let gate = if self.setting.gru.reset == Reset::After { 3 } else { 2 };
        let bar = bars.wrapping_add(gate * self.setting.gru.n);
        Trace { bar, apart: self.pitch(), kept: std::ptr::null_mut() }
    }

    /// c' from the cotangents of c, on these rows; c as it was saved.
    ///
    /// # Safety
    /// As [`Pull::pull`].
    unsafe fn activate(&self, c: *const R, rows: Range<usize>, part: &Part<'_>, columns: &Range<usize>) {
        let (phi, bar) = (&self.setting.phi, self.places.c_bar.ptr());
        let from = if phi.readable() { Source::Value } else { Source::Argument };
        // SAFETY: the contract above; a kind that needs whole rows waits for the columns of the others.
        unsafe {
            if !phi.kind.by_rows() {
                phi.pull(c, from, bar, bar, rows, columns.clone());
                return;
            }
            part.sync();
            if part.leads() {
                phi.pull(c, from, bar, bar, rows, 0..phi.width);
            }
            part.sync();
        }
    }

    /// c of step t, from its argument where that was saved.
    ///
    /// # Safety
    /// As [`Pull::pull`].
    unsafe fn candidate(
        &self,
        a: *const R,
        rows: Range<usize>,
        part: &Part<'_>,
        columns: &Range<usize>,
    ) -> *const R {
        let (phi, c) = (&self.setting.phi, self.places.c);
        if phi.readable() {
            return a;
        }
        // SAFETY: the contract above; the arguments of all columns were written by another call.
        unsafe {
            if !phi.kind.by_rows() {
                phi.value(a, c.ptr(), rows, columns.clone());
            } else {
                if part.leads() {
                    phi.value(a, c.ptr(), rows, 0..phi.width);
                }
                part.sync();
            }
        }
        c.ptr()
    }

    /// Copies this part's rows of an array of one step to the chunk, if it has room for them.
    ///
    /// # Safety
    /// As [`Pull::pull`].
    unsafe fn copy(
        &self,
        from: *const R,
        to: Region<R>,
        row: usize,
        rows: &Range<usize>,
        columns: &Range<usize>,
    ) {
        let n = self.setting.gru.n;
        for i in if to.is_empty() { 0..0 } else { rows.clone() } {
            let (from, to) = (from.wrapping_add(i * n), to.at((row + i) * n));
            // SAFETY: the contract above.
            unsafe { to.add(columns.start).copy_from(from.add(columns.start), columns.len()) }
        }
    }
}

impl<R: Real> Pull<R> for GruPull<'_, R> {
    fn work(&self) -> [usize; 2] {
        let w = self.places.work(self.setting);
        [w, w.saturating_add(self.setting.gru.work()[1])]
    }
    fn halves(&self) -> usize {
        self.halves
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        let Gru { n, w, .. } = self.setting.gru;
        // SAFETY: W_zr has 2 n rows and n columns; all members pack it, and a barrier follows.
        unsafe {
            self.places.w.fill(Operand::new(w.as_ptr(), n), member);
            self.places.own.step().prepare(scratch, member);
            if let Some(again) = self.again {
                again.prepare(scratch, member);
            }
        }
        self.inputs.pack(member);
    }

    unsafe fn pull(
        &self,
        t: usize,
        frame: &Frame<R>,
        above: Option<Place>,
        chunk: &Chunk<'_>,
        scratch: *mut R,
    ) {
        let (Setting { gru, line, .. }, places, part) = (self.setting, self.places, chunk.part());
        let (n, schedule, pitch) = (gru.n, &line.schedule, self.pitch());
        let work = &places.chunks[chunk.turn()];
        let (row, active) = (chunk.row(t), schedule.active(t));
        let (rows, columns) = (part.rows(0..active), part.columns::<R>(n));
        let saved = Saved::of(gru, frame);
        let (gates, saved_c, bars) = (saved.gates(t), saved.c(t).cast_const(), self.bars(chunk.place(t)));
        let area = |rows: &Range<usize>| Area { n, rows: rows.clone(), columns: columns.clone() };
        let sources = line.sources(t, frame.states).map(|(rows, previous)| (part.rows(rows), previous));
        let [g, carry, c_bar] = [places.g, places.carry, places.c_bar].map(Region::ptr);
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let continued = schedule.continued(t);
            let late = part.rows(0..continued);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                // this part's rows of gates as twice as many of n numbers
                let first = gates.wrapping_add(late.start * n).cast_const();
                let soon = [first, first.wrapping_add(late.len() * n)];
                self.previous(self.bars(above), soon, g, late, part, scratch);
            }
            let c = self.candidate(saved_c, rows.clone(), part, &columns);
            for (all, previous) in &sources {
                let ending = [self.ct.ending(t), std::ptr::null()];
                for (rows, g) in [(0..continued, self.ct.beside(t, g)), (continued..active, ending)] {
                    let area = area(&(rows.start.max(all.start)..rows.end.min(all.end)));
                    BlendPull { gates, previous: *previous, c, g, c_bar, carry, bars, pitch, area }.call();
                }
            }
            self.copy(c_bar, work.value_bar, row, &rows, &columns);
            self.copy(saved_c, work.value, row, &rows, &columns);
            self.activate(saved_c, rows.clone(), part, &columns);
            if gru.reset == Reset::Before {
                part.sync();
                let mut map = Affine::new(n, gru.batch, places.turned.ptr());
                let soon =
                    |rows: *const R| if rows.is_null() { rows } else { line.earlier(rows, line.stride()) };
                map.soon = [self.ct.continued(t), saved_c].map(soon);
                let trace = Trace { bar: c_bar, apart: n, kept: std::ptr::null_mut() };
                if !rows.is_empty() {
                    places.own.step().backward(trace, map, rows.clone(), part, scratch);
                }
            }
            let value = work.reset.or_null().wrapping_add(if work.reset.is_empty() { 0 } else { row * n });
            for (rows, previous) in &sources {
                let area = area(rows);
                let (y, g, y_bar, y_rows, add) = match gru.reset {
                    Reset::Before => (*previous, places.turned.ptr().cast_const(), carry, n, true),
                    Reset::After => {
                        let y = saved.product(t).cast_const();
                        (y, c_bar.cast_const(), bars.wrapping_add(3 * n), pitch, false)
                    }
                };
                ResetPull { gates, y, g, c_bar, y_bar, y_rows, add, value, bars, pitch, area }.call();
            }
            part.sync();
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = self.h0_bar.filter(|_| !starting.is_empty()) {
                self.previous(bars, [std::ptr::null(); 2], h0_bar.0, starting, part, scratch);
            }
            work.copies.put(line, chunk, t, frame.states);
        }
    }

    unsafe fn gather(&self, frame: &Frame<R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let (Setting { gru, line, .. }, places) = (self.setting, self.places);
        let (n, pitch, half, work) = (gru.n, self.pitch(), chunk.half, &places.chunks[chunk.turn()]);
        let (member, all) = (&half.gatherer, chunk.rows(chunk.steps));
        let bars = work.bars.at(chunk.begin() * pitch).cast_const();
        // W_h from bars and the rows that it acts on
        let own = |bars: *const R, previous: *const R, rows: usize, first: bool| {
            let rows = Gather { half: half.index, rows, trace: self.own(bars), previous, first };
            // SAFETY: the contract of the trait; members write different parts of the gradient.
            unsafe { places.own.step().gather(&rows, scratch, member) }
        };
        let states = |steps: Range<usize>, previous: *const R, first: bool| {
            let (row, count) = (chunk.row(steps.start) + half.rows.start, chunk.rows(&steps));
            let bars = work.bars.at(row * pitch).cast_const();
            if let Some(bar) = self.w_bar {
                let bar = if half.index == 0 { bar.0 } else { places.second.ptr() };
                let (bars, x) = (Operand::new(bars, pitch), Operand::new(previous, n));
                let product = Product::new((2 * n, n, count), bars.t(), x, bar, n);
                let product = if first { product } else { product.add() };
                // SAFETY: the contract of the trait; members write different parts of W_bar.
                unsafe { product.run(member, scratch) }
            }
            if gru.reset == Reset::After {
                own(bars, previous, count, first);
            }
        };
        let before = line.before(chunk, &work.copies, frame.states);
        states(before.rest.0, before.rest.1, chunk.index == 0);
        if !work.reset.is_empty() {
            own(bars, work.reset.at(chunk.begin() * n).cast_const(), all, chunk.index == 0);
        }
        if let Some((steps, h0)) = before.start {
            chunk.part().member.barrier();
            states(steps, h0, false);
        }
        // SAFETY: the contract of the trait; members write different columns of the sums.
        unsafe {
            if !places.sums.is_empty() {
                Columns {
                    bar: bars.wrapping_add(3 * n),
                    along: None,
                    rows: all,
                    width: pitch,
                    sums: places.sums.at(half.index * n),
                    add: chunk.index > 0,
                    columns: member.share(n, lanes::<R>()),
                }
                .call();
            }
            self.inputs.gather(chunk, bars, pitch, line.inputs(chunk, &work.copies), scratch);
            if !work.value.is_empty() {
                let at = |array: Region<R>| array.at(chunk.begin() * n).cast_const();
                let from = if self.setting.phi.readable() { Source::Value } else { Source::Argument };
                let values = Values { bar: at(work.value_bar), y: at(work.value), from, apart: 0 };
                self.own_bias.gather(chunk, &values);
            }
        }
    }

    unsafe fn finish(&self, scratch: *mut R, member: &Member<'_>) {
        let Places { second, sums, .. } = *self.places;
        // SAFETY: the sums are complete; members write different elements.
        unsafe {
            self.places.own.step().finish(scratch, member);
            if let Some(bar) = self.w_bar.filter(|_| !second.is_empty()) {
                for at in member.share(second.len(), 64) {
                    *bar.at(at) += *second.at(at);
                }
            }
            if let Some(bar) = self.hidden_bias_bar.filter(|_| member.id == 0) {
                halves_added(sums, self.halves);
                bar.0.copy_from(sums.ptr(), self.setting.gru.n);
            }
            self.inputs.finish(member);
            self.own_bias.finish(member);
        }
    }
}
