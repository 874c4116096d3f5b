//! A step of a rotational unit backward, and the gradients gathered from many.

use super::super::cell::{Cell, Pull};
use super::super::chunk::{Chunk, Place};
use super::super::ends::CtRows;
use super::super::frame::Frame;
use super::super::inputs::{Gatherer, InputBars};
use super::super::modrelu::{BiasGatherer, Values};
use super::cell::{RumCell, Saved};
use super::places::Places;
use super::{Outcome, Rum, RumGradients, Setting};
use crate::activation::Source;
use crate::kernels::{Operand, Product};
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::Region;
use isometry_kernels::recurrence::{Affine, Area, Blend, BlendPull, HeardPull, SpherePull};
use std::ops::Range;

/// A rotational unit in a backward pass.
pub(super) struct RumPull<'a, R: Real> {
    setting: &'a Setting<'a, R>,
    places: &'a Places<R>,
    halves: usize,
    ct: CtRows<R>,
    /// The steps of replayed segments.
    again: Option<&'a RumCell<'a, R>>,
    /// R and its cotangent, or null.
    memory: [*mut R; 2],
    inputs: Gatherer<'a, R>,
    own_bias: BiasGatherer<'a, R>,
    w_bar: Option<Shared<R>>,
    h0_bar: Option<Shared<R>>,
}

// SAFETY: cotangents are only read; members have different rows of the memory.
unsafe impl<R: Real> Sync for RumPull<'_, R> {}

impl<'a, R: Real> RumPull<'a, R> {
    /// For gradients that have passed their check.
    ///
    /// # Safety
    /// The memory lives, was cut for these gradients, and nobody else uses it; the arrays have their sizes.
    pub unsafe fn new(
        setting: &'a Setting<'a, R>,
        places: &'a Places<R>,
        halves: usize,
        again: Option<&'a RumCell<'a, R>>,
        outcome: &Outcome<'a, R>,
        gradients: RumGradients<'a, R>,
    ) -> Self {
        let Setting { rum, line, phi, .. } = setting;
        let Outcome { last, ct, last_ct, .. } = *outcome;
        let RumGradients { x, w, u, b, mut h0, r0, activation_bias } = gradients;
        let ct = ct.rows(line.stride());
        let bars = InputBars { x, weight: u, bias: b };
        let share = |bar: &mut [R]| Shared(bar.as_mut_ptr());
        let weight = Operand::new(rum.u.as_ptr(), rum.features);
        let bar = r0.map_or(places.memory_bar.or_null(), <[R]>::as_mut_ptr);
        // SAFETY: the contract above; a memory is given, and has room, if and only if there is one.
        unsafe {
            if let Some(h0_bar) = h0.as_deref_mut() {
                ct.of_no_step(&line.schedule, line.width, h0_bar.as_mut_ptr());
            }
            if rum.memory {
                places.memory.ptr().copy_from_nonoverlapping(last.as_ptr(), last.len());
                match last_ct {
                    Some(ct) => bar.copy_from_nonoverlapping(ct.as_ptr(), ct.len()),
                    None => bar.write_bytes(0, last.len()),
                }
            }
            RumPull {
                setting,
                places,
                halves,
                again,
                ct,
                memory: [places.memory.or_null(), bar],
                inputs: Gatherer::new(line, (weight, 3 * rum.n), &places.gathered, bars),
                own_bias: BiasGatherer::new(phi, halves, places.own_bias, activation_bias),
                w_bar: w.map(share),
                h0_bar: h0.map(share),
            }
        }
    }

    /// The bars at row 0 of a step.
    fn bars(&self, place: Place) -> *mut R {
        self.places.chunks[place.turn].bars.at(place.row * self.setting.rum.pitch())
    }

    /// The cotangent of the states before a step: carry + W^T (u'_bar, tau_bar). Meanwhile some rows of n
    /// numbers are prefetched.
    ///
    /// # Safety
    /// The bars of the step are complete for these rows; nobody else writes these rows of `out`.
    unsafe fn previous(&self, bars: *const R, soon: [*const R; 2], out: *mut R, rows: Range<usize>) {
        let (Rum { n, batch, .. }, pitch) = (self.setting.rum, self.setting.rum.pitch());
        let mut map = Affine::new(n, batch, out);
        (map.add, map.soon) = (self.places.carry.ptr(), soon);
        map.terms[0] = self.places.w.times_apart(bars, pitch);
        // SAFETY: the contract above; the packed W has n columns.
        unsafe { map.run(rows, 0..n) }
    }

    /// Copies rows of an array of one step to the chunk, if it has room for them.
    ///
    /// # Safety
    /// As [`Pull::pull`].
    unsafe fn copy(&self, from: *const R, to: Region<R>, row: usize, rows: &Range<usize>) {
        let n = self.setting.rum.n;
        if !to.is_empty() && !rows.is_empty() {
            let (from, to) = (from.wrapping_add(rows.start * n), to.at((row + rows.start) * n));
            // SAFETY: the contract above.
            unsafe { to.copy_from_nonoverlapping(from, rows.len() * n) }
        }
    }
}

