//! Products of matrices, C = alpha op(A) op(B) + base, a batch in one dispatch.

mod deep;
#[cfg(test)]
mod tests;

pub(crate) use deep::record_sum;

use crate::device::{Record, WORK, too_large};
use crate::shader::{Variant, shaders};
use crate::{Array, Field};
use isometry_core::internal::sizes::work;
use isometry_core::{Error, Result};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Tiles of 16 x 16 numbers, of 32 x 32, 2 x 2 for each thread, and of 64 x 64, 4 x 4.
const SMALL: &[(&str, u32)] = &[("SIDE", 16), ("EACH", 1)];
const MIDDLE: &[(&str, u32)] = &[("SIDE", 16), ("EACH", 2)];
const LARGE: &[(&str, u32)] = &[("SIDE", 16), ("EACH", 4)];

shaders! {
    PRODUCT "product" "product.wgsl" &[SMALL, MIDDLE, LARGE],
}

/// The side that [`choose_tiles`] has chosen; 0: that which fits.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Makes all products use tiles of this side, 16, 32 or 64, to compare their times; None: those that fit.
pub fn choose_tiles(side: Option<usize>) -> Result<()> {
    match side {
        None | Some(16 | 32 | 64) => CHOSEN.store(side.unwrap_or(0), Relaxed),
        Some(other) => return Err(Error::value("side", format!("must be 16, 32 or 64, got {other}"))),
    }
    Ok(())
}

/// The side of the tiles of m x n numbers of a batch, with the constants of the shader: the largest of which there are enough to
/// occupy a device.
fn tiles(batch: usize, m: usize, n: usize) -> (usize, &'static [(&'static str, u32)]) {
    let fits = |side: usize| m.div_ceil(side) * n.div_ceil(side) * batch >= 64 && m > 16 && n > 16;
    let side = match CHOSEN.load(Relaxed) {
        0 => [64, 32].into_iter().find(|&side| fits(side)).unwrap_or(16),
        side => side,
    };
    (side, PRODUCT.variants[side.ilog2() as usize - 4])
}

/// A matrix, or a batch of them, inside an array: its element (i, j) is at first + b batch + i row + j column.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    array: &'a Array,
    first: usize,
    batch: usize,
    row: usize,
    column: usize,
    conj: bool,
}

impl<'a> Operand<'a> {
    /// Row-major matrices of `columns` columns, `batch` numbers apart (0: the same for the whole batch).
    pub fn new(array: &'a Array, batch: usize, columns: usize) -> Self {
        Operand { array, first: 0, batch, row: columns, column: 1, conj: false }
    }

    /// One row for all rows.
    pub fn row(array: &'a Array) -> Self {
        Operand::new(array, 0, 0)
    }

    /// The part that begins at (i, j).
    pub fn from(self, i: usize, j: usize) -> Self {
        Operand { first: self.first + i * self.row + j * self.column, ..self }
    }

    /// The matrices from number b of the batch on.
    pub(crate) fn later(self, b: usize) -> Self {
        Operand { first: self.first + b * self.batch, ..self }
    }

    /// The transposes.
    pub fn t(self) -> Self {
        Operand { row: self.column, column: self.row, ..self }
    }

    /// The conjugates.
    pub fn conj(self) -> Self {
        Operand { conj: !self.conj, ..self }
    }

    /// The adjoints.
    pub fn h(self) -> Self {
        self.t().conj()
    }

    fn sizes(&self) -> Result<[u32; 5]> {
        let [first, batch, row, column] = [self.first, self.batch, self.row, self.column].map(u32::try_from);
        Ok([
            first.map_err(far)?,
            batch.map_err(far)?,
            row.map_err(far)?,
            column.map_err(far)?,
            u32::from(self.conj),
        ])
    }
}

fn far<E>(_: E) -> Error {
    too_large("a matrix is too large for the indices of the device, 32 bits")
}

/// What is added to a product.
#[derive(Clone, Copy, Debug)]
pub enum Base<'a> {
    /// Nothing.
    Nothing,
    /// What C holds.
    Own,
    /// An array in other memory than C.
    Array(Operand<'a>),
    /// I, from this entry on.
    Identity(usize, usize),
}

