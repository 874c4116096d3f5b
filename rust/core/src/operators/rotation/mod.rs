//! The rotation R(a, b) of the direction of a to that of b, in their plane: with ah = a / ||a||, bh = b / ||b||, w = ah + bh
//! normalised,
//!
//! ```text
//! R = H(w) H(ah),      R ah = bh,      R(b, a) = R(a, b)^T,      det R = 1.
//! ```
//!
//! O(n) per row. Degenerate pairs and the gradient stand beside the loops, in [`isometry_kernels::rotation`]. A complex row is two
//! real ones, since R is real.

mod rows;
#[cfg(test)]
mod tests;

use crate::argument;
use crate::argument::{Argument, Array, Bar, Given, all};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::{Cpu, Operator, Saves, Side};
use crate::parallel::{self, Shared};
use crate::recurrence::{Route, Transition};
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::scratch::{Scratch, most};
use crate::sizes::{check_len, size, work};
use isometry_kernels::rotation::frame_len;

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[argument!("start", "n", real), argument!("end", "n", real)];

/// Slots at most that the gradient of one pair is summed in.
const SLOTS: usize = 16;
/// Rows of a slot, if there are enough. Tests have many slots.
const BLOCK: usize = if cfg!(test) { 2 } else { 16 };

/// Rotations of one direction to another.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a, T: Scalar> {
    start: &'a [T::Real],
    end: &'a [T::Real],
    batch: usize,
    n: usize,
}

impl<'a, T: Scalar> Rotation<'a, T> {
    /// A view of vectors (batch, n).
    pub fn new(start: &'a [T::Real], end: &'a [T::Real], batch: usize, n: usize) -> Result<Self> {
        check_len("start", start.len(), &[batch, n])?;
        check_len("end", end.len(), &[batch, n])?;
        size("out", &[batch, n, n])?;
        Ok(Rotation { start, end, batch, n })
    }

    /// A view of [`ARGUMENTS`].
    pub fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [start, end] = all(given)?;
        let [batch, n] = start.sizes("start")?;
        end.sizes::<2>("end")?;
        let real = |given: &Given<'a, T>, name| given.real().ok_or(Error::value(name, "must be given, real"));
        Self::new(real(start, "start")?, real(end, "end")?, batch, n)
    }

    /// Threads that are worth their start for `passes` over so many rows of every pair.
    fn threads(&self, rows: usize, passes: usize, budget: &Budget<'_>) -> usize {
        let units = work(&[self.batch, rows]);
        parallel::worth(most(budget.threads), work(&[passes, units, self.work()])).min(units.max(1))
    }

    /// R x or R^T x; `x` None stands for the rows that `out` holds.
    fn turn(&self, x: Option<&[T]>, rows: usize, side: Side, out: Shared<T>, budget: &Budget<'_>) -> Result<()> {
        let (n, threads) = (self.n, self.threads(rows, 1, budget));
        let room = Scratch::new(|arena| arena.regions::<T::Real>(threads, &[self.room()]))?;
        parallel::run(threads, &|member| {
            let (mine, frame) = (member.share(self.batch * rows, 1), room.of(member.id).ptr());
            let mut at = mine.start;
            while at < mine.end {
                let count = (rows - at % rows).min(mine.end - at);
                let to = out.at(at * n);
                let from = x.map_or(to.cast_const(), |x| x[at * n..].as_ptr());
                // SAFETY: the arrays have these rows; the members write different ones, each with scratch of its own.
                unsafe {
                    self.frame(at / rows, frame);
                    self.turn_rows(frame, from, count, side, to, frame.add(frame_len(n)));
                }
                at += count;
            }
        });
        Ok(())
    }

    /// The gradients from x (rows of every pair, or with `shared` the same for all) and ct.
    fn pull(
        &self,
        (x, ct, shared): (&[T], &[T], bool),
        rows: usize,
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        let n = self.n;
        let block = rows.div_ceil(SLOTS).max(BLOCK);
        let slots = rows.div_ceil(block).max(1);
        let threads = self.threads(rows, 3, budget).min(self.batch * slots).max(1);
        let mut bars: Vec<_> = bars.iter_mut().map(|bar| bar.again().real().map(|b| Shared(b.as_mut_ptr()))).collect();
        bars.resize_with(2, || None);
        let bar = |i: usize, b: usize| bars[i].as_ref().map_or(std::ptr::null_mut(), |bar| bar.at(b * n));
        let wanted = bars.iter().any(Option::is_some);
        let x_bar = x_bar.map(|x_bar| Shared(x_bar.as_mut_ptr()));
        let room = Scratch::new(|arena| arena.regions::<T::Real>(threads, &[self.room()]))?;
        // Each slot has sums of its own, which are added in order: the result does not depend on the threads.
        let mut sums = Buffer::<T::Real>::zeroed(if wanted { work(&[self.batch, slots, 2, n]) } else { 0 })?;
        let own = Shared(sums.as_mut_ptr());
        parallel::run(threads, &|member| {
            let frame = room.of(member.id).ptr();
            for unit in member.share(self.batch * slots, 1) {
                let (b, row) = (unit / slots, unit % slots * block);
                let (count, at) = (block.min(rows - row), b * rows + row);
                let x = x[if shared { row } else { at } * n..].as_ptr();
                let sums = if wanted { own.at(unit * 2 * n) } else { std::ptr::null_mut() };
                let x_bar = x_bar.as_ref().map_or(std::ptr::null_mut(), |x_bar| x_bar.at(at * n));
                // SAFETY: the arrays have these rows; the members write different slots and rows, with scratch of their own.
                unsafe {
                    self.frame(b, frame);
                    let ct = ct[at * n..].as_ptr();
                    self.pull_turned(frame, (x, ct), count, side, sums, x_bar, frame.add(frame_len(n)));
                    if wanted && slots == 1 {
                        self.vectors(frame, sums, [bar(0, b), bar(1, b)]);
                    }
                }
            }
        });
        if wanted && slots > 1 {
            let frame = room.of(0).ptr();
            for (b, all) in sums.chunks_exact_mut(slots * 2 * n).enumerate() {
                let (first, others) = all.split_at_mut(2 * n);
                for slot in others.chunks_exact(2 * n) {
                    first.iter_mut().zip(slot).for_each(|(sum, x)| *sum += *x);
                }
                // SAFETY: the gradients have a row for every pair; nobody else writes now.
                unsafe {
                    self.frame(b, frame);
                    self.vectors(frame, first.as_mut_ptr(), [bar(0, b), bar(1, b)]);
                }
            }
        }
        Ok(())
    }
}

