//! The settings of a rotational unit, checked, and its memory.

use super::MEMORY;
use crate::Array;
use crate::cell::{Cell, Pass, of};
use crate::device::Record;
use crate::product::{Base, Operand, Product};
use isometry_core::internal::sizes::work;
use isometry_core::{Error, Result};

/// `SIDE` of memory.wgsl: rows of a memory for each workgroup.
const ROWS: usize = 16;
/// `PLACES` of rum.wgsl.
const PLACES: usize = 8;

/// eta, 0 without; it is a length, and a memory before the first step belongs to a memory.
pub(crate) fn setting(cell: &Cell<'_>) -> Result<u32> {
    let eta = cell.settings.get(1).copied().filter(|eta| !eta.is_nan()).map(|eta| eta as f32);
    if eta.is_some_and(|eta| !eta.is_normal() || eta < 0.0) {
        return Err(Error::value("eta", "must be a positive number of single precision"));
    }
    if cell.some("r0").is_some() && !cell.flag(0) {
        return Err(Error::value("r0", "belongs to a memory only"));
    }
    Ok(eta.map_or(0, f32::to_bits))
}

/// A unit and its memory.
pub(super) struct Setting<'a> {
    pub cell: &'a Cell<'a>,
    pub memory: bool,
    normalised: bool,
}

impl<'a> Setting<'a> {
    pub fn new(cell: &'a Cell<'a>) -> Self {
        let normalised = cell.settings.get(1).is_some_and(|eta| !eta.is_nan());
        Setting { cell, memory: cell.flag(0), normalised }
    }

    /// Numbers of a frame in a forward pass.
    pub fn frame(&self) -> usize {
        PLACES + 3 * self.cell.n
    }

    /// Numbers of a frame in a backward pass.
    pub fn wide_frame(&self) -> usize {
        PLACES + (6 + usize::from(self.normalised)) * self.cell.n
    }

    /// Workgroups of a memory.
    pub fn blocks(&self) -> usize {
        self.cell.n.div_ceil(ROWS)
    }

    /// R before the first step.
    pub fn start(&self, record: &mut Record<'_>) -> Result<Array> {
        let &Cell { batch, n, .. } = self.cell;
        let memory = self.cell.room(&[batch, n, n])?;
        match self.cell.some("r0") {
            Some(r0) => record.copy(r0, &memory)?,
            None => {
                let nothing = of(self.cell.array("x")?, 0);
                Product::new(batch, (n, n, 0), nothing, nothing, Operand::new(&memory, n * n, n))
                    .plus(Base::Identity(0, 0))
                    .record(record, self.cell.field)?;
            }
        }
        Ok(memory)
    }

    /// R <- R Q of some steps from k on, and R h, with frames of all steps or of one.
    pub fn turn(
        &self,
        record: &mut Record<'_>,
        (k, steps): (usize, usize),
        (frames, pitch, all): (&Array, usize, bool),
        memory: &Array,
        heard: &Array,
    ) -> Result<()> {
        let arrays = [("frames", frames), ("memory", memory), ("heard", heard)];
        let work = work(&[steps, self.cell.batch, self.cell.n, self.cell.n, 5]);
        let pass = Pass { count: steps, k, pitch, flag: all, work, ..Pass::default() };
        self.cell.run_groups(record, &MEMORY, &arrays, self.cell.batch * self.blocks(), pass)
    }
}
