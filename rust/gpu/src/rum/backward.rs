//! The gradients of a rotational unit.

use super::setting::Setting;
use super::{FACTORS, FIRST, MEMORY_VJP, Rotational, SECOND, UNIT_VJP, WHOLE};
use crate::cell::{self, Pass, of};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::{Array, Field};
use isometry_core::Result;
use isometry_core::internal::sizes::work;

/// Most steps of the memory in a dispatch, and most multiply-adds: it must end before a driver considers the device hung.
const RUN: usize = 512;
const WORK: usize = 1 << 34;

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of the arguments of every cell.
    pub arguments: cell::Wanted,
    /// Of R before the first step, also if it was absent; with a memory only.
    pub r0: bool,
}

/// The gradients, None where one was not wanted.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// That of W is one array.
    pub arguments: cell::Gradients,
    /// (B, n, n)
    pub r0: Option<Array>,
}

/// The gradients from the states, zeros past the ends of sequences, their cotangents, (T, B, n), ignored there, and those of the last
/// memory, zeros if absent.
pub fn backward(
    rum: &Rotational<'_>,
    states: &Array,
    cts: (&Array, Option<&Array>),
    wanted: Wanted,
) -> Result<Gradients> {
    submitted(rum.arguments.x.context(), |record| record_backward(record, rum, states, cts, wanted))
}

/// The same in a call that is being recorded.
pub(crate) fn record_backward(
    record: &mut Record,
    rum: &Rotational<'_>,
    states: &Array,
    (ct, last_ct): (&Array, Option<&Array>),
    wanted: Wanted,
) -> Result<Gradients> {
    let setting = Setting::new(rum)?;
    let cell = &setting.cell;
    cell.check_states("states", states)?;
    cell.check_states("ct", ct)?;
    last_ct.map_or(Ok(()), |ct| setting.check_memory("last_ct", ct))?;
    cell.phi.check_wanted(wanted.arguments.activation_bias)?;
    let x = cell.inputs(record)?;
    let all = Factors::new(record, &setting, &x, states)?;
    let mut out = all.pull(record, &setting, (ct, last_ct), wanted)?;
    let arguments = cell.input_gradients(record, &all.bars, &x, wanted.arguments)?;
    out.arguments = cell::Gradients { x: arguments.x, u: arguments.u, bias: arguments.bias, ..out.arguments };
    Ok(out)
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
    fn new(record: &mut Record, setting: &Setting<'_>, x: &Array, states: &Array) -> Result<Self> {
        let cell = &setting.cell;
        let (n, rows, pitch) = (cell.n, cell.rows(), setting.wide_frame());
        let previous = cell.previous(record, states)?;
        let bars = cell.drive(record, x)?;
        Product::new(1, (rows, 2 * n, n), of(&previous, n), cell.w(0).t(), of(&bars, cell.wide))
            .add()
            .record(record, Field::Real)?;
        let frames = cell.of_rows(pitch)?;
        let memory = setting.memory.then(|| setting.start(record)).transpose()?;
        let heard = if setting.memory { cell.of_rows(n)? } else { cell.room(&[1])? };
        let arrays = [
            ("own", cell.own()),
            ("inputs", &bars),
            ("previous", &previous),
            ("heard", &heard),
            ("frames", &frames),
        ];
        let pass = |record: &mut Record, phase: u32| {
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
        record: &mut Record,
        setting: &Setting<'_>,
        (ct, last_ct): (&Array, Option<&Array>),
        wanted: Wanted,
    ) -> Result<Gradients> {
        let cell = &setting.cell;
        let (batch, n, wide, pitch, blocks) =
            (cell.batch, cell.n, cell.wide, setting.wide_frame(), setting.blocks());
        let flag = wanted.arguments.activation_bias;
        let (g, now) = (cell.of_step(n)?, cell.of_step(wide)?);
        let along = if flag { Some(cell.phi.along(record, cell.rows())?) } else { None };
        let none = cell.room(&[1])?;
        let back = match &self.memory {
            Some(memory) => {
                let memory_bar = cell.room(&[batch, n, n])?;
                record.fill(&memory_bar, last_ct)?;
                Some((memory, memory_bar, cell.room(&[batch, blocks, 3, n])?))
            }
            None => None,
        };
        record.fill(&g, None)?;
        let unit = |record: &mut Record, given: &Array, k: usize, phase: u32| {
            let arrays = [
                ("own", cell.own()),
                ("given", given),
                ("frames", &self.frames),
                ("g", &g),
                ("bars", &self.bars),
                ("now", &now),
                ("along", along.as_ref().unwrap_or(&none)),
            ];
            let pass = Pass { count: blocks, k, pitch, phase, flag };
            cell.run_groups(record, &UNIT_VJP, &arrays, batch, pass)
        };
        for k in (0..cell.steps).rev() {
            match &back {
                None => unit(record, ct, k, WHOLE)?,
                Some((memory, memory_bar, sums)) => {
                    unit(record, ct, k, FIRST)?;
                    let arrays = [
                        ("frames", &self.frames),
                        ("now", &now),
                        ("memory", memory),
                        ("memory_bar", memory_bar),
                        ("sums", sums),
                    ];
                    let pass = Pass { k, pitch, ..Pass::default() };
                    cell.run_groups(record, &MEMORY_VJP, &arrays, batch * blocks, pass)?;
                    unit(record, sums, k, SECOND)?;
                }
            }
            Product::new(1, (batch, n, 2 * n), of(&now, wide), cell.w(0), of(&g, n))
                .add()
                .record(record, Field::Real)?;
        }
        let mut out = Gradients::default();
        if wanted.arguments.w {
            let bar = cell.weight_gradient(record, 2 * n, of(&self.bars, wide), of(&self.previous, n))?;
            out.arguments.w = Some(vec![bar]);
        }
        if wanted.arguments.h0 {
            out.arguments.h0 = Some(g);
        }
        if let Some(along) = &along {
            out.arguments.activation_bias = Some(cell.phi.bias_bar(record, along)?);
        }
        if wanted.r0 {
            out.r0 = back.map(|(_, memory_bar, _)| memory_bar);
        }
        Ok(out)
    }
}
