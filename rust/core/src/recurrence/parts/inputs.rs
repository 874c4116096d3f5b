//! The gradients of the input part V x + b of a cell: V_bar = U_bar^T conj(X), x_bar = U_bar conj(V), b_bar = sum U_bar,
//! where U_bar is the cotangent of V x + b.
//!
//! For few features V_bar is gathered as the real product X^T U_bar of (d, n) arrays of parts, whose lanes are full for any
//! d, and combined into V_bar at the end.

use super::super::time::{Chunk, Schedule, Timeline};
use super::sums::ColumnSums;
use crate::kernels::{MAX_ROWS, Operand, Product, add_slots, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::work;
use crate::transition::{Component, Gather, Needs, Outer, Packed, Trace};
use isometry_kernels::recurrence::Affine;

/// The arrays for the gradients; None where one is not wanted.
#[derive(Clone, Copy)]
pub struct InputBars<T: Scalar> {
    /// (T, B, d)
    pub x: Option<Shared<T>>,
    /// (n, d)
    pub weight: Option<Shared<T>>,
    /// (n)
    pub bias: Option<Shared<T>>,
}

/// Gathers chunk after chunk.
pub struct Inputs<'a, T: Scalar> {
    line: &'a Timeline<'a, T::Real>,
    /// V with n rows, and conj(V) packed for x_bar.
    weight: &'a [T],
    n: usize,
    packed: Packed<T>,
    bars: InputBars<T>,
    /// V_bar of many features.
    outer: Outer<T>,
    /// X^T U_bar as real numbers, of each half; empty where V_bar is not wanted, or of many features.
    products: Region<T::Real>,
    sums: ColumnSums<T::Real>,
    halves: usize,
}

impl<'a, T: Scalar> Inputs<'a, T> {
    /// For V with n rows, and sums of each of the halves.
    pub fn carve(
        arena: &mut Arena,
        line: &'a Timeline<'a, T::Real>,
        (weight, n): (&'a [T], usize),
        halves: usize,
        bars: InputBars<T>,
    ) -> Self {
        let (d, width, features) = (line.features, n * T::PARTS, line.features / T::PARTS);
        let many = d >= 2 * lanes::<T::Real>();
        let products = arena.take(&[usize::from(bars.weight.is_some() && !many), halves, d, width]);
        let outer = Outer::carve(arena, [n, features], bars.weight.filter(|_| many), halves);
        let sums = ColumnSums::carve(arena, bars.bias.map(|bar| Shared(bar.0.cast())), halves, width);
        let [k, count] = if bars.x.is_some() { [n, features] } else { [0; 2] };
        let own = Operand::new(weight.as_ptr(), features).conj();
        let [batch, steps] = line.schedule.products();
        // the steps of a chunk are multiplied together
        let packed = Packed::of(arena, [k, count], None, (own, [batch.saturating_mul(steps), steps]));
        Inputs { line, weight, n, packed, bars, outer, products, sums, halves }
    }

    /// Adds a chunk: this member's part. `bar` has its rows of U_bar, `pitch` numbers from one to the next; `x` the inputs.
    ///
    /// # Safety
    /// The rows are complete; all members gather together, each with numbers of scratch for its products.
    pub unsafe fn gather(
        &self,
        chunk: &Chunk<'_>,
        bar: *const T::Real,
        pitch: usize,
        x: *const T::Real,
        scratch: *mut T::Real,
    ) {
        let (d, width) = (self.line.features, self.n * T::PARTS);
        let Inputs { products, halves, .. } = *self;
        let (member, rows, first) = (&chunk.half.gatherer, chunk.rows(chunk.steps), chunk.index == 0);
        // SAFETY: the contract above; the members write different columns of the sums, and different rows of x_bar.
        unsafe {
            let trace = Trace { bar, apart: pitch, kept: std::ptr::null_mut() };
            let all = Gather { half: chunk.half.index, rows, trace, previous: x, first };
            self.outer.gather(&all, d, scratch, member);
            if !products.is_empty() {
                let (x, bar) = (Operand::new(x, d), Operand::new(bar, pitch));
                let own = products.at(chunk.half.index * (products.len() / halves));
                let product = Product::new((d, width, rows), x.t(), bar, own, width);
                let product = if first { product } else { product.add() };
                product.run(member, scratch);
            }
            let columns = member.share(width, lanes::<T::Real>());
            self.sums.gather(chunk, (bar, pitch), rows, columns);
            if let Some(x_bar) = self.bars.x {
                self.inputs(x_bar.0.cast(), chunk, bar, pitch);
            }
        }
    }

    /// x_bar = U_bar conj(V) for this member's rows of the chunk.
    ///
    /// # Safety
    /// As [`Inputs::gather`].
    unsafe fn inputs(&self, x_bar: *mut T::Real, chunk: &Chunk<'_>, bar: *const T::Real, pitch: usize) {
        let (d, Chunk { steps, half, .. }) = (self.line.features, chunk);
        let Schedule { batch, .. } = self.line.schedule;
        let (schedule, member) = (&self.line.schedule, &half.gatherer);
        // `count` rows of x_bar from row `to` on, from the row `from` of the chunk on
        let run = |to: usize, from: usize, count: usize| {
            let mut map = Affine::new(d, usize::MAX, x_bar.wrapping_add(to * d));
            self.packed.join(&mut map, 0, bar.wrapping_add(from * pitch), pitch);
            // SAFETY: the contract above; the products of rows are independent of each other.
            unsafe { map.run(member.share(count, MAX_ROWS), 0..d) }
        };
        if chunk.halves > 1 {
            for (t, before) in (*steps).clone().zip((0..).step_by(half.rows.len())) {
                run(t * batch + half.rows.start, before, half.rows.len());
            }
        } else if schedule.full(steps) {
            run(steps.start * batch, 0, chunk.rows(steps));
        } else {
            for t in (*steps).clone() {
                let active = schedule.active(t);
                run(t * batch, schedule.rows(&(steps.start..t)), active);
                if member.id == 0 {
                    let behind = x_bar.wrapping_add((t * batch + active) * d);
                    // SAFETY: the rows past the ends of sequences exist, and nobody else writes them.
                    unsafe { behind.write_bytes(0, (batch - active) * d) };
                }
            }
        }
    }
}

// SAFETY: the products of a chunk need the scratch of `needs`.
unsafe impl<T: Scalar> Component<T::Real> for Inputs<'_, T> {
    fn needs(&self, rows: usize) -> Needs {
        let work = work(&[self.n * T::PARTS, self.line.features]);
        let free = Product::<T::Real>::scratch(self.line.features, rows).max(self.outer.scratch(rows));
        Needs { work: [0, work], free, ..Needs::NONE }
    }

