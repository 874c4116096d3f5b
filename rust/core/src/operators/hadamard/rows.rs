//! Rows through the factors: a row stays in the first-level cache. All numbers of an element have the same factor, and every
//! round has a table of its factors, signs times n^{-1/2}.

use super::Hadamard;
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::hadamard::{Butterflies, Factors, FactorsPull, table_len};
use isometry_kernels::kronecker::Small;
use num_traits::{One, Zero};
use std::ptr::{null, null_mut};

/// Bytes of the rows that pass through all rounds together.
const BLOCK: usize = 1 << 14;

impl<T: Scalar> Hadamard<'_, T> {
    /// Numbers of a row.
    fn len(&self) -> usize {
        self.order.n * T::PARTS
    }

    /// The factors of round j, of which the scratch has those of all rounds first.
    fn table(&self, scratch: *mut T::Real, j: usize) -> *mut T::Real {
        scratch.wrapping_add(j * table_len(self.len()))
    }

    /// The i-th row of the scratch behind the tables.
    fn room(&self, scratch: *mut T::Real, i: usize) -> *mut T::Real {
        self.table(scratch, self.rounds).wrapping_add(i * self.len())
    }

    /// out <- H (factors x) with entries +-1, or H^T; without a table the factors are `scale`.
    ///
    /// # Safety
    /// x and out have these rows, and are the same or do not overlap; `room` has a row.
    unsafe fn round(
        &self,
        side: Side,
        (x, rows): (*const T::Real, usize),
        (table, scale): (*const T::Real, T::Real),
        out: *mut T::Real,
        room: *mut T::Real,
    ) {
        let (p, levels, len) = (self.order.p, self.order.levels, self.len());
        let unit = p * T::PARTS;
        // SAFETY: the contract above; a row has 2^levels blocks of p elements, and there are two matrices of p^2.
        unsafe {
            if p == 1 {
                let room = if self.streamed { room } else { null_mut() };
                return Butterflies { unit, levels, rows, x, table, scale, out, room }.call();
            }
            let b = if side == Side::Forward { self.block.as_ptr() } else { self.block.as_ptr().add(p * p) };
            let sizes = (1 << levels, p, p);
            for row in 0..rows {
                let (x, none) = (x.add(row * len), null_mut());
                Butterflies { unit, levels, rows: 1, x, table, scale, out: room, room: none }.call();
                let (a, c) = (room.cast_const().cast::<T>(), out.add(row * len).cast::<T>());
                Small { count: 1, sizes, a, b, c, steps: [0; 3] }.call();
            }
        }
    }

    /// z_i = H D_i z_{i-1}, i = 1, ..., rounds, where z_0 = x: the last one to `out` if there is one, the others to the scratch.
    ///
    /// # Safety
    /// x and `out` have a row, apart from each other; the tables are loaded.
    unsafe fn states(&self, x: *const T::Real, out: Option<*mut T::Real>, scratch: *mut T::Real) {
        let one = T::Real::one();
        for j in 0..self.rounds {
            let to = if j + 1 < self.rounds { Some(self.room(scratch, 2 + j)) } else { out };
            if let Some(to) = to {
                let (from, table) = (self.state(x, j, scratch), self.table(scratch, j));
                // SAFETY: the contract above; the scratch has a row for every state but the last.
                unsafe { self.round(Side::Forward, (from, 1), (table, one), to, self.room(scratch, 0)) };
            }
        }
    }

    /// z_j, j < rounds.
    fn state(&self, x: *const T::Real, j: usize, scratch: *mut T::Real) -> *const T::Real {
        if j == 0 { x } else { self.room(scratch, 1 + j) }
    }
}