impl<R: Real> Pull<R> for RumPull<'_, R> {
    fn work(&self) -> [usize; 2] {
        let [w, u] = self.setting.rum.work();
        [w, w.saturating_add(u)]
    }
    fn halves(&self) -> usize {
        self.halves
    }

    unsafe fn prepare(&self, scratch: *mut R, member: &Member<'_>) {
        let Rum { n, w, .. } = self.setting.rum;
        // SAFETY: W has 2 n rows and n columns; all members pack it, and a barrier follows.
        unsafe {
            self.places.w.fill(Operand::new(w.as_ptr(), n), member);
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
        let (Setting { rum, line, phi, .. }, places, part) = (self.setting, self.places, chunk.part());
        let (n, schedule, pitch) = (rum.n, &line.schedule, rum.pitch());
        let work = &places.chunks[chunk.turn()];
        let (row, active, continued) = (chunk.row(t), schedule.active(t), schedule.continued(t));
        let saved = Saved::of(rum, frame);
        let (gates, e, bars) = (saved.gates(t), saved.e(t), self.bars(chunk.place(t)));
        let [carry, k_bar] = [places.carry, places.k_bar].map(Region::ptr);
        let g = places.g.ptr().cast_const();
        let from = if phi.readable() { Source::Value } else { Source::Argument };
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let late = part.rows(0..continued);
            if let Some(above) = above.filter(|_| !late.is_empty()) {
                // this part's rows of gates as twice as many of n numbers
                let first = gates.wrapping_add(late.start * n).cast_const();
                let soon = [first, first.wrapping_add(late.len() * n)];
                self.previous(self.bars(above), soon, places.g.ptr(), late);
            }
            let saved = saved.k(t).cast_const();
            let k = if phi.readable() { saved } else { places.k.ptr() };
            for (all, previous) in line.sources(t, frame.states).map(|(rows, h)| (part.rows(rows), h)) {
                if !phi.readable() {
                    phi.value(saved, places.k.ptr(), all.clone(), 0..n);
                }
                let ending = [self.ct.ending(t), std::ptr::null()];
                for (some, sum) in [(0..continued, self.ct.beside(t, g)), (continued..active, ending)] {
                    let start = some.start.max(all.start);
                    let rows = start..some.end.min(all.end).max(start);
                    let area = Area { n, rows: rows.clone(), columns: 0..n };
                    let mut g = sum;
                    if let Some(eta) = rum.eta {
                        let x = places.blended.ptr();
                        Blend { gates, previous, c: k, out: x, area: area.clone() }.call();
                        SpherePull { n, rows, eta, x, g, out: places.g.ptr() }.call();
                        g = [places.g.ptr(), std::ptr::null_mut()].map(<*mut R>::cast_const);
                    }
                    BlendPull { gates, previous, c: k, g, c_bar: k_bar, carry, bars, pitch, area }.call();
                }
                self.copy(k_bar, work.value_bar, row, &all);
                self.copy(saved, work.value, row, &all);
                phi.pull(saved, from, k_bar, k_bar, all.clone(), 0..n);
                let [memory, memory_bar] = self.memory;
                let (bar, rows) = (k_bar.cast_const(), all);
                HeardPull {
                    n,
                    rows,
                    e,
                    gates,
                    previous,
                    memory,
                    memory_bar,
                    bar,
                    carry,
                    bars,
                    pitch,
                    scratch,
                }
                .call();
            }
            let starting = part.rows(schedule.continuing(t)..active);
            if let Some(h0_bar) = self.h0_bar.filter(|_| !starting.is_empty()) {
                self.previous(bars, [std::ptr::null(); 2], h0_bar.0, starting);
            }
            work.copies.put(line, chunk, t, frame.states);
        }
    }

    unsafe fn gather(&self, frame: &Frame<R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let (Setting { rum, line, phi, .. }, places) = (self.setting, self.places);
        let (n, pitch, half, work) = (rum.n, rum.pitch(), chunk.half, &places.chunks[chunk.turn()]);
        // the gradient of W from some steps and the states before them
        let states = |steps: Range<usize>, previous: *const R, add: bool| {
            let Some(bar) = self.w_bar else { return };
            let bar = if half.index == 0 { bar.0 } else { places.second.ptr() };
            let (row, count) = (chunk.row(steps.start) + half.rows.start, chunk.rows(&steps));
            let bars = Operand::new(work.bars.at(row * pitch).cast_const(), pitch);
            let product = Product::new((2 * n, n, count), bars.t(), Operand::new(previous, n), bar, n);
            let product = if add { product.add() } else { product };
            // SAFETY: the contract of the trait; members write different parts of W_bar.
            unsafe { product.run(&half.gatherer, scratch) }
        };
        let before = line.before(chunk, &work.copies, frame.states);
        states(before.rest.0, before.rest.1, chunk.index > 0);
        if let Some((steps, h0)) = before.start {
            chunk.part().member.barrier();
            states(steps, h0, true);
        }
        let bars = work.bars.at(chunk.begin() * pitch).cast_const();
        // SAFETY: the contract of the trait; members write different columns of the sums.
        unsafe {
            self.inputs.gather(chunk, bars, pitch, line.inputs(chunk, &work.copies), scratch);
            if !work.value.is_empty() {
                let at = |array: Region<R>| array.at(chunk.begin() * n).cast_const();
                let from = if phi.readable() { Source::Value } else { Source::Argument };
                let values = Values { bar: at(work.value_bar), y: at(work.value), from, apart: 0 };
                self.own_bias.gather(chunk, &values);
            }
        }
    }

    unsafe fn finish(&self, _scratch: *mut R, member: &Member<'_>) {
        let second = self.places.second;
        // SAFETY: the sums are complete; members write different elements.
        unsafe {
            if let Some(bar) = self.w_bar.filter(|_| !second.is_empty()) {
                for at in member.share(second.len(), 64) {
                    *bar.at(at) += *second.at(at);
                }
            }
            self.inputs.finish(member);
            self.own_bias.finish(member);
        }
    }
}
