//! Blocks of rows through all layers: a block stays in the first-level cache, or the second.

use super::Mesh;
use crate::argument::Bar;
use crate::operator::Side;
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::sizes::work;
use isometry_kernels::mesh::{self, Pass, Table, Turn, TurnPull, Undo};

/// Bytes of the rows of a block: fewer rows expand the angles more often.
const BLOCK: usize = 1 << 15;

impl<T: Scalar> Mesh<'_, T> {
    /// Rows of a block, of at most `rows`, if each is held `copies` times.
    fn block(&self, rows: usize, copies: usize) -> usize {
        (BLOCK / (self.n * size_of::<T>() * copies)).clamp(4, 16).min(rows.max(1))
    }

    fn rows(&self, y: *mut T, rows: usize) -> mesh::Rows<T> {
        let (pairs, at) =
            (self.theta.len(), |i: usize| self.table.as_ptr().wrapping_add(i * self.theta.len()));
        debug_assert!(self.table.len() == 2 * T::PARTS * pairs);
        let table = Table { sin: at(0), cos: at(1), re: at(2), im: at(3) };
        mesh::Rows { layers: self.layers.as_ptr(), count: self.layers.len(), table, y, n: self.n, rows }
    }

    /// y <- D y, or D^H y.
    ///
    /// # Safety
    /// The rows exist.
    unsafe fn turn(&self, y: *mut T, rows: usize, conj: bool) {
        if !self.diagonal.is_empty() {
            // SAFETY: the contract above; D has n entries.
            unsafe { Turn { d: self.diagonal.as_ptr(), conj, y, n: self.n, rows }.call() };
        }
    }
}

impl<T: Scalar> Rows<T> for Mesh<'_, T> {
    fn size(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn work(&self) -> usize {
        work(&[2, self.layers.len() + 1, self.n, T::PARTS])
    }

    /// A block of y, and one of its cotangent.
    fn scratch(&self, rows: usize) -> usize {
        work(&[2, self.block(rows, 2), self.n, T::PARTS])
    }

    /// Of theta, and for a complex type of phi and the phases.
    fn sums(&self) -> usize {
        if T::PARTS == 1 { self.theta.len() } else { 2 * self.theta.len() + self.n }
    }

    fn deal(&self, sums: &[T::Real], bars: &mut [Bar<'_, T>]) {
        let pairs = self.theta.len();
        for (i, at, len) in [(1, 0, pairs), (2, pairs, pairs), (3, 2 * pairs, self.n)] {
            if let Some(Bar::Real(bar)) = bars.get_mut(i) {
                bar.copy_from_slice(&sums[at..at + len]);
            }
        }
    }

    unsafe fn apply_rows(&self, x: *const T, rows: usize, side: Side, out: *mut T, _scratch: *mut T::Real) {
        let (n, adjoint, block) = (self.n, side == Side::Adjoint, self.block(rows, 1));
        for first in (0..rows).step_by(block) {
            let (y, rows) = (out.wrapping_add(first * n), block.min(rows - first));
            // SAFETY: the contract of the trait.
            unsafe {
                std::ptr::copy_nonoverlapping(x.add(first * n), y, rows * n);
                if adjoint {
                    self.turn(y, rows, true);
                }
                Pass { of: self.rows(y, rows), adjoint }.call();
                if !adjoint {
                    self.turn(y, rows, false);
                }
            }
        }
    }

    unsafe fn pull_rows(
        &self,
        x: *const T,
        ct: *const T,
        rows: usize,
        side: Side,
        sums: *mut T::Real,
        x_bar: Option<*mut T>,
        scratch: *mut T::Real,
    ) {
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged, and x_bar
        // is what comes out of it.
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let (n, pairs, block) = (self.n, self.theta.len(), self.block(rows, 2));
        let (y, own) = (scratch.cast::<T>(), scratch.cast::<T>().wrapping_add(block * n));
        let (phi_bar, phases_bar) = (sums.wrapping_add(pairs), sums.wrapping_add(2 * pairs));
        for first in (0..rows).step_by(block) {
            let (at, rows) = (first * n, block.min(rows - first));
            let to = x_bar.map(|x_bar| x_bar.wrapping_add(at));
            let g = to.filter(|_| side == Side::Forward).unwrap_or(own);
            // SAFETY: the contract of the trait; a block fits in the scratch twice.
            unsafe {
                std::ptr::copy_nonoverlapping(x.add(at), y, rows * n);
                std::ptr::copy_nonoverlapping(ct.add(at), g, rows * n);
                Pass { of: self.rows(y, rows), adjoint: false }.call();
                if let Some(to) = to.filter(|_| side == Side::Adjoint) {
                    std::ptr::copy_nonoverlapping(y, to, rows * n);
                    self.turn(to, rows, false);
                }
                if !self.diagonal.is_empty() {
                    let sums = if T::PARTS == 2 { phases_bar } else { std::ptr::null_mut() };
                    TurnPull { d: self.diagonal.as_ptr(), y, g, n, rows, sums }.call();
                }
                Undo { of: self.rows(y, rows), g, theta_bar: sums, phi_bar }.call();
            }
        }
    }
}