impl<T: Scalar> Operator<T> for Rotation<'_, T> {
    fn batch(&self) -> usize {
        self.batch
    }
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        Array::Real(if i == 0 { self.start } else { self.end })
    }
}

impl<T: Scalar> Cpu<T> for Rotation<'_, T> {
    /// Row i of R is R^T e_i.
    fn matrix(&self, out: &mut [T], _saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        let n = self.n;
        out.fill(T::zero());
        for matrix in out.chunks_exact_mut((n * n).max(1)) {
            matrix.iter_mut().step_by(n + 1).for_each(|x| *x = T::one());
        }
        self.turn(None, n, Side::Adjoint, Shared(out.as_mut_ptr()), budget)
    }

    /// Through the rows of the identity.
    fn matrix_vjp(
        &self,
        _saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_bars(bars)?;
        let n = self.n;
        let mut identity = Buffer::<T>::zeroed(work(&[n, n]))?;
        identity.iter_mut().step_by(n + 1).for_each(|x| *x = T::one());
        self.pull((&identity, ct, true), n, Side::Adjoint, bars, None, budget)
    }

    fn transition(&self) -> Option<Transition<'_, T>> {
        Some(Transition::Rows(self))
    }

    fn route(&self, _steps: usize, _batch: usize) -> Route {
        Route::Factored
    }

    fn apply_saves(&self, _rows: usize, _side: Side) -> Result<Saves> {
        Ok(Saves::Elements(0))
    }

    fn apply(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        self.check_saved(saved.as_deref(), Ok(Saves::Elements(0)))?;
        self.turn(Some(x), rows, side, Shared(out.as_mut_ptr()), budget)
    }

    fn apply_vjp(
        &self,
        saved: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_pull(x, ct, rows, side, x_bar.as_deref())?;
        self.check_saved(saved, Ok(Saves::Elements(0)))?;
        self.check_bars(bars)?;
        self.pull((x, ct, false), rows, side, bars, x_bar, budget)
    }
}