// SAFETY: the sizes are fixed, and every matrix has as many signs; the tables, two rows and a row for every state but the first and
// the last fit in the scratch.
unsafe impl<T: Scalar> Rows<T> for Hadamard<'_, T> {
    /// A level is an addition, of which a vector takes fewer instructions than of multiply-adds with loads.
    fn work(&self) -> usize {
        let p = if self.order.p == 1 { 0 } else { self.order.p * T::PARTS };
        work(&[self.rounds, self.len(), self.order.levels as usize / 2 + 1 + p])
    }

    fn scratch(&self, _rows: usize) -> usize {
        let tables = work(&[self.rounds, table_len(self.len())]);
        work(&[self.rounds.saturating_add(2), self.len()]).saturating_add(tables)
    }

    fn sums(&self) -> usize {
        work(&[self.rounds, self.len()])
    }

    unsafe fn load(&self, k: usize, scratch: *mut T::Real) {
        let (n, len) = (self.order.n, self.len());
        let Some(signs) = self.signs else { return };
        for (j, signs) in signs[k * self.rounds * n..(k + 1) * self.rounds * n].chunks_exact(n).enumerate() {
            let table = self.table(scratch, j);
            // SAFETY: the scratch has the tables.
            unsafe {
                for (i, &sign) in signs.iter().enumerate() {
                    (0..T::PARTS).for_each(|part| *table.add(i * T::PARTS + part) = self.scale * sign);
                }
                (len..table_len(len)).for_each(|i| *table.add(i) = *table.add(i - len));
            }
        }
    }

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real) {
        let RowPass { rows, side, .. } = pass;
        let (len, one) = (self.len(), T::Real::one());
        let most = if self.signs.is_none() { rows } else { (BLOCK / (self.order.n * size_of::<T>())).max(1) };
        for first in (0..rows).step_by(most) {
            let (x, out) = (x.wrapping_add(first * self.order.n), out.wrapping_add(first * self.order.n));
            let (mut from, to, rows) = (x.cast(), out.cast(), most.min(rows - first));
            for i in 0..self.rounds {
                // W^T = D_1 H^T D_2 ... H^T D_k H^T
                let factors = match (self.signs.is_some(), side) {
                    (false, _) => (null(), self.scale),
                    (true, Side::Forward) => (self.table(scratch, i).cast_const(), one),
                    (true, Side::Adjoint) if i == 0 => (null(), one),
                    (true, Side::Adjoint) => (self.table(scratch, self.rounds - i).cast_const(), one),
                };
                // SAFETY: the contract of the trait.
                unsafe { self.round(side, (from, rows), factors, to, self.room(scratch, 0)) };
                from = to.cast_const();
            }
            // SAFETY: the contract of the trait.
            unsafe {
                if self.rounds == 0 {
                    to.copy_from_nonoverlapping(from, rows * len);
                } else if side == Side::Adjoint && self.signs.is_some() {
                    Factors { len, rows, x: from, table: self.table(scratch, 0), out: to }.call();
                }
            }
        }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
        let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        let (n, len, one) = (self.order.n, self.len(), T::Real::one());
        // Re <ct, W^T x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged, and x_bar
        // is W ct, the last state.
        let (z, g) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        if let Some(x_bar) = x_bar.filter(|_| self.rounds == 0) {
            // SAFETY: the contract of the trait.
            unsafe { self.apply_rows(RowPass { k, rows, side: side.other() }, ct, x_bar, scratch) };
        }
        for row in 0..rows {
            let (x, g) = (z.wrapping_add(row * n).cast(), g.wrapping_add(row * n).cast());
            let own: Option<*mut T::Real> = x_bar.map(|x_bar| x_bar.wrapping_add(row * n).cast());
            let last = own.filter(|_| side == Side::Adjoint);
            let to = own.filter(|_| side == Side::Forward).unwrap_or(self.room(scratch, 1));
            // SAFETY: the contract of the trait; the sums have a row for every round.
            unsafe {
                self.states(x, last, scratch);
                let mut from = g;
                for j in (0..self.rounds).rev() {
                    self.round(Side::Adjoint, (from, 1), (null(), one), to, self.room(scratch, 0));
                    let (z, table) = (self.state(x, j, scratch), self.table(scratch, j));
                    FactorsPull { len, z, g: to, table, sums: sums.add(j * len) }.call();
                    from = to.cast_const();
                }
            }
        }
    }

    unsafe fn deal(&self, _: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _: *mut T::Real) {
        if let Some(bar) = bars.real(0) {
            for (bar, parts) in bar.iter_mut().zip(sums.chunks_exact(T::PARTS)) {
                *bar = self.scale * parts.iter().fold(T::Real::zero(), |sum, part| sum + *part);
            }
        }
    }
}
