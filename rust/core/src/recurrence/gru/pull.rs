//! A step of a GRU backward, and the gradients gathered from many.

use super::super::driver::{Again, Back, Cell, Pull, Window};
use super::super::parts::{Bars, ColumnSums, GatePull, over, source};
use super::super::time::{Chunk, ChunkRow, rows_apart};
use super::cell::{C, GruCell, PRODUCT};
use super::{Reset, Setting};
use crate::kernels::lanes;
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::{Component, Gather, On, Part, Trace, TransitionStep, Uses};
use isometry_kernels::recurrence::{Affine, Area, BlendPull, ResetPull};
use std::ops::Range;

/// A GRU in a backward pass.
pub(super) struct GruPull<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    gates: GatePull<'s, R>,
    /// W_h
    own: TransitionStep<'s, R>,
    /// The steps of replayed segments.
    again: Again<GruCell<'s, R>>,
    /// r * h of the rows of each chunk, for "before", where the gradient of W_h is wanted.
    reset: [Region<R>; 2],
    /// W_h^T c' of one step, for "before".
    turned: Region<R>,
    /// The gradient of c_h.
    hidden_bias: ColumnSums<R>,
}

impl<'s, R: Real> GruPull<'s, R> {
    /// For gradients that have passed their check; `own_wanted`: that of W_h is one of them.
    pub fn carve(
        arena: &mut Arena,
        setting: &'s Setting<'s, R>,
        replayed: bool,
        (bars, own_wanted, hidden_bias): (Bars<'s, R>, bool, Option<Shared<R>>),
    ) -> Self {
        let Setting { gates: of, own, reset, .. } = setting;
        let (n, schedule) = (of.n, &of.line.schedule);
        let before = *reset == Reset::Before;
        let gates = GatePull::carve(arena, of, bars);
        let uses = Uses::backward(gates.halves, schedule.products());
        GruPull {
            setting,
            own: own.carve(arena, n, schedule.extent(), uses),
            again: Again(replayed.then(|| GruCell::carve(arena, setting))),
            reset: [(); 2].map(|()| rows_apart(arena, before && own_wanted, schedule.chunk_rows(), n)),
            turned: arena.take(&[usize::from(before), schedule.batch, n]),
            hidden_bias: ColumnSums::carve(arena, hidden_bias, gates.halves, n),
            gates,
        }
    }

    /// Runs the map to the cotangents of the states before a step, and for "after" adds W_h^T q.
    ///
    /// # Safety
    /// The cotangents of the step are complete for these rows, and no other thread writes these columns of the output.
    unsafe fn previous(
        &self,
        bars: *const R,
        map: Affine<R>,
        rows: Range<usize>,
        part: &Part<'_>,
        scratch: *mut R,
    ) {
        // SAFETY: the contract above; the packed W has n columns.
        unsafe {
            match self.setting.reset {
                Reset::Before => map.run(rows, part.columns::<R>(map.width)),
                Reset::After => {
                    self.own.backward(self.gates.trace(bars, PRODUCT), map, On { rows, part, scratch });
                }
            }
        }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real> Component<R> for GruPull<'_, R> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        f(&*self.own);
        f(&self.hidden_bias);
        self.gates.each(f);
        f(&self.again);
    }
}

// SAFETY: the cell is the one of the forward pass.
unsafe impl<R: Real> Pull<R> for GruPull<'_, R> {
    fn halves(&self) -> usize {
        self.gates.halves
    }
    fn again(&self) -> Option<&dyn Cell<R>> {
        self.again.cell()
    }