    unsafe fn fill(&self) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.products.zeroed();
            self.sums.fill();
        }
    }

    unsafe fn prepare(&self, _scratch: *mut T::Real, member: &Member<'_>) {
        if self.bars.x.is_some() {
            let weight = Operand::new(self.weight.as_ptr(), self.line.features / T::PARTS);
            // SAFETY: V has n rows and d columns; all members pack it, and a barrier follows.
            unsafe { self.packed.fill(weight.conj(), member) }
        }
    }

    unsafe fn finish(&self, scratch: *mut T::Real, member: &Member<'_>) {
        // SAFETY: the contract of the trait.
        unsafe {
            self.outer.finish(member);
            self.sums.finish(scratch, member);
        }
        if member.id != 0 {
            return;
        }
        let Inputs { products, halves, bars, .. } = *self;
        let (n, features, width) = (self.n, self.line.features / T::PARTS, self.n * T::PARTS);
        // SAFETY: the sizes were checked, the sums were zeros at first; the other members are through with all of it.
        unsafe {
            let each = products.len() / halves;
            add_slots(products.ptr(), halves, each, 0..each);
            if let Some(bar) = bars.weight.filter(|_| !products.is_empty()) {
                let bar = std::slice::from_raw_parts_mut(bar.0, n * features);
                for i in 0..n {
                    for j in 0..features {
                        let part =
                            |p: usize, q: usize| *products.at((j * T::PARTS + p) * width + i * T::PARTS + q);
                        // conj(x) u = (x_re u_re + x_im u_im) + i (x_re u_im - x_im u_re)
                        bar[i * features + j] = if T::PARTS == 1 {
                            T::real(part(0, 0))
                        } else {
                            T::new(part(0, 0) + part(1, 1), part(0, 1) - part(1, 0))
                        };
                    }
                }
            }
        }
    }
}
