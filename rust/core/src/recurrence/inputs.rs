//! The gradients of the input part V x + b of a cell: V_bar = U_bar^T conj(X), x_bar = U_bar conj(V), b_bar = sum U_bar,
//! where U_bar is the cotangent of V x + b.
//!
//! V_bar is gathered as the real product X^T U_bar of (d, n) arrays of parts, whose lanes are full for any d, and
//! combined into V_bar at the end.

use super::chunk::Chunk;
use super::schedule::Schedule;
use super::timeline::Timeline;
use crate::kernels::{MAX_ROWS, Operand, Product, add_slots, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::{Scalar, parts_mut};
use crate::scratch::{Arena, Region};
use crate::transition::Packed;
use isometry_kernels::activation::Columns;
use isometry_kernels::recurrence::Affine;

/// The arrays for the gradients; None where one is not wanted.
pub struct InputBars<'a, T: Scalar> {
    /// (T, B, d)
    pub x: Option<&'a mut [T]>,
    /// (n, d)
    pub weight: Option<&'a mut [T]>,
    /// (n)
    pub bias: Option<&'a mut [T]>,
}

/// The memory of a [`Gatherer`]; empty where a gradient is not wanted.
pub struct Gathered<T: Scalar> {
    /// conj(V), for x_bar.
    input: Packed<T>,
    /// X^T U_bar as real numbers, and the sums of each half.
    products: Region<T::Real>,
    sums: Region<T::Real>,
    halves: usize,
}

impl<T: Scalar> Gathered<T> {
    /// For V with n rows, sums of each of the halves, and whether the gradients of x, V and b are wanted.
    pub fn carve(
        arena: &mut Arena,
        line: &Timeline<'_, T::Real>,
        n: usize,
        halves: usize,
        [x, weight, bias]: [bool; 3],
    ) -> Self {
        let (d, width) = (line.features, n * T::PARTS);
        let products = arena.take(&[usize::from(weight), halves, d, width]);
        let sums = arena.take(&[usize::from(bias), halves, width]);
        let [k, features] = if x { [n, d / T::PARTS] } else { [0; 2] };
        Gathered { input: Packed::new(arena, k, features), products, sums, halves }
    }

    /// Real numbers of scratch that a member needs to gather up to `rows` rows.
    pub fn scratch(line: &Timeline<'_, T::Real>, rows: usize) -> usize {
        Product::<T::Real>::scratch(line.features, rows)
    }
}

/// Gathers chunk after chunk.
pub struct Gatherer<'a, T: Scalar> {
    line: &'a Timeline<'a, T::Real>,
    gathered: &'a Gathered<T>,
    /// V with n rows.
    weight: Operand<T>,
    n: usize,
    x: Option<Shared<T>>,
    bars: [Option<Shared<T>>; 2],
}

// SAFETY: V is only read.
unsafe impl<T: Scalar> Sync for Gatherer<'_, T> {}

impl<'a, T: Scalar> Gatherer<'a, T> {
    /// For gradients that have passed their check.
    ///
    /// # Safety
    /// The memory lives, was cut for these gradients, and nobody else uses it; V lives too.
    pub unsafe fn new(
        line: &'a Timeline<'a, T::Real>,
        (weight, n): (Operand<T>, usize),
        gathered: &'a Gathered<T>,
        bars: InputBars<'a, T>,
    ) -> Self {
        for sums in [gathered.products, gathered.sums] {
            // SAFETY: the contract above.
            unsafe { sums.zeroed() };
        }
        let share = |bar: &mut [T]| Shared(bar.as_mut_ptr());
        let (x, bars) = (bars.x.map(share), [bars.weight.map(share), bars.bias.map(share)]);
        Gatherer { line, gathered, weight, n, x, bars }
    }

    /// Packs this member's part of conj(V); a barrier has to follow.
    pub fn pack(&self, member: &Member<'_>) {
        if self.x.is_some() {
            // SAFETY: V has n rows and d columns; all members pack it, and a barrier follows.
            unsafe { self.gathered.input.fill(self.weight.conj(), member) }
        }
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
        let Gathered { products, sums, halves, .. } = *self.gathered;
        let (member, rows, first) = (&chunk.half.gatherer, chunk.rows(chunk.steps), chunk.index == 0);
        let own = |sums: Region<T::Real>| sums.at(chunk.half.index * (sums.len() / halves));
        // SAFETY: the contract above; the members write different columns of the sums, and different rows of x_bar.
        unsafe {
            if !products.is_empty() {
                let (x, bar) = (Operand::new(x, d), Operand::new(bar, pitch));
                let product = Product::new((d, width, rows), x.t(), bar, own(products), width);
                let product = if first { product } else { product.add() };
                product.run(member, scratch);
            }
            if !sums.is_empty() {
                Columns {
                    bar,
                    along: None,
                    rows,
                    width: pitch,
                    sums: own(sums),
                    add: !first,
                    columns: member.share(width, lanes::<T::Real>()),
                }
                .call();
            }
            if let Some(x_bar) = self.x {
                self.inputs(x_bar.0.cast(), chunk, bar, pitch);
            }
        }
    }

    /// x_bar = U_bar conj(V) for this member's rows of the chunk.
    ///
    /// # Safety
    /// As [`Gatherer::gather`].
    unsafe fn inputs(&self, x_bar: *mut T::Real, chunk: &Chunk<'_>, bar: *const T::Real, pitch: usize) {
        let (d, Chunk { steps, half, .. }) = (self.line.features, chunk);
        let Schedule { batch, .. } = self.line.schedule;
        let (schedule, member) = (&self.line.schedule, &half.gatherer);
        // `count` rows of x_bar from row `to` on, from the row `from` of the chunk on
        let run = |to: usize, from: usize, count: usize| {
            let mut map = Affine::new(d, usize::MAX, x_bar.wrapping_add(to * d));
            map.terms[0] = self.gathered.input.times_apart(bar.wrapping_add(from * pitch), pitch);
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

    /// Writes the gathered gradients.
    ///
    /// # Safety
    /// Every chunk has been gathered by all members.
    pub unsafe fn finish(&self, member: &Member<'_>) {
        if member.id != 0 {
            return;
        }
        let Gathered { products, sums, halves, .. } = *self.gathered;
        let (n, features, width) = (self.n, self.line.features / T::PARTS, self.n * T::PARTS);
        // SAFETY: the sizes were checked, the sums were zeros at first; the other members are through with all of it.
        unsafe {
            halves_added(products, halves);
            halves_added(sums, halves);
            let [weight, bias] = self.bars;
            if let Some(bar) = weight {
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
            if let Some(bar) = bias {
                let sums = std::slice::from_raw_parts(sums.ptr(), width);
                parts_mut(std::slice::from_raw_parts_mut(bar.0, n)).copy_from_slice(sums);
            }
        }
    }
}

/// Adds the sums of the second half to those of the first, if there are two.
///
/// # Safety
/// They are complete, and nobody else uses them.
pub unsafe fn halves_added<R: Scalar>(sums: Region<R>, halves: usize) {
    let each = sums.len() / halves;
    // SAFETY: the contract above.
    unsafe { add_slots(sums.ptr(), halves, each, 0..each) }
}