    unsafe fn pull(&self, at: Back<'_, R>) {
        let Back { t, window, chunk, scratch, .. } = at;
        let Setting { gates: of, reset, places: [z, r], .. } = self.setting;
        let (pull, part) = (&self.gates, chunk.part());
        let (n, line, phi, pitch) = (of.n, &of.line, &of.phi, pull.pitch);
        let schedule = &line.schedule;
        let (active, continued) = (schedule.active(t), schedule.continued(t));
        let (rows, columns) = (part.rows(0..active), part.columns::<R>(n));
        let (gates, saved) = (of.gates(t, window), of.saved(t, window, C));
        let bars = pull.bars(chunk.place(t));
        let area = |rows: &Range<usize>| Area { n, rows: rows.clone(), columns: columns.clone() };
        let sources = line.sources(t, window.states).map(|(rows, previous)| (part.rows(rows), previous));
        let [g, carry, c_bar] = [pull.g, pull.carry, pull.c_bar].map(Region::ptr);
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let run = |bars: *const R, map, rows| self.previous(bars, map, rows, part, scratch);
            pull.begin(at, run);
            let mut c = saved;
            if !phi.readable() {
                c = pull.c.ptr();
                over(phi, part, |columns| phi.value(saved, pull.c.ptr(), rows.clone(), columns));
            }
            for (all, previous) in &sources {
                let ending = [pull.ct.ending(t, window), std::ptr::null()];
                for (rows, g) in [(0..continued, pull.ct.beside(t, window, g)), (continued..active, ending)] {
                    let area = area(&(rows.start.max(all.start)..rows.end.min(all.end)));
                    BlendPull { gates, z: *z, previous: *previous, c, g, c_bar, carry, bars, pitch, area }
                        .call();
                }
            }
            pull.keep(t, chunk, saved, &rows, &columns);
            over(phi, part, |columns| phi.pull(saved, source(phi), c_bar, c_bar, rows.clone(), columns));
            if *reset == Reset::Before {
                part.sync();
                let mut map = Affine::new(n, schedule.batch, self.turned.ptr());
                let soon =
                    |rows: *const R| if rows.is_null() { rows } else { line.earlier(rows, line.stride()) };
                map.soon = [pull.ct.continued(t, window), saved].map(soon);
                let trace = Trace { bar: c_bar, apart: n, kept: std::ptr::null_mut() };
                if !rows.is_empty() {
                    self.own.backward(trace, map, On { rows: rows.clone(), part, scratch });
                }
            }
            let kept = self.reset[chunk.turn()];
            let value = if kept.is_empty() { std::ptr::null_mut() } else { kept.at(chunk.row(t) * n) };
            for (rows, previous) in &sources {
                let area = area(rows);
                let (y, g, y_bar, y_rows, add) = match reset {
                    Reset::Before => (*previous, self.turned.ptr().cast_const(), carry, n, true),
                    Reset::After => {
                        let y = of.saved(t, window, PRODUCT);
                        (y, c_bar.cast_const(), bars.wrapping_add(PRODUCT * n), pitch, false)
                    }
                };
                ResetPull { gates, r: *r, y, g, c_bar, y_bar, y_rows, add, value, bars, pitch, area }.call();
            }
            part.sync();
            pull.end(at, run);
        }
    }

    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R) {
        let (n, half) = (self.setting.gates.n, chunk.half);
        let (bars, rows) =
            (self.gates.bars(ChunkRow { turn: chunk.turn(), row: chunk.begin() }), chunk.rows(chunk.steps));
        // SAFETY: the contract of the trait; members write different parts of the gradients.
        unsafe {
            self.gates.gather(window, chunk, scratch.add(self.own.held()), |of| {
                if self.setting.reset == Reset::After {
                    let trace = self.gates.trace(of.trace.bar, PRODUCT);
                    self.own.gather(&Gather { trace, ..of }, scratch, &half.gatherer);
                }
            });
            let reset = self.reset[chunk.turn()];
            if !reset.is_empty() {
                let (trace, previous) = (self.gates.trace(bars, C), reset.at(chunk.begin() * n).cast_const());
                let of = Gather { half: half.index, rows, trace, previous, first: chunk.index == 0 };
                self.own.gather(&of, scratch, &half.gatherer);
            }
            let q = self.gates.trace(bars, PRODUCT);
            self.hidden_bias.gather(chunk, (q.bar, q.apart), rows, half.gatherer.share(n, lanes::<R>()));
        }
    }
}