/// C = alpha A B + base.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Matrices.
    pub batch: usize,
    /// (m, n, k): C is m x n, A has k columns.
    pub sizes: (usize, usize, usize),
    /// A
    pub a: Operand<'a>,
    /// B
    pub b: Operand<'a>,
    /// C; not conjugated, and in other memory than A and B.
    pub c: Operand<'a>,
    /// alpha
    pub alpha: f32,
    /// C is read where it is [`Base::Own`] only.
    pub base: Base<'a>,
    /// Of a batch over parts of the depth, k numbers each: the whole depth.
    split: Option<usize>,
}

impl<'a> Product<'a> {
    /// C = A B.
    pub fn new(
        batch: usize,
        sizes: (usize, usize, usize),
        a: Operand<'a>,
        b: Operand<'a>,
        c: Operand<'a>,
    ) -> Self {
        Product { batch, sizes, a, b, c, alpha: 1.0, base: Base::Nothing, split: None }
    }

    /// The same with this alpha.
    pub fn alpha(self, alpha: f32) -> Self {
        Product { alpha, ..self }
    }

    /// The same, added to C.
    pub fn add(self) -> Self {
        self.plus(Base::Own)
    }

    /// The same, added to this.
    pub fn plus(self, base: Base<'a>) -> Self {
        Product { base, ..self }
    }

    /// In as many dispatches as the device needs for this many tiles and matrices, each of at most [`WORK`] multiply-adds where one row
    /// of tiles has no more.
    pub(crate) fn record(&self, record: &mut Record<'_>, field: Field) -> Result<()> {
        let (m, n, k) = self.sizes;
        if u32::try_from(work(&[self.batch, m, n])).map_err(far)? == 0 {
            return Ok(());
        }
        let (tile, constants) = tiles(self.batch, m, n);
        let variant = Variant { shader: &PRODUCT, field, constants };
        let most = record.context().most_groups() as usize;
        let row = work(&[n.min(most * tile), k, field.parts(), field.parts()]).max(1);
        let rows = (WORK / row / tile).clamp(1, most) * tile;
        let matrices = (WORK / work(&[row, m.min(rows)])).clamp(1, most);
        for b in (0..self.batch).step_by(matrices) {
            for i in (0..m).step_by(rows) {
                for j in (0..n).step_by(most * tile) {
                    let part = (matrices.min(self.batch - b), rows.min(m - i), (most * tile).min(n - j));
                    self.part((b, i, j), part).dispatch(record, variant, tile)?;
                }
            }
        }
        Ok(())
    }

    /// The m x n numbers of C from (i, j) on, of `batch` matrices from number b on.
    fn part(
        &self,
        (first, i, j): (usize, usize, usize),
        (batch, m, n): (usize, usize, usize),
    ) -> Product<'a> {
        let Product { sizes: (_, _, k), a, b, c, .. } = *self;
        let (a, b) = (a.later(first).from(i, 0), b.later(first).from(0, j));
        let base = match self.base {
            Base::Array(d) => Base::Array(d.later(first).from(i, j)),
            Base::Identity(row, column) => Base::Identity(row + i, column + j),
            base => base,
        };
        // of parts of the depth the first has the base
        let base = if self.split.is_some() && first > 0 { Base::Nothing } else { base };
        let split = self.split.map(|depth| depth - first * k);
        Product { batch, sizes: (m, n, k), a, b, c: c.later(first).from(i, j), base, split, ..*self }
    }

    fn dispatch(&self, record: &mut Record<'_>, variant: Variant, tile: usize) -> Result<()> {
        let (m, n, k) = self.sizes;
        let [m32, n32, k32, split] = [m, n, k, self.split.unwrap_or(0)].map(|size| size as u32);
        let none = Operand { first: 0, batch: 0, row: 0, column: 0, conj: false, ..self.a };
        let (base, d) = match self.base {
            Base::Nothing => (0, none),
            Base::Own => (1, none),
            Base::Array(d) => (2, d),
            Base::Identity(row, column) => (3, Operand { row, column, ..none }),
        };
        let each = work(&[self.batch, m, n, k, variant.field.parts(), variant.field.parts()]);
        let mut sizes = vec![m32, n32, k32, self.alpha.to_bits(), split, base];
        for operand in [&self.a, &self.b, &self.c, &d] {
            sizes.extend(operand.sizes()?);
        }
        let arrays = [("a", self.a.array), ("b", self.b.array), ("c", self.c.array), ("d", d.array)];
        record.dispatches(variant, &arrays, [sizes], [n.div_ceil(tile), m.div_ceil(tile), self.batch], each)
    }
}
