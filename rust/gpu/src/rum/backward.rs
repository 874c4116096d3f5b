//! The gradients of a rotational unit.

use super::setting::Setting;
use super::{FACTORS, FIRST, MEMORY_VJP, SECOND, UNIT_VJP, WHOLE};
use crate::Array;
use crate::cell::{Cell, Gradients, Outcome, Pass, of};
use crate::device::Record;
use crate::product::Product;
use crate::shader::arrays;
use isometry_core::Result;
use isometry_core::internal::sizes::work;

/// Most steps of the memory in a dispatch, and most multiply-adds: it must end before a driver considers the device hung.
const RUN: usize = 512;
const WORK: usize = 1 << 34;

/// The gradients.
pub(crate) fn backward(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    outcome: &Outcome,
    out: &mut Gradients,
) -> Result<()> {
    let setting = Setting::new(cell);
    let x = cell.inputs(record)?;
    let all = Factors::new(record, &setting, &x, &outcome.states)?;
    all.pull(record, &setting, outcome, out)?;
    cell.input_gradients(record, &all.bars, &x, out)
}

/// What all steps need, of all rows.
struct Factors {
    /// The states before the steps.
    previous: Array,
    /// The arguments of u and tau, and e, (T, B, 3n), which the steps replace by their cotangents.
    bars: Array,
    /// Rows of rum.wgsl.
    frames: Array,
    /// R after the last steps.
    memory: Option<Array>,
}

impl Factors {
    fn new(record: &mut Record<'_>, setting: &Setting<'_>, x: &Array, states: &Array) -> Result<Self> {
        let cell = setting.cell;
        let (n, rows, pitch) = (cell.n, cell.rows(), setting.wide_frame());
        let previous = cell.previous(record, states)?;
        let bars = cell.drive(record, x)?;
        Product::new(1, (rows, 2 * n, n), of(&previous, n), cell.w(0)?.t(), of(&bars, cell.wide))
            .add()
            .record(record, cell.field)?;
        let frames = cell.of_rows(pitch)?;
        let memory = setting.memory.then(|| setting.start(record)).transpose()?;
        let heard = if setting.memory { cell.of_rows(n)? } else { cell.room(&[1])? };
        let arrays = arrays![own = cell.own()?, inputs = &bars, previous, heard, frames];
        let pass = |record: &mut Record<'_>, phase: u32| {
            let pass = Pass { count: rows, pitch, phase, ..Pass::default() };
            cell.run_groups(record, &FACTORS, &arrays, rows, pass)
        };
        match &memory {
            None => pass(record, WHOLE)?,
            Some(memory) => {
                pass(record, FIRST)?;
                let run = (WORK / work(&[cell.batch, n, n, 5]).max(1)).clamp(1, RUN);
                for k in (0..cell.steps).step_by(run) {
                    let steps = run.min(cell.steps - k);
                    setting.turn(record, (k, steps), (&frames, pitch, true), memory, &heard)?;
                }
                pass(record, SECOND)?;
            }
        }
        Ok(Factors { previous, bars, frames, memory })
    }

    /// The cotangents of all steps, and the gradients of W, h0, R and the bias of the activation.
    fn pull(
        &self,
        record: &mut Record<'_>,
        setting: &Setting<'_>,
        Outcome { ct, last_ct, .. }: &Outcome,
        out: &mut Gradients,
    ) -> Result<()> {
        let cell = setting.cell;
        let (batch, n, wide, pitch, blocks) =
            (cell.batch, cell.n, cell.wide, setting.wide_frame(), setting.blocks());
        let (g, now) = (cell.of_step(n)?, cell.of_step(wide)?);
        let along = cell.along(record, out)?;
        let none = cell.room(&[1])?;
        let back = match &self.memory {
            Some(memory) => {
                let memory_bar = cell.room(&[batch, n, n])?;
                record.fill(&memory_bar, last_ct.as_ref())?;
                Some((memory, memory_bar, cell.room(&[batch, blocks, 3, n])?))
            }
            None => None,
        };
        record.fill(&g, None)?;
        let own = cell.own()?;
        let summed = along.as_ref().unwrap_or(&none);
        let unit = |record: &mut Record<'_>, given: &Array, k: usize, phase: u32| {
            let arrays =
                arrays![own, given, frames = &self.frames, g, bars = &self.bars, now, along = summed];
            let pass = Pass { count: blocks, k, pitch, phase, flag: along.is_some(), ..Pass::default() };
            cell.run_groups(record, &UNIT_VJP, &arrays, batch, pass)
        };
        for k in (0..cell.steps).rev() {
            match &back {
                None => unit(record, ct, k, WHOLE)?,
                Some((memory, memory_bar, sums)) => {
                    unit(record, ct, k, FIRST)?;
                    let arrays = arrays![frames = &self.frames, now, memory, memory_bar, sums];
                    let pass = Pass { k, pitch, work: work(&[batch, n, n, 9]), ..Pass::default() };
                    cell.run_groups(record, &MEMORY_VJP, &arrays, batch * blocks, pass)?;
                    unit(record, sums, k, SECOND)?;
                }
            }
            cell.through_products(record, k, (&now, 2 * n), (&g, n), out)?;
        }
        if out.wants("w") {
            out.put("w", cell.weight_gradient(record, 2 * n, of(&self.bars, wide), of(&self.previous, n))?);
        }
        out.put("h0", g);
        cell.bias_gradient(record, along.as_ref(), out)?;
        if let Some((_, memory_bar, _)) = back {
            out.put("r0", memory_bar);
        }
        Ok(())
    }
}
