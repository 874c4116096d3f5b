//! Blocks of rows through all layers: a block stays in the first-level cache, or the second. Rows of a block
//! are separated by gaps: rows of 4096 bytes would share one set of the cache, and a store would delay the
//! load of the next row.

use super::Mesh;
use crate::rows::{MatrixBars, RowPass, RowPull, Rows};
use crate::scalar::Scalar;
use crate::side::Side;
use crate::sizes::work;
use isometry_kernels::mesh::{self, Pass, Table, Turn, TurnPull, Undo};

/// Bytes of the rows of a block: fewer rows expand the angles more often.
const BLOCK: usize = 1 << 15;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Rows of a block, with their source or target.
struct Block<T> {
    rows: usize,
    y: *mut T,
}

impl<T: Scalar> Mesh<'_, T> {
    /// Rows of a block, of at most `rows`, if each is held `copies` times.
    fn block(&self, rows: usize, copies: usize) -> usize {
        (BLOCK / (self.n * size_of::<T>() * copies)).clamp(4, 16).min(rows.max(1))
    }

    /// The distance of the rows of a block, in elements: an odd number of cache lines.
    fn pitch(&self) -> usize {
        let line = LINE / size_of::<T>();
        (self.n.div_ceil(line) | 1) * line
    }

    fn through(&self, k: usize, Block { y, rows }: &Block<T>) -> mesh::Rows<T> {
        let at = |i: usize| self.table.as_ptr().wrapping_add(i * self.theta.len() + k * self.pairs);
        let table = Table { sin: at(0), cos: at(1), re: at(2), im: at(3) };
        let (layers, count) = (self.layers.as_ptr(), self.layers.len());
        mesh::Rows { layers, count, table, y: *y, pitch: self.pitch(), rows: *rows }
    }

    /// d of mesh k; null where D is the identity.
    fn entries(&self, k: usize) -> *const T {
        if self.diagonal.is_empty() { std::ptr::null() } else { self.diagonal[k * self.n..].as_ptr() }
    }

    /// Rows of the caller into a block.
    ///
    /// # Safety
    /// The rows exist.
    unsafe fn take(&self, x: *const T, d: *const T, block: &Block<T>) {
        let (from, to) = ((x, self.n), (block.y, self.pitch()));
        // SAFETY: the contract above; D has n entries.
        unsafe { Turn { d, conj: true, from, to, n: self.n, rows: block.rows }.call() };
    }

    /// Rows of a block to the caller.
    ///
    /// # Safety
    /// The rows exist.
    unsafe fn give(&self, block: &Block<T>, d: *const T, out: *mut T) {
        let (from, to) = ((block.y.cast_const(), self.pitch()), (out, self.n));
        // SAFETY: the contract above; D has n entries.
        unsafe { Turn { d, conj: false, from, to, n: self.n, rows: block.rows }.call() };
    }
}

// SAFETY: layers have pairs within n elements and angles within those of a mesh, of which every mesh has as many; blocks fit in the
// scratch.
unsafe impl<T: Scalar> Rows<T> for Mesh<'_, T> {
    fn work(&self) -> usize {
        work(&[2, self.layers.len() + 1, self.n, T::PARTS])
    }

    /// A block of y, and one of its cotangent, or twice as many rows of y.
    fn scratch(&self, rows: usize) -> usize {
        work(&[self.block(rows, 1).max(2 * self.block(rows, 2)), self.pitch(), T::PARTS])
    }

    /// Of theta, and for a complex type of phi and the phases.
    fn sums(&self) -> usize {
        if T::PARTS == 1 { self.pairs } else { 2 * self.pairs + self.n }
    }

    unsafe fn apply_rows(&self, pass: RowPass, x: *const T, out: *mut T, scratch: *mut T::Real) {
        let RowPass { k, rows, side } = pass;
        let (n, adjoint, most) = (self.n, side == Side::Adjoint, self.block(rows, 1));
        let (none, d) = (std::ptr::null(), self.entries(k));
        for first in (0..rows).step_by(most) {
            let block = Block { y: scratch.cast(), rows: most.min(rows - first) };
            // SAFETY: the contract of the trait; a block fits in the scratch.
            unsafe {
                self.take(x.add(first * n), if adjoint { d } else { none }, &block);
                Pass { of: self.through(k, &block), adjoint }.call();
                self.give(&block, if adjoint { none } else { d }, out.add(first * n));
            }
        }
    }

    unsafe fn pull_rows(&self, pass: RowPass, pull: RowPull<T>, scratch: *mut T::Real) {
        let (RowPass { k, rows, side }, RowPull { x, ct, sums, x_bar }) = (pass, pull);
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged, and x_bar
        // is W ct, which is on the way.
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let (n, pairs, pitch, most) = (self.n, self.pairs, self.pitch(), self.block(rows, 2));
        let (none, d, y) = (std::ptr::null(), self.entries(k), scratch.cast::<T>());
        let (g, phi_bar, phases_bar) =
            (y.wrapping_add(most * pitch), sums.wrapping_add(pairs), sums.wrapping_add(2 * pairs));
        for first in (0..rows).step_by(most) {
            let block = Block { y, rows: most.min(rows - first) };
            let Block { rows, .. } = block;
            let cotangent = Block { y: g, rows };
            let (at, x_bar) = (first * n, x_bar.map(|x_bar| x_bar.wrapping_add(first * n)));
            // SAFETY: the contract of the trait; two blocks fit in the scratch.
            unsafe {
                self.take(x.add(at), none, &block);
                Pass { of: self.through(k, &block), adjoint: false }.call();
                if let Some(out) = x_bar.filter(|_| side == Side::Adjoint) {
                    self.give(&block, d, out);
                }
                self.take(ct.add(at), none, &cotangent);
                if !d.is_null() {
                    let sums = if T::PARTS == 2 { phases_bar } else { std::ptr::null_mut() };
                    TurnPull { d, y, g, pitch, n, rows, sums }.call();
                }
                Undo { of: self.through(k, &block), g, theta_bar: sums, phi_bar }.call();
                if let Some(out) = x_bar.filter(|_| side == Side::Forward) {
                    self.give(&cotangent, none, out);
                }
            }
        }
    }

    unsafe fn deal(&self, _: usize, sums: &mut [T::Real], mut bars: MatrixBars<'_, T>, _: *mut T::Real) {
        for (i, at, len) in [(1, 0, self.pairs), (2, self.pairs, self.pairs), (3, 2 * self.pairs, self.n)] {
            if let Some(bar) = bars.real(i) {
                bar.copy_from_slice(&sums[at..at + len]);
            }
        }
    }
}
