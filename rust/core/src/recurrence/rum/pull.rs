//! A step of a rotational unit backward, and the gradients gathered from many.

use super::super::driver::{Again, Back, Cell, Pull, Window};
use super::super::parts::{Bars, GatePull, source};
use super::super::time::Chunk;
use super::cell::{E, K, RumCell};
use super::{Memory, Setting};
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::Component;
use isometry_kernels::recurrence::{Affine, Area, Blend, BlendPull, HeardPull, SpherePull};

/// A rotational unit in a backward pass.
pub(super) struct RumPull<'s, R: Real> {
    setting: &'s Setting<'s, R>,
    gates: GatePull<'s, R>,
    /// The steps of replayed segments.
    again: Again<RumCell<'s, R>>,
    /// h' of one step where it was normalised.
    blended: Region<R>,
    memory: Option<MemoryBack<'s, R>>,
}

/// The last R and its cotangent, and both as the steps go back, (B, n, n) each.
struct MemoryBack<'s, R>(Memory<'s, R>, [Shared<R>; 2]);

impl<'s, R: Real> RumPull<'s, R> {
    /// For gradients that have passed their check, where a memory was `last`.
    pub fn carve(
        arena: &mut Arena,
        setting: &'s Setting<'s, R>,
        replayed: bool,
        (bars, r0_bar): (Bars<'s, R>, Option<Shared<R>>),
        last: Option<Memory<'s, R>>,
    ) -> Self {
        let (n, batch) = (setting.gates.n, setting.gates.line.schedule.batch);
        let memory = last.map(|last| {
            let mut matrices = || Shared(arena.take::<R>(&[batch, n, n]).ptr());
            MemoryBack(last, [matrices(), r0_bar.unwrap_or_else(matrices)])
        });
        RumPull {
            setting,
            gates: GatePull::carve(arena, &setting.gates, bars),
            again: Again(replayed.then(|| RumCell::carve(arena, setting, None))),
            blended: arena.take(&[usize::from(setting.eta.is_some()), batch, n]),
            memory,
        }
    }
}

// SAFETY: there is no scratch.
unsafe impl<R: Real> Component<R> for MemoryBack<'_, R> {
    unsafe fn fill(&self) {
        let &MemoryBack(Memory { last, ct }, [memory, bar]) = self;
        // SAFETY: the contract of the trait; matrices have as many numbers as the last ones.
        unsafe {
            memory.0.copy_from_nonoverlapping(last.as_ptr(), last.len());
            match ct {
                Some(ct) => bar.0.copy_from_nonoverlapping(ct.as_ptr(), ct.len()),
                None => bar.0.write_bytes(0, last.len()),
            }
        }
    }
}

// SAFETY: the scratch is that of the parts.
unsafe impl<R: Real> Component<R> for RumPull<'_, R> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        self.gates.each(f);
        f(self.setting);
        self.memory.iter().for_each(|memory| f(memory));
        f(&self.again);
    }
}

// SAFETY: the cell is the one of the forward pass.
unsafe impl<R: Real> Pull<R> for RumPull<'_, R> {
    fn halves(&self) -> usize {
        self.gates.halves
    }
    fn again(&self) -> Option<&dyn Cell<R>> {
        self.again.cell()
    }

    unsafe fn pull(&self, at: Back<'_, R>) {
        let Back { t, window, chunk, scratch, .. } = at;
        let (Setting { gates: of, eta, .. }, pull, part) = (self.setting, &self.gates, chunk.part());
        let (n, line, phi, pitch) = (of.n, &of.line, &of.phi, pull.pitch);
        let schedule = &line.schedule;
        let (active, continued) = (schedule.active(t), schedule.continued(t));
        let (gates, e) = (of.gates(t, window), of.saved(t, window, E));
        let saved = of.saved(t, window, K);
        let bars = pull.bars(chunk.place(t));
        let [carry, k_bar] = [pull.carry, pull.c_bar].map(Region::ptr);
        let g = pull.g.ptr().cast_const();
        let none = std::ptr::null_mut();
        let [memory, memory_bar] =
            self.memory.as_ref().map_or([none; 2], |MemoryBack(_, both)| both.map(|matrices| matrices.0));
        // SAFETY: the contract of the trait; the step and what it wants of the steps beside it are complete for these rows.
        unsafe {
            let run = |_: *const R, map: Affine<R>, rows| map.run(rows, 0..n);
            pull.begin(at, run);
            let k = if phi.readable() { saved } else { pull.c.ptr() };
            for (all, previous) in line.sources(t, window.states).map(|(rows, h)| (part.rows(rows), h)) {
                if !phi.readable() {
                    phi.value(saved, pull.c.ptr(), all.clone(), 0..n);
                }
                let ending = [pull.ct.ending(t, window), std::ptr::null()];
                for (some, sum) in [(0..continued, pull.ct.beside(t, window, g)), (continued..active, ending)]
                {
                    let start = some.start.max(all.start);
                    let rows = start..some.end.min(all.end).max(start);
                    let area = Area { n, rows: rows.clone(), columns: 0..n };
                    let mut g = sum;
                    if let Some(eta) = *eta {
                        let x = self.blended.ptr();
                        Blend { gates, z: 0, previous, c: k, out: x, area: area.clone() }.call();
                        SpherePull { n, rows, eta, x, g, out: pull.g.ptr() }.call();
                        g = [pull.g.ptr().cast_const(), std::ptr::null()];
                    }
                    BlendPull { gates, z: 0, previous, c: k, g, c_bar: k_bar, carry, bars, pitch, area }
                        .call();
                }
                pull.keep(t, chunk, saved, &all, &(0..n));
                phi.pull(saved, source(phi), k_bar, k_bar, all.clone(), 0..n);
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
            pull.end(at, run);
        }
    }

    unsafe fn gather(&self, window: &Window<*const R>, chunk: &Chunk<'_>, scratch: *mut R) {
        // SAFETY: the contract of the trait.
        unsafe { self.gates.gather(window, chunk, scratch, |_| {}) }
    }
}
