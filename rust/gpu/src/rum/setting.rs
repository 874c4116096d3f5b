//! The arguments of a rotational unit, checked.

use super::{MEMORY, Rotational};
use crate::cell::{Cell, Form, Pass, of};
use crate::device::Record;
use crate::product::{Base, Operand, Product};
use crate::recurrence::sequence::checked;
use crate::{Array, Field};
use isometry_core::{Error, Result};

const FORM: Form = Form { w: 2, u: 3, state: 1, most: 7 };
/// `SIDE` of memory.wgsl: rows of a memory for each workgroup.
const ROWS: usize = 16;
/// `PLACES` of rum.wgsl.
const PLACES: usize = 8;

/// A checked unit on its device.
pub(super) struct Setting<'a> {
    pub cell: Cell<'a>,
    pub memory: bool,
    r0: Option<&'a Array>,
    normalised: bool,
}

impl<'a> Setting<'a> {
    pub fn new(rum: &Rotational<'a>) -> Result<Self> {
        let Rotational { arguments, memory, r0, eta } = *rum;
        if eta.is_some_and(|eta| !eta.is_normal() || eta < 0.0) {
            return Err(Error::value("eta", "must be a positive number of single precision"));
        }
        let cell = Cell::new(&arguments, FORM, eta.map_or(0, f32::to_bits))?;
        let setting = Setting { cell, memory, r0, normalised: eta.is_some() };
        r0.map_or(Ok(()), |r0| setting.check_memory("r0", r0))?;
        Ok(setting)
    }

    /// Refuses memories of another size, or without a memory.
    pub fn check_memory(&self, name: &'static str, array: &Array) -> Result<()> {
        let Cell { batch, n, .. } = self.cell;
        if !self.memory {
            return Err(Error::value(name, "belongs to a memory only"));
        }
        checked(name, self.cell.arguments.x, array, &[batch, n, n])
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
    pub fn start(&self, record: &mut Record) -> Result<Array> {
        let Cell { batch, n, .. } = self.cell;
        let memory = self.cell.room(&[batch, n, n])?;
        match self.r0 {
            Some(r0) => record.copy(r0, &memory)?,
            None => {
                let nothing = of(self.cell.arguments.x, 0);
                Product::new(batch, (n, n, 0), nothing, nothing, Operand::new(&memory, n * n, n))
                    .plus(Base::Identity(0, 0))
                    .record(record, Field::Real)?;
            }
        }
        Ok(memory)
    }

    /// R <- R Q of some steps from k on, and R h, with frames of all steps or of one.
    pub fn turn(
        &self,
        record: &mut Record,
        (k, steps): (usize, usize),
        (frames, pitch, all): (&Array, usize, bool),
        memory: &Array,
        heard: &Array,
    ) -> Result<()> {
        let arrays = [("frames", frames), ("memory", memory), ("heard", heard)];
        let pass = Pass { count: steps, k, pitch, flag: all, ..Pass::default() };
        self.cell.run_groups(record, &MEMORY, &arrays, self.cell.batch * self.blocks(), pass)
    }
}
