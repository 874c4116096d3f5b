//! What all cells share: the arrays of a call in the order of the cell's declaration, U x_t + b of all steps, the states before all steps, and
//! the gradients of the inputs.

mod gradients;
mod inputs;
#[cfg(test)]
mod tests;

pub(crate) use gradients::Gradients;

use crate::activation::RowActivation;
use crate::array::zeros;
use crate::device::{Context, Record, index};
use crate::hosted::{Uploads, field_of};
use crate::product::Operand;
use crate::shader::{Shader, groups, shaders};
use crate::{Array, Field};
use crate::{gated, lstm, recurrence, rum};
use isometry_core::activation::Activation;
use isometry_core::internal::sizes::work;
use isometry_core::recurrence::{Call, Declaration};
use isometry_core::scalar::Scalar;
use isometry_core::{Error, Result};
use std::sync::Arc;

shaders! {
    PREVIOUS "previous" "previous.wgsl",
}

/// The states of all steps, and the memory after them if there is one.
pub(crate) type States = (Array, Option<Array>);

/// What backward starts from: the states, zeros past the ends of sequences, their cotangents, ignored there, and those of the memory.
pub(crate) struct Outcome {
    pub states: Array,
    pub ct: Array,
    pub last_ct: Option<Array>,
}

/// A cell that has shaders.
pub(crate) struct Kernels {
    /// Its name in the core.
    pub name: &'static str,
    /// Numbers of a row of the widest array of all steps, in n.
    pub most: usize,
    /// Checks what is its own; a number for its shaders.
    setting: fn(&Cell<'_>) -> Result<u32>,
    pub forward: fn(&mut Record<'_>, &Cell<'_>) -> Result<States>,
    pub backward: fn(&mut Record<'_>, &Cell<'_>, &Outcome, &mut Gradients) -> Result<()>,
}

/// All of them; that with W as an operator has no shaders of its own, since its W is formed before.
pub(crate) static CELLS: &[Kernels] = &[
    Kernels {
        name: "recurrence",
        most: 1,
        setting: |_| Ok(0),
        forward: recurrence::forward,
        backward: recurrence::backward,
    },
    Kernels {
        name: "gru",
        most: 5,
        setting: gated::setting,
        forward: gated::forward,
        backward: gated::backward,
    },
    Kernels {
        name: "lstm",
        most: 4,
        setting: lstm::setting,
        forward: lstm::forward,
        backward: lstm::backward,
    },
    Kernels { name: "rum", most: 7, setting: rum::setting, forward: rum::forward, backward: rum::backward },
];

/// Rows of so many columns.
pub(crate) fn of(array: &Array, columns: usize) -> Operand<'_> {
    Operand::new(array, 0, columns)
}

/// A checked cell on its device.
pub(crate) struct Cell<'a> {
    pub kernels: &'static Kernels,
    pub declared: &'static Declaration,
    arrays: Vec<Option<Array>>,
    context: Arc<Context>,
    pub field: Field,
    pub settings: &'a [f64],
    pub steps: usize,
    pub batch: usize,
    pub features: usize,
    pub n: usize,
    /// Numbers of a state.
    pub state: usize,
    /// Rows of U.
    pub wide: usize,
    /// W as a matrix of its own, of the affine cell
    transition: Option<Array>,
    pub activation: Activation,
    pub phi: RowActivation,
    /// u32
    pub lengths: Option<Array>,
    pub reverse: bool,
    setting: u32,
}

/// What the sizes of a pass of a shader say.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pass {
    pub count: usize,
    pub k: usize,
    pub pitch: usize,
    pub phase: u32,
    pub flag: bool,
    /// Multiply-adds.
    pub work: usize,
}

impl<'a> Cell<'a> {
    /// The arrays of a call and, of the affine cell, W.
    pub fn new<T: Scalar>(
        uploads: &mut Uploads<'a>,
        call: &Call<'a, T>,
        transition: Option<Array>,
    ) -> Result<Self> {
        let (declared, field) = (call.cell, field_of::<T>()?);
        let kernels = kernels(declared)?;
        if call.marks.is_some() {
            return refused("starts");
        }
        if call.settings.len() != declared.settings.len() {
            return Err(Error::shape("settings", declared.settings.len().to_string(), call.settings.len()));
        }
        if (declared.operator == "transition") != transition.is_some() {
            return refused("W other than as a matrix");
        }
        if field == Field::Complex && transition.is_none() {
            return Err(Error::Dtype("x: expected real numbers".into()));
        }
        let sizes @ [steps, batch, features, n] = call.sizes()?;
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        // rows of all arrays have 32-bit indices, some of them eight numbers more
        let most = n.saturating_mul(kernels.most).saturating_add(8).max(features);
        index(work(&[steps, batch, most]), format_args!("{steps} steps of {batch} sequences"))?;
        let mut arrays = Vec::with_capacity(call.given.len());
        for (i, (argument, given)) in declared.arguments.iter().zip(&call.given).enumerate() {
            let shape = declared.shape(i, sizes).unwrap_or_else(|| given.shape.to_vec());
            let array = uploads.array(argument.name, given, &shape)?;
            if array.is_none() && !argument.optional {
                return Err(Error::value(argument.name, "must be given"));
            }
            let expected = if argument.kind.real() { Field::Real } else { field };
            if let Some(wrong) = array.as_ref().filter(|array| array.field() != expected) {
                return Err(Error::value(
                    argument.name,
                    format!("must be {expected:?}, not {:?}", wrong.field()),
                ));
            }
            arrays.push(array);
        }
        let context = uploads.context().clone();
        let at = |name: &str| declared.arguments.iter().position(|argument| argument.name == name);
        let own = at("activation_bias").and_then(|at| arrays[at].as_ref());
        let phi = RowActivation::new(&context, field, call.activation, n, own)?;
        let inputs = declared.shape(if transition.is_some() { 1 } else { 2 }, sizes).unwrap_or_default();
        let mut cell = Cell {
            kernels,
            declared,
            lengths: call.lengths.map(|lengths| sent(&context, lengths, steps, batch)).transpose()?,
            context,
            arrays,
            field,
            settings: call.settings,
            steps,
            batch,
            features,
            n,
            state: n.saturating_mul(declared.width),
            wide: inputs[..inputs.len() - 1].iter().product(),
            transition,
            activation: call.activation,
            phi,
            reverse: call.reverse,
            setting: 0,
        };
        cell.setting = (kernels.setting)(&cell)?;
        Ok(cell)
    }

