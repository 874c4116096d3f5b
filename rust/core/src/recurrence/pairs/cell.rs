//! A step forward of a cell whose state is a pair.

use super::super::driver::{Cell, Window};
use super::super::parts::Drive;
use super::{Law, Pairs, Pass};
use crate::scalar::Real;
use crate::scratch::Arena;
use crate::transition::{Component, DenseStep, On, Part, Step, Uses};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// The cell in a forward pass.
pub struct PairCell<'s, R: Real, L, const N: usize> {
    pairs: &'s Pairs<'s, R, L, N>,
    /// The matrices of each product, and what is added to it.
    products: [(DenseStep<'s, R>, Option<Drive<'s, R>>); N],
}

impl<'s, R: Real, L: Law<R, N>, const N: usize> PairCell<'s, R, L, N> {
    pub fn carve(arena: &mut Arena, pairs: &'s Pairs<'s, R, L, N>) -> Self {
        let (n, products) = (pairs.n, pairs.line.schedule.products());
        let products = std::array::from_fn(|i| {
            let (size, uses) =
                ((L::PRODUCTS[i].gates.len() * n, n), Uses::forward(pairs.packs[0][i], products));
            let w = DenseStep::carve(arena, size, pairs.w[i], None, uses).apart(2 * n);
            (w, pairs.drive(arena, i))
        });
        PairCell { pairs, products }
    }
}

// SAFETY: no step needs scratch.
unsafe impl<R: Real, L: Law<R, N>, const N: usize> Component<R> for PairCell<'_, R, L, N> {
    fn each(&self, f: &mut dyn FnMut(&dyn Component<R>)) {
        for (w, drive) in &self.products {
            f(w);
            drive.iter().for_each(|drive| f(drive));
        }
    }
}

// SAFETY: each thread has rows of its own, or columns, with barriers between the products and the elementwise passes.
unsafe impl<R: Real, L: Law<R, N>, const N: usize> Cell<R> for PairCell<'_, R, L, N> {
    unsafe fn ahead(&self, k: usize, segment: &Range<usize>, part: &Part<'_>) {
        for drive in self.products.iter().filter_map(|(_, drive)| drive.as_ref()) {
            // SAFETY: the contract of the trait.
            unsafe { drive.ahead(k, segment, part) }
        }
    }

    unsafe fn advance(&self, t: usize, window: &Window<*mut R>, part: &Part<'_>, scratch: *mut R) {
        let Pairs { law, line, n, .. } = self.pairs;
        let (n, gates, columns) = (*n, self.pairs.gates(t, window), part.columns::<R>(*n));
        let out = window.states.wrapping_add(t * line.stride());
        let sources = line.sources(t, window.states).map(|(rows, previous)| (part.rows(rows), previous));
        // one of them, where all rows start or all go on
        let sources = || sources.iter().filter(|(rows, _)| !rows.is_empty());
        // SAFETY: the contract of the trait; the packed operands have the rows and columns of their maps.
        unsafe {
            line.renew(t, window.states, part);
            for (i, (w, drive)) in self.products.iter().enumerate() {
                let product = &L::PRODUCTS[i];
                if product.after {
                    part.sync();
                }
                for (rows, previous) in sources() {
                    let state = if product.after { out.cast_const() } else { *previous };
                    let map = match drive {
                        Some(drive) => drive.of(t, gates[i]),
                        None if state.is_null() => continue,
                        None => {
                            let mut map = Affine::new(product.gates.len() * n, line.schedule.batch, gates[i]);
                            map.add = gates[i];
                            map
                        }
                    };
                    if state.is_null() {
                        map.run(rows.clone(), part.columns::<R>(map.width));
                    } else {
                        w.forward(state.add(product.part * n), map, On { rows: rows.clone(), part, scratch });
                    }
                }
                if i + 1 < N && !Pairs::<R, L, N>::begins(i + 1) {
                    continue;
                }
                // gates side by side are not shared by the columns of one part
                if product.gates.len() > 1 {
                    part.sync();
                }
                for &(ref rows, previous) in sources() {
                    let area = self.pairs.area(rows, &columns);
                    law.pass(i, Pass { gates, previous, out, area });
                }
            }
        }
    }
}