    /// An argument, if it is given.
    pub fn some(&self, name: &str) -> Option<&Array> {
        let at = self.declared.arguments.iter().position(|argument| argument.name == name);
        at.and_then(|at| self.arrays[at].as_ref())
    }

    /// An argument that every call has.
    pub fn array(&self, name: &'static str) -> Result<&Array> {
        self.some(name).ok_or_else(|| Error::value(name, "must be given"))
    }

    /// W from its row `from` on; its columns are those of a state.
    pub fn w(&self, from: usize) -> Result<Operand<'_>> {
        let w = self.transition.as_ref().map_or_else(|| self.array("w"), Ok)?;
        Ok(of(w, self.n).from(from, 0))
    }

    /// W of the affine cell.
    pub fn transition(&self) -> Result<&Array> {
        self.transition.as_ref().ok_or_else(|| Error::value("transition", "must be given"))
    }

    /// Whether a flag of the settings is set.
    pub fn flag(&self, i: usize) -> bool {
        self.settings.get(i).is_some_and(|setting| !setting.is_nan() && *setting != 0.0)
    }

    pub fn rows(&self) -> usize {
        self.steps * self.batch
    }

    /// Pairs of features of so many rows.
    pub fn pairs(&self, rows: usize) -> usize {
        rows * self.n.div_ceil(2)
    }

    pub fn room(&self, shape: &[usize]) -> Result<Array> {
        Array::room(&self.context, self.field, shape)
    }

    /// (T, B, m)
    pub fn of_rows(&self, m: usize) -> Result<Array> {
        self.room(&[self.steps, self.batch, m])
    }

    /// (B, m)
    pub fn of_step(&self, m: usize) -> Result<Array> {
        self.room(&[self.batch, m])
    }

    /// Runs a shader on elements.
    pub fn run(
        &self,
        record: &mut Record<'_>,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        pass: Pass,
    ) -> Result<()> {
        record.elements(shader.of(self.field), &self.bound(arrays)?, &self.sizes(pass)?, pass.count)
    }

    /// Runs a shader on so many workgroups.
    pub fn run_groups(
        &self,
        record: &mut Record<'_>,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        count: usize,
        pass: Pass,
    ) -> Result<()> {
        let (arrays, sizes) = (self.bound(arrays)?, self.sizes(pass)?);
        record.dispatches(shader.of(self.field), &arrays, [sizes], groups(count), pass.work)
    }

    fn bound<'b>(&'b self, arrays: &[(&'b str, &'b Array)]) -> Result<Vec<(&'b str, &'b Array)>> {
        let lengths = self.lengths.as_ref().map_or_else(|| self.array("x"), Ok)?;
        Ok([&[("lengths", lengths)], arrays].concat())
    }

    /// `Sizes` of cell.wgsl.
    fn sizes(&self, pass: Pass) -> Result<Vec<u32>> {
        let count = index(pass.count, format_args!("{} elements", pass.count))?;
        let [steps, batch, n, k, pitch] =
            [self.steps, self.batch, self.n, pass.k, pass.pitch].map(|size| size as u32);
        let [reverse, varied, flag] = [self.reverse, self.lengths.is_some(), pass.flag].map(u32::from);
        let mut sizes =
            vec![count, steps, batch, n, k, reverse, varied, self.setting, pitch, pass.phase, flag];
        sizes.extend(self.phi.sizes);
        Ok(sizes)
    }

    /// phi's biases, or anything.
    pub fn own(&self) -> Result<&Array> {
        self.phi.own().map_or_else(|| self.array("x"), Ok)
    }
}

/// The shaders of a cell.
fn kernels(declared: &Declaration) -> Result<&'static Kernels> {
    let found = CELLS.iter().find(|cell| cell.name == declared.name);
    let what = if declared.dense.is_empty() { declared.name } else { "W_h other than as a matrix" };
    found.map_or_else(|| refused(what), Ok)
}

/// What a call cannot have on the device.
pub(crate) fn refused<T>(what: &str) -> Result<T> {
    Err(Error::Unsupported(format!("backend='gpu' cannot serve {what}: use the CPU")))
}

/// Lengths on the device.
fn sent(context: &Arc<Context>, lengths: &[usize], steps: usize, batch: usize) -> Result<Array> {
    if lengths.len() != batch {
        return Err(Error::shape("lengths", format!("{batch} elements"), lengths.len()));
    }
    if let Some(&wrong) = lengths.iter().find(|&&length| length > steps) {
        return Err(Error::value("lengths", format!("must be at most {steps}, got {wrong}")));
    }
    let mut bits = zeros::<f32>(batch)?;
    for (bits, &length) in bits.iter_mut().zip(lengths) {
        *bits = f32::from_bits(length as u32);
    }
    Array::upload(context, Field::Real, &[batch], &bits)
}
